"""A GGUF file as a container: where its tensors lie, and what its table says of them.

The layout is that of the GGUF specification: header and metadata, the table of tensors, padding, the tensors.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from macaron.errors import ConfigError
from macaron.models.gguf import GgufReader, MalformedError, walk_gguf

MAX_TENSORS = 131_072
MAX_NAME_BYTES = 256
MAX_HEAD_BYTES = 268_435_456
DEFAULT_ALIGNMENT = 32


class StoredTensor(NamedTuple):
    """A tensor of the file.

    Attributes:
        dimensions: the length of a row first.
        kind: a `gguf.GGMLQuantizationType`.
        start: byte of the file.
        size: in bytes.
    """

    name: str
    dimensions: tuple[int, ...]
    kind: Any
    start: int
    size: int

    @property
    def elements(self) -> int:
        """Values in it."""
        return math.prod(self.dimensions)


class ModelFile(NamedTuple):
    """A file whose table was found to agree with its size.

    Attributes:
        head_size: bytes of header and metadata, which come first.
        tensors: by name, in the table's order.
        licence: as the metadata names it, may be empty.
    """

    path: Path
    head_size: int
    alignment: int
    tensors: Mapping[str, StoredTensor]
    licence: str

    def read(self, file: IO[bytes], tensor: StoredTensor, start: int, size: int) -> bytes:
        """Some bytes of a tensor; `file` is this one, opened."""
        file.seek(tensor.start + start)
        raw = file.read(size)
        if len(raw) != size:
            raise ConfigError(f"{self.path} changed while it was read; start again when it is complete")
        return raw


def open_model(path: Path) -> ModelFile:
    """Read and check a model file's table. No tensor is read.

    Raises:
        ConfigError: it cannot be read, is not what it says, or is one part of several.
    """
    if not path.is_file():
        raise ConfigError(f"{path} is not a file; name the base's GGUF file", param="base")
    model, parts = walk_gguf(path, lambda reader: _model(path, reader))
    if isinstance(parts, int) and parts > 1:
        remedy = "join them with llama.cpp's llama-gguf-split --merge first"
        raise ConfigError(f"{path} is one of {parts} parts of a model; {remedy}", param="base")
    return model


def padded(position: int, alignment: int) -> int:
    """The next position that is aligned."""
    return -(-position // alignment) * alignment


def encoded_tensor(name: str, dimensions: Sequence[int], kind: Any, offset: int) -> bytes:
    """An entry of the table."""
    raw = name.encode()
    form = f"<Q{len(raw)}sI{len(dimensions)}QIQ"
    return struct.pack(form, len(raw), raw, len(dimensions), *dimensions, int(kind), offset)


def _model(path: Path, reader: GgufReader) -> tuple[ModelFile, object]:
    pairs = reader.pairs()
    head_size = reader.position
    alignment = pairs.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or not 8 <= alignment <= 65_536 or alignment % 8:
        raise MalformedError(f"its alignment is {str(alignment)[:40]}")
    if reader.tensor_count > MAX_TENSORS or head_size > MAX_HEAD_BYTES:
        raise MalformedError(f"{reader.tensor_count} tensors after {head_size} bytes of metadata are more than can be")
    entries = [_entry(reader) for _ in range(reader.tensor_count)]
    data = padded(reader.position, alignment)
    tensors = {entry.name: entry._replace(start=data + entry.start) for entry in entries}
    _check(entries, tensors, data, alignment, reader.size)
    licence = pairs.get("general.license", "")
    model = ModelFile(path, head_size, alignment, tensors, licence if isinstance(licence, str) else "")
    return model, pairs.get("split.count", 0)


def _entry(reader: GgufReader) -> StoredTensor:
    """One of the table; its start is still counted from the first tensor's."""
    import gguf

    name = reader.string()
    count = reader.number("<I")
    if not 1 <= count <= 4 or len(name.encode(errors="replace")) > MAX_NAME_BYTES:
        raise MalformedError(f"tensor {name[:80]!r} has {count} dimensions, or too long a name")
    dimensions = tuple(int(reader.number("<Q")) for _ in range(count))
    number, start = reader.number("<I"), int(reader.number("<Q"))
    try:
        kind = gguf.GGMLQuantizationType(number)
        block, size = gguf.GGML_QUANT_SIZES[kind]
    except (ValueError, KeyError):
        raise MalformedError(f"tensor {name[:80]!r} is of type {number}, which is not known here") from None
    if min(dimensions) < 1 or dimensions[0] % block:
        raise MalformedError(f"tensor {name[:80]!r} has the dimensions {dimensions}")
    return StoredTensor(name, dimensions, kind, start, math.prod(dimensions) // block * size)


def _check(
    entries: Sequence[StoredTensor], tensors: Mapping[str, StoredTensor], data: int, alignment: int, size: int
) -> None:
    if len(tensors) != len(entries):
        raise MalformedError("two tensors have one name")
    position = data
    for tensor in sorted(tensors.values(), key=lambda item: item.start):
        if tensor.start < position or tensor.start % alignment != data % alignment:
            raise MalformedError(f"tensor {tensor.name[:80]!r} lies where another one is, or between two places")
        position = tensor.start + tensor.size
    if position > size:
        raise MalformedError("it is cut off")
