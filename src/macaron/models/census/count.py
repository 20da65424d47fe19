"""The numbers of a census, and how they add up. What is not known is None, with the reason beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from macaron.models.census.cache import KvCache


class Tensor(Protocol):
    """A tensor as its file's header describes it: type, number of values, and bytes in the file."""

    @property
    def dtype(self) -> str: ...
    @property
    def values(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class Count(Struct, frozen=True):
    """Values of one type, and the bytes they take."""

    values: int
    bytes: int


class Weights(Struct, frozen=True):
    """All tensors of a file, or of the shards of a model.

    Attributes:
        dtypes: counts by type, most values first.
        notes: what a reader of the numbers should know of them.
    """

    values: int
    bytes: int
    tensors: int
    dtypes: Mapping[str, Count]
    notes: tuple[str, ...] = ()


class Part(Struct, frozen=True):
    """The base, or what one specialist adds to it.

    Attributes:
        label: `base`, or the specialist's label.
        name: the base's or the specialist's name.
        values: stored values; 0 for a specialist that is only a prompt.
        rounded: the values were published in round numbers.
        source: where the numbers come from.
        unknown: why a number is None, and how it can be known; empty where all are known.
    """

    label: str
    name: str
    values: int | None = None
    bytes: int | None = None
    dtypes: Mapping[str, Count] = {}
    rank: int | None = None
    rounded: bool = False
    source: str = ""
    unknown: str = ""
    prompt_only: bool = False


class Total(Struct, frozen=True):
    """A sum over parts; None where it is not known of one of them, which `unknown` names."""

    values: int | None
    bytes: int | None
    unknown: str = ""


class Release(Struct, frozen=True):
    """The size in a model's name: the label, and what it counts."""

    label: str
    counts: str
    source: str


class Census(Struct, frozen=True):
    """What one base and its adapters hold.

    Attributes:
        subject: the profile's name, or the path that was looked at.
        notes: what a reader of the numbers should know of them.
    """

    subject: str
    base: Part
    adapters: tuple[Part, ...]
    cache: KvCache
    release: Release | None = None
    notes: tuple[str, ...] = ()

    @property
    def resident(self) -> Total:
        """One base with all its adapters."""
        return add([self.base, *self.adapters])

    @property
    def copies(self) -> int:
        """Models that would serve the same specialists without adapters: one for each adapter, merged into a copy of
        the base, and the bare base where a specialist is only a prompt on it."""
        trained = sum(not part.prompt_only for part in self.adapters)
        return trained + any(part.prompt_only for part in self.adapters)

    @property
    def merged(self) -> Total:
        """All those copies. A merged adapter changes the base's values and adds none."""
        return add([self.base] * self.copies)


def tally(tensors: Iterable[Tensor], notes: tuple[str, ...] = ()) -> Weights:
    """The tensors of a model or an adapter, added up."""
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for tensor in tensors:
        for place, amount in enumerate((tensor.values, tensor.bytes, 1)):
            sums[tensor.dtype][place] += amount
    values, size, number = (sum(column) for column in zip(*sums.values(), strict=True)) if sums else (0, 0, 0)
    ordered = sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))
    return Weights(values, size, number, {dtype: Count(held[0], held[1]) for dtype, held in ordered}, notes)


def add(parts: Iterable[Part]) -> Total:
    """The sum of parts, as far as all of them are known."""
    held = tuple(parts)
    lost = {
        "values": dict.fromkeys(part.label for part in held if part.values is None),
        "bytes": dict.fromkeys(part.label for part in held if part.bytes is None),
    }
    unknown = "; ".join(f"{what} of {', '.join(labels)}" for what, labels in lost.items() if labels)
    return Total(_sum(part.values for part in held), _sum(part.bytes for part in held), unknown)


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
