"""What a GGUF file says about its model: context, control tokens, chat template. The tensors are never read.

The layout is that of the GGUF specification, versions 2 and 3: a header, then typed key-value pairs. `gguf_table` reads
what follows them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from msgspec import Struct

from macaron.errors import ConfigError
from macaron.models.source import opened, printable

T = TypeVar("T")

ARCHITECTURE = "llama"
"""Of the bases whose tensors are known here by name and order."""

_MAGIC = b"GGUF"
_SCALARS: Mapping[int, str] = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_STRING = 8
_ARRAY = 9
_CONTROL_TOKEN = 3
_MAX_PAIRS = 65_536
_MAX_ITEMS = 4_194_304
_MAX_STRING = 16_777_216
_MAX_HEAD = 268_435_456
_BUFFER = 65_536


class Dimensions(Struct, frozen=True):
    """Sizes of a transformer: blocks, width of the residual stream and of the feed-forward layer, attention heads,
    heads of keys and values, and the width of one head."""

    layers: int
    hidden: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_width: int


class GgufInfo(Struct, frozen=True):
    """Metadata of a model file.

    Attributes:
        name: the model's own name, may be empty.
        architecture: such as `llama`.
        context_length: tokens it was trained for, None where the file does not say.
        control_tokens: the texts that its tokenizer turns into control tokens.
        chat_template: Jinja, empty where there is none.
        dimensions: None where the file does not give them, or not the same for all blocks.
    """

    name: str
    architecture: str
    context_length: int | None
    control_tokens: tuple[str, ...]
    chat_template: str
    dimensions: Dimensions | None = None


def read_gguf(path: Path) -> GgufInfo:
    """Read a model file's metadata.

    Raises:
        ConfigError: it cannot be read, is not GGUF version 2 or 3, is cut off, or is an adapter.
    """
    pairs = walk_gguf(path, GgufReader.pairs)
    if pairs.get("general.type", "model") != "model":
        raise ConfigError(f"{path} is not a model but of type {pairs['general.type']!r}; name the base's file")
    return _info(pairs)


def llama_dimensions(path: Path, purpose: str, remedy: str) -> Dimensions:
    """The sizes of a base of the llama architecture, for a `purpose` such as `adapters are converted`.

    Raises:
        ConfigError: as from `read_gguf`, or it is another base, with the code `unsupported_base`.
    """
    info = read_gguf(path)
    if info.architecture != ARCHITECTURE or info.dimensions is None:
        reason = f"{path} is of the architecture {printable(info.architecture)!r}; {purpose} for {ARCHITECTURE} bases"
        reason = f"{reason} with one number of heads for all layers; {remedy}"
        raise ConfigError(reason, param="base", code="unsupported_base")
    return info.dimensions


def is_gguf(path: Path) -> bool:
    """Whether a file is GGUF, by its first bytes.

    Raises:
        ConfigError: it cannot be read.
    """
    with opened(path) as (file, _):
        return file.read(4) == _MAGIC


def walk_gguf(path: Path, read: Callable[[GgufReader], T]) -> T:
    """What `read` takes from the beginning of a GGUF file of any type.

    Raises:
        ConfigError: the file cannot be read, or `read` raised `MalformedError`.
    """
    try:
        with opened(path, buffering=_BUFFER) as (file, size):
            return read(GgufReader(file, size))
    except MalformedError as error:
        raise ConfigError(f"{path} is not a usable GGUF file: {error}") from None


def _info(pairs: Mapping[str, Any]) -> GgufInfo:
    architecture = str(pairs.get("general.architecture", ""))
    length = pairs.get(f"{architecture}.context_length")
    tokens, kinds = pairs.get("tokenizer.ggml.tokens", []), pairs.get("tokenizer.ggml.token_type", [])
    template = pairs.get("tokenizer.chat_template", "")
    control = (token for token, kind in zip(tokens, kinds, strict=False) if kind == _CONTROL_TOKEN and token)
    return GgufInfo(
        name=str(pairs.get("general.name", "")),
        architecture=architecture,
        context_length=length if isinstance(length, int) else None,
        control_tokens=tuple(str(token) for token in control),
        chat_template=template if isinstance(template, str) else "",
        dimensions=_dimensions(pairs, architecture),
    )


def _dimensions(pairs: Mapping[str, Any], architecture: str) -> Dimensions | None:
    names = ("block_count", "embedding_length", "feed_forward_length", "attention.head_count")
    values = [pairs.get(f"{architecture}.{name}") for name in names]
    values.append(pairs.get(f"{architecture}.attention.head_count_kv", values[-1]))
    sizes = [value for value in values if isinstance(value, int) and value > 0]
    if len(sizes) < len(values):
        return None
    layers, hidden, feed_forward, heads, kv_heads = sizes
    width = pairs.get(f"{architecture}.attention.key_length", hidden // heads)
    if not isinstance(width, int) or width < 2 or width % 2:
        return None
    return Dimensions(layers, hidden, feed_forward, heads, kv_heads, width)


class MalformedError(Exception):
    """The file is not what the specification says."""


class GgufReader:
    """Takes a file's values in their order, bounded by its `size`: `pairs()`, then the tensors' table."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size
        self._items_left = _MAX_ITEMS
        self.size = size
        self.tensor_count = 0

    @property
    def position(self) -> int:
        """The bytes taken so far."""
        return self.size - self._left

    def pairs(self) -> dict[str, Any]:
        """The metadata; sets `tensor_count`."""
        if self._take(4) != _MAGIC:
            raise MalformedError("it does not begin with GGUF")
        version = self.number("<I")
        if version not in (2, 3):
            raise MalformedError(f"version {version} is not known, or the file is big-endian")
        self.tensor_count = int(self.number("<Q"))
        count = self._bounded(_MAX_PAIRS, "metadata entries")
        pairs = {self.string(): self._value(self.number("<I")) for _ in range(count)}
        if len(pairs) < count:
            raise MalformedError("a key of its metadata is there twice")
        return pairs

    def _value(self, kind: int) -> Any:
        if kind != _ARRAY:
            return self._reader(kind)()
        item = self.number("<I")
        count = self._bounded(self._items_left, "items of arrays")
        self._items_left -= count
        if item in _SCALARS:
            form = _SCALARS[item]
            raw = self._take(count * struct.calcsize(form))
            return [value for (value,) in struct.iter_unpack(form, raw)]
        read = self._reader(item)
        return [read() for _ in range(count)]

    def _reader(self, kind: int) -> Callable[[], Any]:
        if kind == _STRING:
            return self.string
        if kind in _SCALARS:
            return lambda: self.number(_SCALARS[kind])
        raise MalformedError(f"value type {kind} is not known here")

    def string(self) -> str:
        """A length and as many bytes of text."""
        # Tokens need not be whole characters.
        return self._take(self._bounded(_MAX_STRING, "bytes of a string")).decode("utf-8", "surrogateescape")

    def _bounded(self, limit: int, what: str) -> int:
        count = self.number("<Q")
        if count > min(limit, self._left):
            raise MalformedError(f"{count} {what} are more than can be")
        return int(count)

    def number(self, form: str) -> Any:
        """One number in a form of `struct`."""
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _take(self, count: int) -> bytes:
        if self.position + count > _MAX_HEAD:
            raise MalformedError(f"its metadata and table take more than {_MAX_HEAD} bytes")
        raw = self._file.read(count) if count <= self._left else b""
        if len(raw) != count:
            raise MalformedError("it is cut off")
        self._left -= count
        return raw
