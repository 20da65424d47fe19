"""Probes, route checks, shadow and canary."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from macaron.errors import BadRequest
from macaron.registry.check import Effect
from macaron.registry.desired import (
    Conflict,
    Desired,
    Key,
    RouteCheck,
    canary,
    disable,
    drain,
    in_force,
    probed,
    promote,
    retire_idle,
    route_checked,
    shadow,
    waive_route_check,
)
from tests.registry.desired.states import (
    CARD,
    GOOD,
    L2,
    L4,
    PROFILE,
    REPLICAS,
    candidate,
    empty,
    live,
    registered,
    revision,
)

SECOND = revision(2)


def both() -> Desired:
    """One live revision and one proved candidate."""
    return candidate(live(empty(), L4, 1), L4, 2)


def state(desired: Desired, seed: int) -> tuple[str, float]:
    """State and share of a revision of L4."""
    item = desired.find(L4).find(revision(seed))
    return item.state, item.share


def test_the_newest_probe_of_a_replica_counts() -> None:
    desired = probed(registered(empty(), L4, 1), L4, revision(1), "one", Effect(0.001, 0.01, 6))
    assert not desired.find(L4).find(revision(1)).probed[0].passed
    desired = probed(desired, L4, revision(1), "one", GOOD)
    assert [(item.replica, item.passed, item.mean) for item in desired.find(L4).find(revision(1)).probed] == [
        ("one", True, 0.4)
    ]


def test_the_same_probe_again_changes_nothing() -> None:
    desired = probed(registered(empty(), L4, 1), L4, revision(1), "one", GOOD)
    assert probed(desired, L4, revision(1), "one", GOOD) is desired


def test_a_probe_that_gave_no_numbers_has_failed() -> None:
    effect = Effect(math.nan, math.nan, 6, finite=False)
    desired = probed(registered(empty(), L4, 1), L4, revision(1), "one", effect)
    assert [(item.passed, item.mean) for item in desired.find(L4).find(revision(1)).probed] == [(False, None)]


@pytest.mark.parametrize("replica", ["", "x" * 129, "a\nb"])
def test_a_replica_without_a_usable_name_is_refused(replica: str) -> None:
    with pytest.raises(BadRequest, match="replica"):
        probed(registered(empty(), L4, 1), L4, revision(1), replica, GOOD)


def test_of_many_replicas_the_oldest_records_go() -> None:
    desired = registered(empty(), L4, 1)
    for number in range(300):
        desired = probed(desired, L4, revision(1), f"replica-{number}", GOOD)
    kept = desired.find(L4).find(revision(1)).probed
    assert (len(kept), kept[0].replica, kept[-1].replica) == (256, "replica-44", "replica-299")


@pytest.mark.parametrize("replicas", [(*REPLICAS, "three"), ()])
def test_shadow_canary_and_promotion_need_the_probes_of_all_replicas(replicas: tuple[str, ...]) -> None:
    desired = both()
    with pytest.raises(Conflict, match="no passed probe on"):
        shadow(desired, L4, SECOND, 0.5, replicas)
    with pytest.raises(Conflict, match="no passed probe on"):
        canary(desired, L4, SECOND, 0.5, replicas, PROFILE)
    with pytest.raises(Conflict, match="no passed probe on"):
        promote(desired, L4, SECOND, replicas, PROFILE)


def test_a_replica_whose_last_probe_failed_stops_a_promotion() -> None:
    desired = probed(both(), L4, SECOND, "two", Effect(0.0, 0.0, 6))
    with pytest.raises(Conflict, match="no passed probe on two"):
        promote(desired, L4, SECOND, REPLICAS, PROFILE)


def test_a_shadow_needs_no_route_check_but_a_canary_does() -> None:
    desired = registered(live(empty(), L4, 1), L4, 2)
    for replica in REPLICAS:
        desired = probed(desired, L4, SECOND, replica, GOOD)
    assert state(shadow(desired, L4, SECOND, 0.5, REPLICAS), 2) == ("shadow", 0.5)
    with pytest.raises(Conflict, match="no route check") as caught:
        canary(desired, L4, SECOND, 0.5, REPLICAS, PROFILE)
    assert caught.value.code == "route_check_missing"


def test_a_failed_route_check_stops_a_promotion() -> None:
    desired = route_checked(both(), L4, SECOND, RouteCheck(False, "standing:0", detail="L1 loses 9 of 40"))
    with pytest.raises(Conflict, match="L1 loses 9 of 40") as caught:
        promote(desired, L4, SECOND, REPLICAS, PROFILE)
    assert caught.value.code == "route_check_failed"


def test_a_route_check_is_out_of_date_when_another_card_came_into_force() -> None:
    desired = live(candidate(empty(), L4, 2), Key("L5"), 3, replace(CARD, name="Tax"))
    with pytest.raises(Conflict, match="in force is standing:") as caught:
        promote(desired, L4, SECOND, REPLICAS, PROFILE)
    assert caught.value.code == "route_check_stale"


def test_a_waived_route_check_does_not_grow_old_and_keeps_its_reason() -> None:
    desired = waive_route_check(candidate(empty(), L4, 2), L4, SECOND, " measured elsewhere ")
    desired = live(desired, Key("L5"), 3, replace(CARD, name="Tax"))
    desired = promote(desired, L4, SECOND, REPLICAS, PROFILE)
    check = desired.find(L4).find(SECOND).route_check
    assert check is not None
    assert (check.waived, desired.find(L4).live) == ("measured elsewhere", SECOND)


def test_a_waiver_without_a_reason_is_refused() -> None:
    with pytest.raises(BadRequest, match="why the route check is waived"):
        waive_route_check(both(), L4, SECOND, "  ")


@pytest.mark.parametrize("check", [RouteCheck(True), RouteCheck(True, "standing:0", waived="because")])
def test_a_route_check_names_what_it_was_made_against(check: RouteCheck) -> None:
    with pytest.raises(BadRequest, match="names what was in force"):
        route_checked(both(), L4, SECOND, check)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.01, math.nan, math.inf])
def test_a_share_outside_the_range_is_refused(share: float) -> None:
    with pytest.raises(BadRequest, match="above 0 and at most 1"):
        shadow(both(), L4, SECOND, share, REPLICAS)


def test_a_shadow_becomes_a_canary_with_another_share() -> None:
    desired = shadow(both(), L4, SECOND, 1, REPLICAS)
    desired = canary(desired, L4, SECOND, 0.1, REPLICAS, PROFILE)
    assert state(desired, 2) == ("canary", 0.1)
    assert state(desired, 1) == ("live", 0)


def test_a_trial_leaves_what_is_in_force_alone() -> None:
    desired = both()
    tried = canary(desired, L4, SECOND, 0.5, REPLICAS, PROFILE)
    assert in_force(PROFILE, tried, "") == in_force(PROFILE, desired, "")


def test_a_label_of_the_profile_is_tried_beside_the_profiles_own() -> None:
    desired = shadow(candidate(empty(), L2, 2, None), L2, SECOND, 0.5, REPLICAS)
    assert desired.find(L2).find(SECOND).state == "shadow"


def test_a_first_revision_of_a_new_label_has_nothing_to_be_tried_beside() -> None:
    with pytest.raises(Conflict, match="nothing is live for L4"):
        shadow(candidate(empty(), L4, 2), L4, SECOND, 0.5, REPLICAS)


def test_one_revision_of_a_label_is_on_trial_at_a_time() -> None:
    desired = shadow(candidate(both(), L4, 3), L4, SECOND, 0.5, REPLICAS)
    with pytest.raises(Conflict, match="is in shadow") as caught:
        canary(desired, L4, revision(3), 0.5, REPLICAS, PROFILE)
    assert caught.value.code == "trial_running"


def test_the_live_revision_is_not_put_on_trial() -> None:
    with pytest.raises(Conflict, match="is live"):
        shadow(both(), L4, revision(1), 0.5, REPLICAS)


def test_a_disabled_label_has_no_trials_and_no_promotions() -> None:
    desired = disable(both(), L4)
    with pytest.raises(Conflict, match="enable it first"):
        shadow(desired, L4, SECOND, 0.5, REPLICAS)
    with pytest.raises(Conflict, match="enable it first"):
        promote(desired, L4, SECOND, REPLICAS, PROFILE)


def test_a_retired_revision_takes_no_records_and_no_trial() -> None:
    desired = retire_idle(drain(both(), L4, SECOND), ())
    with pytest.raises(Conflict, match="register it again"):
        probed(desired, L4, SECOND, "one", GOOD)
    with pytest.raises(Conflict, match="register it again"):
        waive_route_check(desired, L4, SECOND, "why not")
    with pytest.raises(Conflict, match="register it again"):
        shadow(desired, L4, SECOND, 0.5, REPLICAS)
    with pytest.raises(Conflict, match="register it again"):
        promote(desired, L4, SECOND, REPLICAS, PROFILE)
