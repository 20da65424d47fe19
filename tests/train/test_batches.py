"""Batches: every row once, within the bounds, cut at what all their rows begin with."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from macaron.train.batches import MIN_SHARED, Limits, batches_of, drawn, shared_length, split
from macaron.train.encode import Encoded


@st.composite
def rows_of_one_rendering(draw: st.DrawFn) -> list[Encoded]:
    head = draw(st.lists(st.integers(0, 3), max_size=40))
    rows = []
    for _ in range(draw(st.integers(1, 30))):
        rest = draw(st.lists(st.integers(0, 3), min_size=2, max_size=30))
        ids = head + rest
        places = st.integers(1, len(ids) - 1)
        rows.append(Encoded(ids, sorted(draw(st.sets(places, min_size=1, max_size=4)))))
    return rows


@given(rows_of_one_rendering(), st.integers(1, 200), st.integers(1, 8), st.integers(1, 40))
def test_every_row_is_in_one_batch_and_batches_keep_their_bounds(
    rows: list[Encoded], tokens: int, most: int, window: int
) -> None:
    batches = batches_of(rows, Limits(tokens, most, window))
    assert Counter(id(row) for batch in batches for row in batch) == Counter(map(id, rows))
    shared = shared_length(rows)
    for batch in batches:
        width = max(len(row.ids) for row in batch) - shared
        assert len(batch) <= most
        assert len(batch) == 1 or shared + len(batch) * width <= tokens


@given(rows_of_one_rendering())
def test_a_split_batch_is_the_rows_again_and_predicts_every_token_with_loss(rows: list[Encoded]) -> None:
    prefix, rests = split(rows)
    assert [prefix + rest for rest in rests] == [row.ids for row in rows]
    assert all(len(prefix) < row.learned[0] for row in rows)
    assert not prefix or len(prefix) >= MIN_SHARED


def test_a_share_above_one_repeats_rows_and_a_fraction_draws_some() -> None:
    rows = list(range(10))
    counts = Counter(drawn(rows, 2.3, Random(1)))
    assert sorted(counts.values()) == [2] * 7 + [3] * 3
    assert drawn(rows, 0.0, Random(1)) == []
