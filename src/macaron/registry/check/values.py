"""The numbers of an adapter, streamed: one pass hashes them and finds those that are not finite, too large, or all
zero. Memory is bounded, whatever the file's size."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, NamedTuple

from msgspec import Struct

from macaron.models.safetensors import Tensor, TensorFile
from macaron.models.source import changed
from macaron.registry.check.report import Fault, Finding, error, grouped, shown, warning

LARGEST = 65_504.0
"""The largest number of 16 bits, in which adapters are served."""


class _Bits(NamedTuple):
    """A type of numbers as whole numbers: all bits but the sign, the bits of the exponent, and `LARGEST`. Magnitudes
    of floats are in the order of their bits, so nothing has to be computed."""

    code: str
    magnitude: int
    exponent: int
    largest: int


FLOATS: Mapping[str, _Bits] = {
    "F32": _Bits("<u4", 0x7FFFFFFF, 0x7F800000, 0x477FE000),
    "F16": _Bits("<u2", 0x7FFF, 0x7C00, 0x7BFF),
    "BF16": _Bits("<u2", 0x7FFF, 0x7F80, 0x477F),
}


class Facts(Struct, frozen=True):
    """What holds of one tensor's numbers."""

    finite: bool
    large: bool
    zero: bool


class Scan(Struct, frozen=True):
    """What holds of all of them, by the tensors' names, and the SHA-256 of the whole file in hex."""

    facts: Mapping[str, Facts]
    sha256: str


def scan(file: IO[bytes], found: TensorFile) -> Scan:
    """Read every tensor once, in the file's order. Types other than F32, F16 and BF16 are hashed only.

    Args:
        file: the one of which `found` is the header.

    Raises:
        ConfigError: the file became shorter, or longer, while it was read.
    """
    digest = hashlib.sha256(found.head)
    facts: dict[str, Facts] = {}
    for name, tensor in found.tensors.items():
        known = Facts(True, False, True)
        for chunk in found.chunks(file, name):
            digest.update(chunk)
            if tensor.dtype in FLOATS:
                known = _joined(known, _facts(chunk, FLOATS[tensor.dtype]))
        if tensor.dtype in FLOATS:
            facts[name] = known
    file.seek(found.size)
    if file.read(1):
        raise changed(found.path)
    return Scan(facts, digest.hexdigest())


def dtype_findings(tensors: Iterable[Tensor], name: str) -> Iterator[Finding]:
    """Types of numbers that no engine applies."""
    wrong = sorted({tensor.dtype for tensor in tensors} - FLOATS.keys())
    if wrong:
        reason = "Engines apply LoRA matrices of the types F16, BF16 and F32."
        yield error("dtype", name, ", ".join(map(shown, wrong)), reason, "Save the adapter in one of these.")


def value_findings(scanned: Scan, name: str) -> Iterator[Finding]:
    """What is wrong with the numbers: not finite, too large, or without any effect."""
    yield from grouped(name, ((tensor, _NOT_FINITE) for tensor, found in scanned.facts.items() if not found.finite))
    yield from grouped(name, ((tensor, _LARGE) for tensor, found in scanned.facts.items() if found.large))
    for side in "AB":
        ending = f".lora_{side}.weight"
        sides = {tensor: found.zero for tensor, found in scanned.facts.items() if tensor.endswith(ending)}
        zero = [tensor for tensor, is_zero in sides.items() if is_zero]
        if zero and len(zero) == len(sides):
            reason = f"Every lora_{side} is zero, so the adapter changes nothing."
            remedy = "Train it; a new PEFT adapter begins like this."
            yield error("no_effect", name, f"{len(zero)} tensors", reason, remedy)
        elif zero:
            reason = f"These lora_{side} are zero, so their layers are those of the base."
            remedy = "See whether the training reached these layers."
            yield warning("zero_layers", name, f"{len(zero)} of {len(sides)}: {zero[0]}", reason, remedy)


_NOT_FINITE = Fault(
    "not_finite", "The tensors hold NaN or infinite numbers.", "The training went wrong; train it again."
)
_LARGE = Fault(
    "too_large_values",
    f"The tensors hold numbers beyond {LARGEST:g}, which become infinite in 16 bits.",
    "The training went wrong; train it again with a lower learning rate.",
)


def _facts(chunk: bytes, bits: _Bits) -> Facts:
    import numpy as np

    magnitudes = np.frombuffer(chunk, bits.code) & bits.magnitude
    largest = int(magnitudes.max()) if magnitudes.size else 0
    # All bits of the exponent are set in what is infinite or no number.
    return Facts(largest < bits.exponent, bits.largest < largest < bits.exponent, largest == 0)


def _joined(one: Facts, other: Facts) -> Facts:
    return Facts(one.finite and other.finite, one.large or other.large, one.zero and other.zero)
