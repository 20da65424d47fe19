"""The header of a safetensors file, as its specification has it: a length, a JSON object, and bytes without gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import IO, Any

from msgspec import Struct

from macaron.registry.check.document import DuplicateKeyError, NotAnObjectError, read_object
from macaron.registry.check.folder import MAX_HEADER_BYTES, looks_pickled
from macaron.registry.check.report import Finding, Refused, error, shown

SIZES: Mapping[str, int] = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8,
}  # fmt: skip
MAX_DIMENSIONS = 8
MAX_SIZE = 2**62
# A header within its bound of bytes can still be one that takes a hundred times as much memory when it is parsed.
MAX_COLONS, MAX_COMMAS = 1_048_576, 1_310_720
METADATA = "__metadata__"


class Tensor(Struct, frozen=True):
    """A tensor's place: `begin` and `end` count from the end of the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(Struct, frozen=True):
    """What a file holds.

    Attributes:
        raw: the file's first bytes, up to the first tensor.
        tensors: in the order of their bytes.
        metadata: text by key.
    """

    raw: bytes
    tensors: tuple[Tensor, ...]
    metadata: Mapping[str, str]


def read_header(file: IO[bytes], size: int, name: str) -> Header:
    """Read and check the header of a file of `size` bytes; the tensors follow in `file`.

    Raises:
        Refused: it is not what the specification says; `name` is the file in the finding.
    """
    head = file.read(8)
    begin = file.read(1)
    if looks_pickled(head + begin):
        remedy = "Save it with safe_serialization=True in PEFT."
        raise Refused(error("pickle", name, "", "Under this name lies a pickle, which can run code.", remedy))
    length = int.from_bytes(head, "little")
    if len(head) < 8 or begin != b"{" or length > size - 8:
        raise _broken(name, "The header is not there or not whole")
    if length > MAX_HEADER_BYTES:
        raise _broken(name, f"The header would have {length} bytes")
    raw = head + begin + file.read(length - 1)
    if len(raw) != length + 8:
        raise _broken(name, "The file became shorter while it was read")
    if raw.count(b":") > MAX_COLONS or raw.count(b",") > MAX_COMMAS:
        raise _broken(name, "The header has more entries than any adapter")
    try:
        table = read_object(raw[8:])
    except DuplicateKeyError as problem:
        reason = "Two tensors have this name, and two readers would see different ones."
        raise Refused(error("name_collision", name, problem.key, reason, "Save the adapter again.")) from None
    except NotAnObjectError as problem:
        raise _broken(name, f"The header is no JSON object, {shown(problem)}") from None
    metadata = _metadata(table.pop(METADATA, {}), name)
    tensors = sorted((_tensor(key, value, name) for key, value in table.items()), key=lambda item: item.begin)
    _check_places(tensors, size - 8 - length, name)
    return Header(raw, tuple(tensors), metadata)


def _metadata(value: Any, name: str) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise _broken(name, f"{METADATA} must hold text only")
    return {shown(key): shown(text) for key, text in value.items()}


def _tensor(key: str, value: Any, name: str) -> Tensor:
    match value:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [begin, end]} if len(value) == 3:
            if len(shape) <= MAX_DIMENSIONS and all(_is_size(number) for number in (*shape, begin, end)):
                return Tensor(key, dtype, tuple(shape), begin, end)
    raise _broken(name, f"The entry of {shown(key)} has no type, shape and place as the format wants them")


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_SIZE


def _check_places(tensors: list[Tensor], size: int, name: str) -> None:
    """Tensors follow one another without gap and overlap, each as long as its shape, up to the file's end."""
    at = 0
    for tensor in tensors:
        width = SIZES.get(tensor.dtype)
        if width is not None and tensor.end - tensor.begin != width * prod(tensor.shape):
            raise _broken(name, f"{shown(tensor.name)} has not as many bytes as its shape says")
        if tensor.begin != at or tensor.end < at:
            raise _broken(name, f"There is a gap or an overlap before {shown(tensor.name)}")
        at = tensor.end
    if at > size:
        reason = f"The file is cut off: it has {size} bytes of tensors, the header names {at}."
        remedy = "Copy or download it again, whole."
        raise Refused(error("truncated", name, size, reason, remedy))
    if at < size:
        raise _broken(name, f"{size - at} bytes after the last tensor belong to none")


def dtype_findings(tensors: tuple[Tensor, ...], name: str, accepted: Mapping[str, Any]) -> Iterator[Finding]:
    """Types of numbers that no engine applies."""
    wrong = sorted({tensor.dtype for tensor in tensors} - set(accepted))
    if wrong:
        reason = "Engines apply LoRA matrices of the types F16, BF16 and F32."
        yield error("dtype", name, ", ".join(map(shown, wrong)), reason, "Save the adapter in one of these.")


def _broken(name: str, what: str) -> Refused:
    remedy = "Copy or download it again, or save the adapter again with PEFT."
    return Refused(error("bad_safetensors", name, "", f"{what}.", remedy))
