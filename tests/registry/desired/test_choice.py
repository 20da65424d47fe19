"""Which revision answers a turn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from macaron.registry.desired import Entry, canary, chosen, disable, shadow, shadowed
from tests.registry.desired.states import L4, PROFILE, REPLICAS, candidate, empty, live, registered, revision

BOTH = candidate(live(empty(), L4, 1), L4, 2)
SHARES = st.floats(min_value=0, max_value=1, exclude_min=True)


def with_canary(share: float) -> Entry:
    """L4 with its second revision answering a share of sessions."""
    return canary(BOTH, L4, revision(2), share, REPLICAS, PROFILE).find(L4)


def with_shadow(share: float) -> Entry:
    """L4 with its second revision answering a share of turns in shadow."""
    return shadow(BOTH, L4, revision(2), share, REPLICAS).find(L4)


@given(session=st.text(), one=SHARES, other=SHARES)
def test_a_larger_share_moves_sessions_only_to_the_canary(session: str, one: float, other: float) -> None:
    less, more = (chosen(with_canary(share), session) for share in sorted((one, other)))
    assert less is not None
    assert more is not None
    assert (less.state, more.state) in {("live", "live"), ("live", "canary"), ("canary", "canary")}


@given(session=st.text())
def test_a_share_of_one_is_every_session_and_every_turn(session: str) -> None:
    answering, beside = chosen(with_canary(1), session), shadowed(with_shadow(1), session)
    assert answering is not None
    assert beside is not None
    assert answering.revision == beside.revision == revision(2)


def test_a_share_is_about_that_part_of_sessions_and_turns() -> None:
    canaries, shadows = with_canary(0.3), with_shadow(0.3)
    names = [f"s{number}" for number in range(2000)]
    answered = sum(found.state == "canary" for name in names if (found := chosen(canaries, name)))
    assert 520 < answered < 680
    assert 520 < sum(shadowed(shadows, name) is not None for name in names) < 680


def test_another_canary_takes_other_sessions() -> None:
    desired = candidate(BOTH, L4, 3)
    first, second = (canary(desired, L4, revision(seed), 0.5, REPLICAS, PROFILE).find(L4) for seed in (2, 3))
    names = [f"s{number}" for number in range(100)]
    sides = {(chosen(first, name) == first.trial, chosen(second, name) == second.trial) for name in names}
    assert len(sides) == 4


def test_a_session_keeps_its_side_over_releases() -> None:
    entry = with_canary(0.5)
    trying = [number for number in range(12) if chosen(entry, f"s{number}") == entry.trial]
    assert trying == [2, 4, 5, 10]


def test_a_shadow_answers_nobody_and_a_canary_shadows_nothing() -> None:
    answering = chosen(with_shadow(1), "s")
    assert answering is not None
    assert answering.state == "live"
    assert shadowed(with_canary(1), "s") is None


def test_nothing_is_chosen_where_nothing_is_live_or_the_label_is_disabled() -> None:
    assert chosen(registered(empty(), L4, 1).find(L4), "s") is None
    off = disable(canary(BOTH, L4, revision(2), 1, REPLICAS, PROFILE), L4).find(L4)
    assert chosen(off, "s") is None
    off = disable(shadow(BOTH, L4, revision(2), 1, REPLICAS), L4).find(L4)
    assert shadowed(off, "s") is None
