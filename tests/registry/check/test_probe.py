"""What a measured effect means."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.registry.check import NO_EFFECT, Effect, effect_finding, effect_of, total_variation

DISTRIBUTIONS = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.01, 0.12), min_size=3, max_size=8)


@given(DISTRIBUTIONS, DISTRIBUTIONS)
def test_total_variation_is_a_distance_between_0_and_1(one: dict[str, float], other: dict[str, float]) -> None:
    assert total_variation(one, one) == 0.0
    assert total_variation(one, other) == pytest.approx(total_variation(other, one))
    assert 0.0 <= total_variation(one, other) <= 1.0


def test_a_token_that_only_one_side_lists_counts_beyond_the_others_last() -> None:
    assert total_variation({"a": 0.9, "b": 0.1}, {"a": 0.9, "c": 0.08}) == pytest.approx((0.1 - 0.08) / 2)


def test_an_effect_below_the_threshold_is_an_error() -> None:
    finding = effect_finding(Effect(NO_EFFECT * 0.9, 0.5, 6))
    assert (finding.severity, finding.code) == ("error", "probe_no_effect")


def test_an_effect_is_a_note_with_its_size() -> None:
    finding = effect_finding(Effect(0.276, 0.497, 6))
    assert (finding.severity, finding.code) == ("note", "probe_effect")
    assert "0.276" in finding.value


FLAT = ({"a": 0.9, "b": 0.1}, {"c": 0.00002, "d": 0.00002})


@pytest.mark.parametrize("pairs", [[], [({"a": 1.0}, {"a": math.nan})], [({"a": 1.0}, {})], [FLAT, FLAT]])
def test_probabilities_that_are_no_numbers_are_an_error(pairs: list[tuple[dict[str, float], dict[str, float]]]) -> None:
    assert effect_finding(effect_of(pairs)).code == "probe_not_finite"


def test_the_effect_is_the_mean_and_the_largest() -> None:
    effect = effect_of([({"a": 1.0}, {"a": 1.0}), ({"a": 1.0}, {"a": 0.5})])
    assert effect == Effect(0.125, 0.25, 2)
