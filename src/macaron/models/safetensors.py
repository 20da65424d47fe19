"""A safetensors file: its header, found to describe its bytes exactly, and one tensor or some of its rows.

The layout is that of the safetensors format: 8 bytes of length, a JSON header of that length, then the tensors' bytes,
which the header's offsets cover without holes and without overlaps. Nothing here holds more than a header, or what was
asked for, in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct

from macaron.errors import ConfigError
from macaron.models.document import DuplicateKeyError, NotAnObjectError, parse_object
from macaron.models.source import opened, printable, read_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

METADATA = "__metadata__"
FLOATS = ("F32", "F16", "BF16")

MAX_HEADER_BYTES = 33_554_432
MAX_DIMENSIONS = 8
MAX_SIZE = 2**62
CHUNK = 4_194_304

_BITS: Mapping[str, int] = {
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
    "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}  # fmt: skip


class UnusableTensors(ConfigError):
    """A file is not what it says.

    Attributes:
        code: `pickle`, `name_collision`, `dtype`, `truncated`, or `bad_safetensors` for everything else.
        param: the tensor it is about, None where it is none.
        reason, remedy: the message's parts, printable.
    """

    def __init__(self, path: Path, reason: str, *, code: str = "bad_safetensors", tensor: str = "") -> None:
        self.reason = reason
        self.remedy = _REMEDIES.get(code, "copy, download or save it again, whole")
        message = f"{path} is not a usable safetensors file: {reason}; {self.remedy}"
        super().__init__(message, param=tensor or None, code=code)


_REMEDIES: Mapping[str, str] = {
    "pickle": "save it as safetensors, with safe_serialization=True in PEFT",
    "dtype": "save it in one of the format's types",
}


class Tensor(Struct, frozen=True):
    """A tensor's place: `begin` and `end` count from the end of the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def values(self) -> int:
        """How many numbers it has."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """How many bytes they take."""
        return self.end - self.begin


class TensorFile(Struct, frozen=True):
    """A file whose header was found to agree with its size.

    Attributes:
        head: the file's first bytes, up to the first tensor.
        tensors: by name, in the order of their bytes.
        metadata: text by key.
    """

    path: Path
    head: bytes
    tensors: Mapping[str, Tensor]
    metadata: Mapping[str, str]

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return len(self.head) + sum(tensor.bytes for tensor in self.tensors.values())

    def start(self, name: str) -> int:
        """The byte of the file at which a tensor begins."""
        return len(self.head) + self.tensors[name].begin

    def read(self, file: IO[bytes], name: str, first: int = 0, last: int | None = None) -> bytes:
        """The bytes of a tensor, or those of its rows from `first` up to `last`; `file` is this one, opened.

        Raises:
            ConfigError: the file changed while it was read.
        """
        tensor = self.tensors[name]
        rows = max(tensor.shape[0], 1) if tensor.shape else 1
        row = tensor.bytes // rows
        count = (rows if last is None else last) - first
        return read_at(file, self.path, self.start(name) + first * row, count * row)

    def chunks(self, file: IO[bytes], name: str) -> Iterator[bytes]:
        """The bytes of a tensor in pieces of at most `CHUNK`, each a whole number of values of any type.

        Raises:
            ConfigError: the file changed while it was read.
        """
        start, size = self.start(name), self.tensors[name].bytes
        for done in range(0, size, CHUNK):
            yield read_at(file, self.path, start + done, min(CHUNK, size - done))


def open_tensors(path: Path, root: Path | None = None) -> TensorFile:
    """Read and check the header of a file. No tensor is read.

    Args:
        root: the folder, free of links, that `path` must not lead out of; None where a person named this very file.

    Raises:
        ConfigError: it cannot be read.
        UnusableTensors: its header does not describe the bytes that follow it.
    """
    with opened(path, root) as (file, size):
        found = read_header(file, size, path)
    for tensor in found.tensors.values():
        if tensor.dtype not in _BITS:
            reason = f"{printable(tensor.name)} has the type {printable(tensor.dtype)!r}, which is not known here"
            raise UnusableTensors(path, reason, code="dtype", tensor=tensor.name)
    return found


def read_header(file: IO[bytes], size: int, path: Path) -> TensorFile:
    """As `open_tensors`, of a file of `size` bytes that is open and of which nothing was read yet. Types that are not
    known here are the caller's to judge: bytes of tensors that have one are not compared with their shape."""
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    if looks_pickled(start):
        raise UnusableTensors(path, "under this name lies a pickle, which can run code", code="pickle")
    if length > MAX_HEADER_BYTES:
        raise UnusableTensors(path, f"its header would have {length} bytes, more than {MAX_HEADER_BYTES}")
    if len(start) < 9 or length > size - 8:
        raise UnusableTensors(path, f"it ends within its header, with {size} bytes")
    if length < 2 or not start.endswith(b"{"):
        raise UnusableTensors(path, "its header is no usable JSON object")
    head = start + read_at(file, path, 9, length - 1)
    table = _table(head[8:], path)
    metadata = table.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise UnusableTensors(path, f"{METADATA} holds something other than text")
    tensors = sorted(
        (_tensor(key, value, path) for key, value in table.items()), key=lambda item: (item.begin, item.end)
    )
    _check_places(tensors, size - len(head), path)
    return TensorFile(path, head, {tensor.name: tensor for tensor in tensors}, metadata)


