"""Known values and laws of the statistics."""

from __future__ import annotations

import math
import random
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.evals.stats import (
    accuracy_interval,
    cluster_bootstrap,
    clustered_mean,
    mcnemar,
    paired,
    percentile,
    wilson,
)

counts = st.integers(0, 400)
outcomes = st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), min_size=2, max_size=60)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [(0, 0, 1.0), (5, 5, 1.0), (10, 0, 2 / 1024), (1, 9, 22 / 1024), (8, 1, 20 / 512)],
)
def test_mcnemar_is_exact(first: int, second: int, p: float) -> None:
    assert mcnemar(first, second) == pytest.approx(p, rel=1e-12)


@given(counts, counts)
def test_mcnemar_is_symmetric_and_a_probability(first: int, second: int) -> None:
    p = mcnemar(first, second)
    assert 0 < p <= 1
    assert p == pytest.approx(mcnemar(second, first))


@given(st.integers(1, 100))
def test_mcnemar_falls_as_the_discordance_grows_one_sided(count: int) -> None:
    assert mcnemar(count + 1, 0) <= mcnemar(count, 0)


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        mcnemar(-1, 2)


def test_wilson_has_its_known_value() -> None:
    low, high = wilson(81, 263)
    assert low == pytest.approx(0.2553, abs=1e-4)
    assert high == pytest.approx(0.3662, abs=1e-4)


@given(counts, counts)
def test_wilson_contains_the_rate(one: int, other: int) -> None:
    passed, n = min(one, other), max(one, other)
    low, high = wilson(passed, n)
    assert 0 <= low <= high <= 1
    assert n == 0 or low - 1e-12 <= passed / n <= high + 1e-12


def test_more_passes_than_cases_are_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        wilson(3, 2)


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=40))
def test_a_cluster_a_case_is_the_ordinary_standard_error(values: list[float]) -> None:
    found = clustered_mean(values, range(len(values)))
    assert found.value == pytest.approx(fmean(values), abs=1e-9)
    assert found.error == pytest.approx(stdev(values) / math.sqrt(len(values)), abs=1e-9)
    assert found.freedom == pytest.approx(len(values) - 1)


@given(st.integers(2, 30), st.integers(1, 6))
def test_equal_clusters_have_one_degree_of_freedom_less_than_their_number(clusters: int, size: int) -> None:
    names = [name for name in range(clusters) for _ in range(size)]
    assert clustered_mean([1.0] * len(names), names).freedom == pytest.approx(clusters - 1)


def test_a_dominant_cluster_leaves_hardly_more_than_one_degree_of_freedom() -> None:
    names = ["big"] * 97 + ["a", "b", "c"]
    assert clustered_mean([0.0] * 100, names).freedom < 1.2


@given(outcomes)
def test_repeating_every_case_in_its_cluster_adds_no_certainty(cases: list[tuple[bool, str]]) -> None:
    values, names = [float(value) for value, _ in cases], [name for _, name in cases]
    once, twice = clustered_mean(values, names), clustered_mean(values * 2, names * 2)
    assert twice.error == pytest.approx(once.error)
    assert twice.freedom == pytest.approx(once.freedom)


def test_no_values_and_missing_clusters_are_refused() -> None:
    with pytest.raises(ValueError, match="0 values"):
        clustered_mean([], [])
    with pytest.raises(ValueError, match="1 clusters"):
        clustered_mean([1.0, 0.0], ["a"])


def test_one_source_gets_wilson() -> None:
    assert accuracy_interval([True] * 8 + [False] * 2, ["a"] * 10) == wilson(8, 10)


def test_few_sources_stay_wide_even_where_everything_passed() -> None:
    names = [name for name in "abc" for _ in range(100)]
    low, high = accuracy_interval([True] * 300, names)
    assert high == 1
    assert low < wilson(300, 300).low < 1


def test_sources_that_differ_widen_the_interval() -> None:
    names = [name for name in "abcd" for _ in range(50)]
    mixed = accuracy_interval(([True] * 40 + [False] * 10) * 4, names)
    apart = accuracy_interval([True] * 150 + [True] * 10 + [False] * 40, names)
    assert apart.high - apart.low > 2 * (mixed.high - mixed.low)


@given(outcomes)
def test_an_accuracy_lies_in_its_interval(cases: list[tuple[bool, str]]) -> None:
    passed, names = [value for value, _ in cases], [name for _, name in cases]
    low, high = accuracy_interval(passed, names)
    assert 0 <= low <= fmean(passed) + 1e-9
    assert fmean(passed) - 1e-9 <= high <= 1


def test_the_interval_covers_the_truth_for_few_sources_of_unlike_size() -> None:
    dice = random.Random(7)
    sizes, truth, hits, rounds = (120, 60, 40, 20, 20, 10), 0.8, 0, 300
    for _ in range(rounds):
        passed, names = [], []
        for name, size in enumerate(sizes):
            rate = dice.betavariate(16, 4)
            passed += [dice.random() < rate for _ in range(size)]
            names += [name] * size
        low, high = accuracy_interval(passed, names)
        hits += low <= truth <= high
    assert hits / rounds >= 0.92


def test_the_bootstrap_is_seeded_and_draws_whole_clusters() -> None:
    values = [0.0, 0.0, 1.0, 1.0]

    def mean(positions: object) -> float:
        assert isinstance(positions, list)
        return fmean(values[position] for position in positions)

    one = cluster_bootstrap(4, ["a", "a", "b", "b"], mean, seed=3, resamples=200)
    assert one == cluster_bootstrap(4, ["a", "a", "b", "b"], mean, seed=3, resamples=200)
    assert one == (0.0, 1.0)
    assert cluster_bootstrap(4, ["a"] * 4, mean, resamples=50) == (0.5, 0.5)


def test_the_bootstrap_agrees_with_the_formula_where_clusters_are_many() -> None:
    dice = random.Random(1)
    values = [dice.random() for _ in range(200)]
    names = [position // 2 for position in range(200)]
    found = clustered_mean(values, names)
    low, high = cluster_bootstrap(200, names, lambda drawn: fmean(values[place] for place in drawn), seed=1)
    assert high - low == pytest.approx(2 * 1.96 * found.error, rel=0.15)


def test_a_pair_counts_what_only_one_passed() -> None:
    found = paired([True, True, True, False], [True, False, False, True], ["a", "b", "c", "d"])
    assert (found.n, found.only_first, found.only_second) == (4, 2, 1)
    assert found.difference == pytest.approx(0.25)
    assert found.p == 1.0


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from("abc")), min_size=1, max_size=40))
def test_swapping_a_pair_turns_its_sign(cases: list[tuple[bool, bool, str]]) -> None:
    first, second, names = map(list, zip(*cases, strict=True))
    one, other = paired(first, second, names), paired(second, first, names)
    assert one.difference == pytest.approx(-other.difference)
    assert one.interval.low == pytest.approx(-other.interval.high)
    assert one.p == pytest.approx(other.p)
    assert one.interval.low - 1e-9 <= one.difference <= one.interval.high + 1e-9


def test_results_of_unlike_length_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="paired"):
        paired([True], [True, False], ["a"])


def test_percentiles_are_interpolated() -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert percentile([], 0.9) == 0.0
