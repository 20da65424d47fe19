"""Rows that begin alike for longer than all rows do, such as requests to one list of tools, in batches of their own.

A batch computes what its rows begin with only once, so such rows are cheapest together. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from macaron.train.batches import MIN_SHARED, Limits, batches_of, computed, shared_length
from macaron.train.encode import Encoded


class _Choice(NamedTuple):
    """The cheapest way to place the first rows of a list: its cost, and how many of the last ones are a batch."""

    cost: int
    size: int


def clustered_batches(rows: Sequence[Encoded], limits: Limits) -> list[list[Encoded]]:
    """Rows of one rendering as batches, those that begin alike together where this saves tokens.

    Rows that share nothing more than all of them do are divided as `batches_of` divides them. Nothing costs more than
    there, and the copies of a row that is drawn several times never meet in a batch made here.
    """
    plain = batches_of(rows, limits)
    shared = shared_length(rows)
    found: list[list[Encoded]] = []
    left: set[int] = set()
    for places in _rounds(rows):
        ordered = sorted(places, key=lambda place: rows[place].ids)
        for batch in _divided([rows[place] for place in ordered], shared, limits):
            chosen, ordered = ordered[: len(batch)], ordered[len(batch) :]
            if len(batch) > 1:
                found.append(batch)
            else:
                left.update(chosen)
    batches = found + batches_of([row for place, row in enumerate(rows) if place in left], limits)
    return batches if sum(map(computed, batches)) < sum(map(computed, plain)) else plain


def _rounds(rows: Sequence[Encoded]) -> list[list[int]]:
    """The places of all first copies, of all second ones and so on."""
    seen: dict[tuple[int, ...], int] = {}
    rounds: list[list[int]] = []
    for place, row in enumerate(rows):
        number = seen.get(key := tuple(row.ids), 0)
        seen[key] = number + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(place)
    return rounds


def _divided(rows: Sequence[Encoded], shared: int, limits: Limits) -> list[list[Encoded]]:
    """Rows in the order of their tokens, cut where it is cheapest; a row alone is left to the other batches."""
    best = [_Choice(0, 0)]
    for end, row in enumerate(rows, 1):
        choice = _Choice(best[-1].cost + len(row.ids) - shared, 1)
        for size, cost in _batches_ending(rows, end, shared, limits):
            choice = min(choice, _Choice(best[end - size].cost + cost + size * MIN_SHARED, size))
        best.append(choice)
    batches: list[list[Encoded]] = []
    end = len(rows)
    while end:
        size = best[end].size
        batches.append(list(rows[end - size : end]))
        end -= size
    return batches[::-1]


def _batches_ending(rows: Sequence[Encoded], end: int, shared: int, limits: Limits) -> Iterator[tuple[int, int]]:
    """Size and cost of every batch of at least two rows whose last one is before `end` and that begin alike for long
    enough."""
    width, begins = len(rows[end - 1].ids), rows[end - 1].learned[0] - 1
    for size in range(2, min(limits.rows, end) + 1):
        row = rows[end - size]
        begins = _common(row.ids, rows[end - size + 1].ids, min(begins, row.learned[0] - 1))
        width = max(width, len(row.ids))
        cost = begins + size * (width - begins)
        if begins < shared + MIN_SHARED or cost > limits.tokens:
            return
        yield size, cost


def _common(first: Sequence[int], second: Sequence[int], most: int) -> int:
    """How many tokens both begin with, at most `most`, which neither is shorter than."""
    if first[:most] == second[:most]:
        return most
    return next(at for at in range(most) if first[at] != second[at])