def looks_pickled(head: bytes) -> bool:
    """Whether a file that begins so is a pickle, or a zip as torch.save writes it.

    The first bytes of a safetensors file are the length of its header, which may be those of a pickle by chance; its
    header begins with a brace and has a believable length.
    """
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= MAX_HEADER_BYTES:
        return False
    return head.startswith(b"PK\x03\x04") or (head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"))


def as_floats(raw: bytes, dtype: str) -> NDArray[np.float32]:
    """The numbers of a tensor whose type is one of `FLOATS`, flat."""
    import numpy as np

    if dtype == "BF16":
        # The upper half of a 32-bit number.
        return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
    return np.frombuffer(raw, "<f4" if dtype == "F32" else "<f2").astype(np.float32)


def as_bytes(values: NDArray[np.float32], dtype: str) -> bytes:
    """The opposite of `as_floats`, rounded to the nearest; what is too large becomes infinite."""
    import numpy as np

    if dtype == "BF16":
        bits = np.ascontiguousarray(values, "<f4").view("<u4")
        rounded = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype("<u2")
        return bytes(rounded.data)
    with np.errstate(over="ignore"):
        return bytes(values.astype("<f4" if dtype == "F32" else "<f2").data)


def _table(raw: bytes, path: Path) -> dict[str, Any]:
    try:
        return parse_object(raw)
    except DuplicateKeyError as error:
        reason = "two tensors have one name, and two readers would see different ones"
        raise UnusableTensors(path, reason, code="name_collision", tensor=error.key) from None
    except NotAnObjectError as error:
        raise UnusableTensors(path, f"its header is no usable JSON object: {printable(str(error), 160)}") from None


def _tensor(key: str, value: Any, path: Path) -> Tensor:
    match value:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [begin, end]} if len(value) == 3:
            if len(shape) <= MAX_DIMENSIONS and all(is_size(number) for number in (*shape, begin, end)):
                return Tensor(key, dtype, tuple(shape), begin, end)
    reason = f"the entry of {printable(key)} has no type, shape and place as the format wants them"
    raise UnusableTensors(path, reason, tensor=key)


def is_size(value: Any) -> bool:
    """Whether a value from JSON is a number of bytes or values."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_SIZE


def _check_places(tensors: list[Tensor], size: int, path: Path) -> None:
    """Tensors follow one another without gap and overlap, each as long as its shape, up to the file's end."""
    at = 0
    for tensor in tensors:
        name, bits = printable(tensor.name), _BITS.get(tensor.dtype)
        if tensor.begin != at or tensor.end < at:
            what = "overlaps what is before it" if tensor.begin < at else "leaves a hole or ends before it begins"
            reason = f"{name} has the offsets {tensor.begin} to {tensor.end}: it {what}"
            raise UnusableTensors(path, reason, tensor=tensor.name)
        if bits is not None and tensor.values * bits != tensor.bytes * 8:
            reason = f"{name} has {tensor.values} values of {bits} bits in {tensor.bytes} bytes"
            raise UnusableTensors(path, reason, tensor=tensor.name)
        at = tensor.end
    if at != size:
        reason = f"its header describes {at} bytes of tensors, the file has {size}"
        raise UnusableTensors(path, reason, code="truncated" if at > size else "bad_safetensors")
