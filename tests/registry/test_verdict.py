"""What a route check makes of its rows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.evals.stats import wilson
from macaron.registry.desired.bounds import MAX_NOTE
from macaron.registry.verdict import Routed, share, verdict

LABELS = ("L0", "L1", "L2")


@settings(deadline=None)  # the first call imports scipy
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_wilsons(case: tuple[int, int]) -> None:
    found, wanted = share(*case), wilson(*case)
    assert (found.low, found.high) == pytest.approx(wanted, abs=1e-9)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_of_nothing_nothing_is_known() -> None:
    assert (share(0, 0).low, share(0, 0).high, share(0, 0).value) == (0.0, 1.0, 0.0)


def test_only_what_was_right_can_be_lost() -> None:
    rows = [Routed("L1", "L1", "L4"), Routed("L1", "L2", "L4"), Routed("L1", "L2", "L1"), Routed("L1", "L1", "L1")]
    loss = verdict("L4", LABELS, [*rows, Routed("L4", None, "L4")], 0.02).losses[0]
    assert (loss.right, loss.lost.count, loss.lost.n, loss.gained, loss.to) == (2, 1, 4, 1, {"L4": 1})


@pytest.mark.parametrize(("lost", "passed"), [(0, True), (2, True), (3, False)])
def test_a_label_may_lose_its_margin_and_no_more(lost: int, passed: bool) -> None:
    rows = [Routed("L1", "L1", "L4" if number < lost else "L1") for number in range(100)]
    made = verdict("L4", LABELS, [*rows, Routed("L4", None, "L4")], 0.02)
    assert made.passed is passed
    assert ("L1 loses more than the margin" in made.detail) is not passed


@pytest.mark.parametrize(("won", "passed"), [(0, False), (4, False), (5, True), (10, True)])
def test_a_newcomer_wins_at_least_half_of_its_examples(won: int, passed: bool) -> None:
    rows = [Routed("L4", None, "L4" if number < won else "L2") for number in range(10)]
    assert verdict("L4", LABELS, rows, 0.02).passed is passed


def test_a_label_in_force_is_no_newcomer() -> None:
    made = verdict("L1", LABELS, [Routed("L1", "L1", "L1")], 0.0)
    assert (made.won, made.passed, made.unmeasured) == (None, True, ("L0", "L2"))


def test_the_numbers_fit_into_the_record_whatever_the_labels() -> None:
    labels = tuple(f"L{number:031d}" for number in range(60))
    rows = [Routed(label, label, "other") for label in labels for _ in range(80)]
    detail = verdict("N" * 32, labels, [*rows, Routed("N" * 32, None, "L0")], 0.02).detail
    assert len(detail) <= MAX_NOTE
    assert detail.isprintable()
