"""What a report is made of, whether it is shown in a terminal or as a page."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from macaron.train.runs.read import Point


class Note(Struct, frozen=True):
    """A paragraph; one that `warns` says what is wrong."""

    text: str
    warns: bool = False


class Grid(Struct, frozen=True):
    """A table.

    Attributes:
        numbers: positions of the columns that are set to the right.
        marked: positions of the rows that stand out.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()
    marked: frozenset[int] = frozenset()


class Series(Struct, frozen=True):
    """A line of a chart."""

    name: str
    points: Sequence[Point]


class Chart(Struct, frozen=True):
    """Values over steps, a line a run."""

    title: str
    series: Sequence[Series]


class Fold(Struct, frozen=True):
    """Texts one does not want to read unless one asks for them, each under a name."""

    title: str
    texts: Sequence[tuple[str, str]]


Block = Note | Grid | Chart | Fold
