"""Which rows make a step: of one kind and one rendering, of similar length, within a bound of tokens. Pure.

The rows of a batch begin with the same tokens, an instruction or an identity, which are computed once for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeVar

from macaron.train.encode import Encoded

RowT = TypeVar("RowT")

MIN_SHARED = 16
"""Tokens from which sharing a prefix is worth a second pass through the model."""


class Limits(NamedTuple):
    """Tokens computed a step, padding included and a shared prefix once; rows a step; rows sorted together."""

    tokens: int
    rows: int
    window: int


class Split(NamedTuple):
    """A batch, cut at the end of its shared prefix: `prefix` may be empty; `rests` are what follows, row by row."""

    prefix: list[int]
    rests: list[list[int]]


def drawn(rows: Sequence[RowT], share: float, random: Random) -> list[RowT]:
    """Rows in random order, each `share` times; of a fraction, that part of the rows is drawn."""
    whole, part = divmod(share, 1)
    chosen = [*rows] * int(whole) + random.sample(rows, math.floor(part * len(rows) + 0.5))
    random.shuffle(chosen)
    return chosen


def batches_of(rows: Sequence[Encoded], limits: Limits) -> list[list[Encoded]]:
    """Rows of one rendering as batches."""
    shared = shared_length(rows)
    batches: list[list[Encoded]] = []
    for start in range(0, len(rows), limits.window):
        batch: list[Encoded] = []
        for row in sorted(rows[start : start + limits.window], key=lambda row: len(row.ids)):
            # Sorted, so that the row that comes is the longest and decides the width.
            cost = shared + (len(batch) + 1) * (len(row.ids) - shared)
            if batch and (len(batch) == limits.rows or cost > limits.tokens):
                batches.append(batch)
                batch = []
            batch.append(row)
        batches.append(batch)
    return batches


def shared_length(rows: Sequence[Encoded]) -> int:
    """How many tokens all the rows begin with, up to the last one from which a token with loss is predicted."""
    if not rows:
        return 0
    first = rows[0].ids
    length = min(row.learned[0] - 1 for row in rows)
    for row in rows[1:]:
        if row.ids[:length] != first[:length]:
            length = next(at for at in range(length) if row.ids[at] != first[at])
    return length


def split(rows: Sequence[Encoded], *, always: bool = False) -> Split:
    """Rows without the tokens they share, where that is worth it, or `always`."""
    shared = shared_length(rows)
    if not always and (len(rows) < 2 or shared < MIN_SHARED):
        shared = 0
    return Split(rows[0].ids[:shared], [row.ids[shared:] for row in rows])


def computed(rows: Sequence[Encoded]) -> int:
    """Tokens that are computed for a batch: padding included, what all its rows begin with once."""
    cut = split(rows)
    return len(cut.prefix) + len(cut.rests) * max(map(len, cut.rests))
