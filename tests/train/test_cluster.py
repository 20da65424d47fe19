"""Clusters: rows that begin alike share a batch, every row is there once, and nothing costs more than without."""

from __future__ import annotations

import time
from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from macaron.train.batches import MIN_SHARED, Limits, batches_of, computed
from macaron.train.cluster import clustered_batches
from macaron.train.encode import Encoded

LIMITS = Limits(tokens=600, rows=8, window=256)


def row(*parts: list[int]) -> Encoded:
    """A row of which the last part carries loss."""
    ids = [token for part in parts for token in part]
    return Encoded(ids, list(range(len(ids) - len(parts[-1]), len(ids))))


def tokens(random: Random, count: int) -> list[int]:
    return [random.randrange(1000) for _ in range(count)]


def scenes(random: Random, count: int, each: int, *, length: int = 100) -> list[Encoded]:
    """Rows with a common beginning, `each` of them with the same tools, in random order."""
    head = tokens(random, 30)
    rows = []
    for _ in range(count):
        tools = tokens(random, length)
        rows += [row(head, tools, tokens(random, random.randint(5, 20)), tokens(random, 6)) for _ in range(each)]
    random.shuffle(rows)
    return rows


@st.composite
def rows_with_clusters(draw: st.DrawFn) -> list[Encoded]:
    small = st.lists(st.integers(0, 2), max_size=30)
    heads = draw(st.lists(small, min_size=1, max_size=4))
    common = draw(small)
    made = []
    for _ in range(draw(st.integers(1, 30))):
        nested = [part for part in heads if draw(st.booleans())]
        made.append(row(common, *nested, draw(st.lists(st.integers(0, 2), min_size=1, max_size=20)), [1, 2]))
    return made + draw(st.lists(st.sampled_from(made), max_size=5))


limits = st.builds(Limits, st.integers(1, 300), st.integers(1, 8), st.integers(1, 40))


@given(rows_with_clusters(), limits)
def test_every_row_is_in_one_batch_and_batches_keep_their_bounds(rows: list[Encoded], bounds: Limits) -> None:
    batches = clustered_batches(rows, bounds)
    assert Counter(id(row) for batch in batches for row in batch) == Counter(map(id, rows))
    assert all(len(batch) <= bounds.rows for batch in batches)
    # What does not reach MIN_SHARED is not split off, and so not saved; `batches_of` counts it as saved.
    assert all(len(batch) == 1 or computed(batch) <= bounds.tokens + MIN_SHARED * len(batch) for batch in batches)


@given(rows_with_clusters(), limits)
def test_nothing_more_is_computed_than_without_clusters(rows: list[Encoded], bounds: Limits) -> None:
    assert sum(map(computed, clustered_batches(rows, bounds))) <= sum(map(computed, batches_of(rows, bounds)))


@given(st.integers(0, 10**6), st.integers(2, 30))
def test_rows_that_share_nothing_more_than_all_do_are_divided_as_ever(seed: int, count: int) -> None:
    rows = scenes(Random(seed), count, 1)
    assert clustered_batches(rows, LIMITS) == batches_of(rows, LIMITS)


def test_rows_with_the_same_tools_are_one_batch() -> None:
    rows = scenes(Random(1), 20, 6)
    batches = clustered_batches(rows, LIMITS)
    assert len(batches) == 20
    assert all(len({tuple(row.ids[30:130]) for row in batch}) == 1 for batch in batches)
    assert sum(map(computed, batches)) < 0.5 * sum(map(computed, batches_of(rows, LIMITS)))


def test_more_rows_with_the_same_tools_than_a_batch_holds_are_several_batches() -> None:
    rows = scenes(Random(1), 1, 20) + scenes(Random(2), 1, 20)
    assert len(clustered_batches(rows, LIMITS)) == 6


def test_the_copies_of_a_row_are_in_different_batches() -> None:
    rows = scenes(Random(3), 5, 6)
    for batch in clustered_batches(rows * 2, LIMITS):
        assert len({tuple(row.ids) for row in batch}) == len(batch)


def test_the_order_of_the_rows_changes_no_cluster() -> None:
    rows = scenes(Random(4), 12, 5)
    turned = clustered_batches(rows[::-1], LIMITS)
    assert sorted(map(repr, turned)) == sorted(map(repr, clustered_batches(rows, LIMITS)))


def test_the_time_grows_with_the_number_of_rows() -> None:
    bounds = Limits(2048, 16, 256)
    rows = scenes(Random(5), 2000, 7, length=300)
    begun = time.process_time()
    batches = clustered_batches(rows, bounds)
    assert len(batches) == 2000
    assert time.process_time() - begun < 5.0
