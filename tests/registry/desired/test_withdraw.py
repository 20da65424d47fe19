"""Taking a revision out of service that turned out to be broken."""

from __future__ import annotations

import pytest

from macaron.registry.desired import (
    Conflict,
    Desired,
    at_revision,
    canary,
    in_force,
    promote,
    retire,
    rollback,
    shadow,
    waive_route_check,
    withdraw,
)
from tests.registry.desired.states import L2, L4, PROFILE, REPLICAS, candidate, empty, live, registered, revision

FIRST, SECOND = revision(1), revision(2)


def states(desired: Desired) -> list[str]:
    return [item.state for item in desired.find(L4).revisions]


def test_the_revision_before_answers_again() -> None:
    desired = withdraw(live(live(empty(), L4, 1), L4, 2), L4, SECOND, "it broke")
    assert states(desired) == ["live", "draining"]
    assert desired.find(L4).previous is None
    assert desired.find(L4).find(SECOND).withdrawn == "it broke"


def test_a_first_revision_leaves_the_label_out_of_routing() -> None:
    desired = withdraw(live(empty(), L4, 1), L4, FIRST, "it broke")
    assert states(desired) == ["draining"]
    assert "L4" not in in_force(PROFILE, desired, "").labels


def test_a_label_of_the_profile_falls_back_to_the_profile() -> None:
    desired = withdraw(live(empty(), L2, 1), L2, FIRST, "it broke")
    assert in_force(PROFILE, desired, "").get("L2") == PROFILE.get("L2")


def test_one_that_cannot_be_rolled_back_goes_all_the_same() -> None:
    desired = rollback(live(live(empty(), L4, 1), L4, 2), L4)
    desired = withdraw(desired, L4, FIRST, "it broke")
    assert (desired.find(L4).live, states(desired)) == ("", ["draining", "draining"])


def test_its_trial_ends_with_it() -> None:
    desired = canary(candidate(live(empty(), L4, 1), L4, 2), L4, SECOND, 0.5, REPLICAS, PROFILE)
    assert states(withdraw(desired, L4, SECOND, "it broke")) == ["live", "draining"]
    desired = shadow(candidate(live(empty(), L4, 1), L4, 2), L4, SECOND, 0.5, REPLICAS)
    assert states(withdraw(desired, L4, FIRST, "it broke")) == ["draining", "draining"]


def test_nothing_is_kept_for_a_rollback_to_it() -> None:
    desired = withdraw(live(live(empty(), L4, 1), L4, 2), L4, FIRST, "it broke")
    assert states(desired) == ["draining", "live"]
    with pytest.raises(Conflict, match="nothing was promoted"):
        rollback(desired, L4)


def test_it_serves_again_only_after_it_was_registered_again() -> None:
    desired = withdraw(live(empty(), L4, 1), L4, FIRST, "it broke")
    desired = waive_route_check(desired, L4, FIRST, "it is fine")
    with pytest.raises(Conflict, match="taken out of service: it broke") as caught:
        promote(desired, L4, FIRST, REPLICAS, PROFILE)
    assert caught.value.code == "withdrawn"
    again = candidate(retire(desired, L4, FIRST, ()), L4, 1)
    assert promote(again, L4, FIRST, REPLICAS, PROFILE).find(L4).live == FIRST


def test_a_candidate_stays_one_and_is_not_promoted() -> None:
    desired = withdraw(candidate(empty(), L4, 1), L4, FIRST, "it broke")
    assert states(desired) == ["candidate"]
    with pytest.raises(Conflict, match="it broke"):
        promote(desired, L4, FIRST, REPLICAS, PROFILE)


def test_turns_that_began_on_it_do_not_go_on_with_it() -> None:
    desired = live(live(empty(), L4, 1), L4, 2)
    assert at_revision(PROFILE, desired, "", "L4", SECOND) is not None
    assert at_revision(PROFILE, withdraw(desired, L4, SECOND, "it broke"), "", "L4", SECOND) is None


def test_what_is_said_again_or_of_a_retired_one_changes_nothing() -> None:
    desired = withdraw(registered(empty(), L4, 1), L4, FIRST, "it broke")
    assert withdraw(desired, L4, FIRST, "again") is desired


def test_the_reason_is_cut_to_one_line() -> None:
    desired = withdraw(registered(empty(), L4, 1), L4, FIRST, "one\ntwo " + "x" * 2000)
    said = desired.find(L4).find(FIRST).withdrawn
    assert said.startswith("one two")
    assert len(said) == 1000
