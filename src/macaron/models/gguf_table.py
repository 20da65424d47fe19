"""The table of a GGUF file's tensors: what they are and where they lie. No tensor is read.

The layout is that of the GGUF specification: header and metadata, the table, padding, the tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple

from macaron.errors import ConfigError
from macaron.models.gguf import GgufReader, MalformedError, walk_gguf
from macaron.models.source import printable, read_at

MAX_TENSORS = 131_072
MAX_NAME_BYTES = 256
MAX_DIMENSIONS = 4
_ALIGNMENT = 32


class GgufTensor(NamedTuple):
    """A tensor of the file.

    Attributes:
        dimensions: the length of a row first.
        kind: a `gguf.GGMLQuantizationType`.
        start: byte of the file.
        bytes: how many it takes.
    """

    name: str
    dimensions: tuple[int, ...]
    kind: Any
    start: int
    bytes: int

    @property
    def dtype(self) -> str:
        """The type's name, such as `Q8_0`."""
        return str(self.kind.name)

    @property
    def values(self) -> int:
        """How many numbers it has."""
        return prod(self.dimensions)


class GgufTable(NamedTuple):
    """What a file says of itself.

    Attributes:
        head_size: bytes of header and metadata, which come first.
        tensors: by name, in the table's order.
        begin, end: where the tensors lie, as bytes of the file; `end` is beyond its `size` where it is cut off.
    """

    path: Path
    pairs: Mapping[str, Any]
    head_size: int
    alignment: int
    tensors: Mapping[str, GgufTensor]
    begin: int
    end: int
    size: int

    def text(self, key: str) -> str:
        """A text of the metadata, empty where there is none."""
        value = self.pairs.get(key, "")
        return value if isinstance(value, str) else ""

    def read(self, file: IO[bytes], tensor: GgufTensor, start: int, size: int) -> bytes:
        """Some bytes of a tensor; `file` is this one, opened.

        Raises:
            ConfigError: the file changed while it was read.
        """
        return read_at(file, self.path, tensor.start + start, size)


def read_whole_table(path: Path) -> GgufTable:
    """As `read_table`, of a file that holds all of its tensors and is all of its model or adapter.

    Raises:
        ConfigError: as from `read_table`, or it is cut off, or one part of several.
    """
    table = read_table(path)
    needed, there = table.end - table.begin, max(table.size - table.begin, 0)
    if needed > there:
        reason = f"it is cut off: its tensors need {needed} bytes, {there} are there"
        raise ConfigError(f"{path} is not a usable GGUF file: {reason}")
    parts = table.pairs.get("split.count", 1)
    if isinstance(parts, int) and parts > 1:
        remedy = "join them with llama.cpp's llama-gguf-split --merge and name the result"
        raise ConfigError(f"{path} is one part of {parts}; {remedy}", param="base")
    return table


def read_table(path: Path) -> GgufTable:
    """Read and check a file's metadata and table.

    Raises:
        ConfigError: it cannot be read, or its table cannot be that of any file.
    """
    return walk_gguf(path, lambda reader: _table(path, reader))


def padded(position: int, alignment: int) -> int:
    """The next position that is aligned."""
    return -(-position // alignment) * alignment


def _table(path: Path, reader: GgufReader) -> GgufTable:
    from gguf import GGML_QUANT_SIZES

    pairs = reader.pairs()
    head_size = reader.position
    alignment = pairs.get("general.alignment", _ALIGNMENT)
    if isinstance(alignment, bool) or not isinstance(alignment, int) or not 8 <= alignment <= 65_536 or alignment % 8:
        raise MalformedError("its alignment is no number of bytes from 8 to 65536 in steps of 8")
    if reader.tensor_count > MAX_TENSORS:
        raise MalformedError(f"{reader.tensor_count} tensors are more than can be")
    kinds = {int(kind): (kind, *sizes) for kind, sizes in GGML_QUANT_SIZES.items()}
    entries = [_entry(reader, kinds) for _ in range(reader.tensor_count)]
    data = padded(reader.position, alignment)
    placed = [entry._replace(start=data + entry.start) for entry in entries]
    end = _end(placed, data, alignment)
    tensors = {entry.name: entry for entry in placed}
    if len(tensors) < len(placed):
        raise MalformedError("two tensors have one name")
    return GgufTable(path, pairs, head_size, alignment, tensors, data, end, reader.size)


def _entry(reader: GgufReader, kinds: Mapping[int, tuple[Any, int, int]]) -> GgufTensor:
    """The next one; its start is still counted from the first tensor's."""
    name, count = reader.string(), reader.number("<I")
    if len(name.encode(errors="replace")) > MAX_NAME_BYTES:
        raise MalformedError(f"a tensor has the name {printable(name)!r}, longer than {MAX_NAME_BYTES} bytes")
    if not 1 <= count <= MAX_DIMENSIONS:
        raise MalformedError(f"tensor {printable(name)!r} has {count} dimensions, not 1 to {MAX_DIMENSIONS}")
    dimensions = tuple(int(reader.number("<Q")) for _ in range(count))
    number, start = reader.number("<I"), int(reader.number("<Q"))
    if number not in kinds:
        raise MalformedError(f"tensor {printable(name)!r} has type {number}, which is not known here")
    kind, block, size = kinds[number]
    # Rows are made of whole blocks.
    if min(dimensions) < 1 or dimensions[0] % block:
        reason = f"rows of {dimensions[0]} values, {kind.name} has blocks of {block}"
        raise MalformedError(f"tensor {printable(name)!r} has the dimensions {dimensions}: {reason}")
    return GgufTensor(name, dimensions, kind, start, prod(dimensions) // block * size)


def _end(tensors: Sequence[GgufTensor], data: int, alignment: int) -> int:
    """The byte after the last tensor, the first of which may begin at `data`."""
    position = data
    for tensor in sorted(tensors, key=lambda item: item.start):
        if tensor.start < position:
            raise MalformedError(f"two of its tensors overlap, at {printable(tensor.name)!r}")
        if tensor.start % alignment != data % alignment:
            raise MalformedError(f"tensor {printable(tensor.name)!r} lies between two places")
        position = tensor.start + tensor.bytes
    return position
