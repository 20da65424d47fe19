"""Choosing rows to look at, and counting them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from random import Random
from statistics import median
from typing import NamedTuple

from msgspec import Struct

from macaron.train.data.rows import AnyRow, PreferenceRow, RouteRow, SftRow
from macaron.train.data.split import group_of
from macaron.train.data.text import whole_text


class Wanted(Struct, frozen=True):
    """Which rows: those with this id, source and label; empty for any."""

    id: str = ""
    source: str = ""
    label: str = ""

    def matches(self, row: AnyRow) -> bool:
        """Whether a row is one of these; only a routed row has a label."""
        label = row.label if isinstance(row, RouteRow) else ""
        pairs = ((self.id, row.id), (self.source, row.source), (self.label, label))
        return all(not wanted or wanted == found for wanted, found in pairs)


class Counts(NamedTuple):
    """Rows of one split, source, kind and label, and what they are like.

    Attributes:
        label: of routed rows, else empty.
        groups: that a split may not divide.
        characters: of a row's text without system messages, in the middle and at most.
    """

    split: str
    source: str
    kind: str
    label: str
    rows: int
    groups: int
    languages: tuple[str, ...]
    characters: int
    longest: int


def sample(rows: Iterable[AnyRow], wanted: Wanted, count: int, seed: int) -> list[AnyRow]:
    """At most `count` of the wanted rows, each as likely as any other, in their order."""
    random = Random(seed)
    held: list[tuple[int, AnyRow]] = []
    for number, row in enumerate(row for row in rows if wanted.matches(row)):
        if len(held) < count:
            held.append((number, row))
        elif (place := random.randrange(number + 1)) < count:
            held[place] = (number, row)
    return [row for _, row in sorted(held, key=lambda pair: pair[0])]


def count_rows(split: str, rows: Iterable[AnyRow]) -> Iterator[Counts]:
    """The rows of a split by source, kind and label, sorted."""
    seen: dict[tuple[str, str, str], list[AnyRow]] = defaultdict(list)
    for row in rows:
        seen[row.source, kind_of(row), row.label if isinstance(row, RouteRow) else ""].append(row)
    for (source, kind, label), found in sorted(seen.items()):
        lengths = [len(whole_text(row)) for row in found]
        languages = tuple(sorted({row.language for row in found}))
        groups = len({group_of(row) for row in found})
        middle = round(median(lengths))
        yield Counts(split, source, kind, label, len(found), groups, languages, middle, max(lengths))


def kind_of(row: AnyRow) -> str:
    """The `kind` that stands in the file."""
    match row:
        case SftRow():
            return "sft"
        case PreferenceRow():
            return "preference"
        case RouteRow():
            return "route"
