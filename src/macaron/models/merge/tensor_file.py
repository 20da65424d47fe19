"""A safetensors file by its header: what is in it and where, so that one tensor or some of its rows can be read.

The layout is that of the safetensors format: 8 bytes of length, a JSON header, then the tensors without gaps.
"""

from __future__ import annotations

import math
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError
from macaron.models.lora.tensors import MAX_HEADER_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_DIMENSIONS = 8
FLOATS = ("F32", "F16", "BF16")
_BYTES: Mapping[str, int] = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8, "C64": 8,
}  # fmt: skip


class Tensor(Struct, frozen=True):
    """One entry of the header; the offsets are bytes after it."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]

    @property
    def size(self) -> int:
        """Bytes."""
        return self.data_offsets[1] - self.data_offsets[0]


class TensorFile(Struct, frozen=True):
    """A file whose header was found to agree with its size.

    Attributes:
        head: everything before the first tensor, as it stands in the file.
        tensors: by name, in the order in which they lie in the file.
    """

    path: Path
    head: bytes
    tensors: Mapping[str, Tensor]

    def read(self, file: IO[bytes], name: str, first: int = 0, last: int | None = None) -> bytes:
        """The bytes of a tensor, or those of its rows from `first` up to `last`; `file` is this one, opened."""
        tensor = self.tensors[name]
        rows = max(tensor.shape[0], 1) if tensor.shape else 1
        row = tensor.size // rows
        count = ((rows if last is None else last) - first) * row
        file.seek(len(self.head) + tensor.data_offsets[0] + first * row)
        raw = file.read(count)
        if len(raw) != count:
            raise ConfigError(f"{self.path} changed while it was read; start again when it is complete")
        return raw


def open_tensors(path: Path) -> TensorFile:
    """Read and check the header of a safetensors file. No tensor is read.

    Raises:
        ConfigError: it cannot be read, or is not what it says.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path} is not a file")
        with path.open("rb") as file:
            return TensorFile(path, *_header(path, file, status.st_size))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


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


def _header(path: Path, file: IO[bytes], size: int) -> tuple[bytes, dict[str, Tensor]]:
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(MAX_HEADER_BYTES, size - 8):
        raise _unusable(path, f"its header would have {length} bytes")
    raw = file.read(length)
    try:
        table = msgspec.json.decode(raw, type=dict[str, Any])
        table.pop("__metadata__", None)
        tensors = {name: msgspec.convert(entry, Tensor) for name, entry in table.items()}
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise _unusable(path, str(error)) from None
    ordered = dict(sorted(tensors.items(), key=lambda item: item[1].data_offsets))
    _check_layout(path, ordered, size - 8 - length)
    return start + raw, ordered


def _check_layout(path: Path, tensors: Mapping[str, Tensor], size: int) -> None:
    position = 0
    for name, tensor in tensors.items():
        if tensor.dtype not in _BYTES:
            raise _unusable(path, f"{name[:200]} is of the unknown type {tensor.dtype[:20]!r}")
        if len(tensor.shape) > MAX_DIMENSIONS or min(tensor.shape, default=0) < 0:
            raise _unusable(path, f"{name[:200]} has the shape {str(tensor.shape)[:80]}")
        wanted = math.prod(tensor.shape) * _BYTES[tensor.dtype]
        if tensor.data_offsets != (position, position + wanted):
            raise _unusable(path, f"the place of {name[:200]} does not follow from the shapes")
        position += wanted
    if position != size:
        raise _unusable(path, f"its tensors take {position} bytes, there are {size}")


def _unusable(path: Path, reason: str) -> ConfigError:
    return ConfigError(f"{path} is not a usable safetensors file: {reason}")
