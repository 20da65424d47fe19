"""What is in force for whom."""

from __future__ import annotations

from msgspec.structs import replace

from macaron.registry.desired import (
    Desired,
    Key,
    at_revision,
    canary,
    disable,
    engine_name,
    in_force,
    retire_idle,
    rollback,
    select,
    select_shadow,
    shadow,
    standing,
)
from tests.registry.desired.states import (
    CARD,
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

ACME = Key("L4", "acme")


def served(desired: Desired, tenant: str = "") -> list[tuple[str, str]]:
    """Labels and revisions in force."""
    return [(item.label, item.revision) for item in in_force(PROFILE, desired, tenant).specialists]


def test_an_empty_document_leaves_the_profile() -> None:
    assert in_force(PROFILE, empty(), "acme") == PROFILE


def test_a_candidate_is_not_in_force() -> None:
    assert in_force(PROFILE, candidate(empty(), L4, 1), "") == PROFILE


def test_new_labels_stand_behind_the_profiles_in_order_of_registration() -> None:
    desired = live(live(live(empty(), Key("Z9"), 1), L2, 2, None), L4, 3)
    assert [label for label, _ in served(desired)] == ["L0", "L1", "L2", "Z9", "L4"]


def test_a_new_label_is_served_by_its_card_and_its_engine_name() -> None:
    specialist = in_force(PROFILE, live(empty(), L4, 1), "").get("L4")
    assert specialist is not None
    assert specialist.card == "L4: Contracts and statutes. Not for: tax"
    assert (specialist.identity, specialist.adapter) == (CARD.identity, engine_name("L4", revision(1)))
    assert specialist.state == "verified"


def test_a_label_of_the_profile_keeps_its_place_and_without_a_card_its_words() -> None:
    registry = in_force(PROFILE, live(empty(), L2, 1, None), "")
    own, specialist = PROFILE.default_specialist, registry.default_specialist
    changed = {"revision": revision(1), "engine_name": engine_name("L2", revision(1)), "state": "verified"}
    assert specialist == replace(own, **changed)


def test_a_private_label_is_only_its_tenants() -> None:
    desired = live(empty(), ACME, 1)
    assert ("L4", revision(1)) in served(desired, "acme")
    for tenant in ("", "other"):
        assert in_force(PROFILE, desired, tenant) == PROFILE
        assert select(PROFILE, desired, tenant, "L4", "s") is None
        assert at_revision(PROFILE, desired, tenant, "L4", revision(1)) is None


def test_a_tenants_own_comes_before_everybodys() -> None:
    desired = live(live(empty(), L4, 1), ACME, 2)
    assert served(desired, "acme")[-1] == ("L4", revision(2))
    assert served(desired, "other")[-1] == ("L4", revision(1))
    assert len(served(desired, "acme")) == 4


def test_a_tenants_own_that_is_disabled_or_not_live_gives_way_to_everybodys() -> None:
    shared = live(empty(), L4, 1)
    assert served(registered(shared, ACME, 2), "acme")[-1] == ("L4", revision(1))
    assert served(disable(live(shared, ACME, 2), ACME), "acme")[-1] == ("L4", revision(1))


def test_a_session_in_the_canarys_share_is_answered_by_it() -> None:
    desired = canary(candidate(live(empty(), L4, 1), L4, 2), L4, revision(2), 1, REPLICAS, PROFILE)
    found = select(PROFILE, desired, "", "L4", "s")
    assert found is not None
    assert found.revision == revision(2)


def test_a_session_outside_a_private_canarys_share_is_answered_as_without_it() -> None:
    desired = live(empty(), L2, 1)
    desired = candidate(desired, Key("L2", "acme"), 2)
    desired = canary(desired, Key("L2", "acme"), revision(2), 0.5, REPLICAS, PROFILE)
    found = {item.revision for n in range(50) if (item := select(PROFILE, desired, "acme", "L2", f"s{n}"))}
    assert found == {revision(1), revision(2)}
    assert select(PROFILE, desired, "acme", "L1", "s") is PROFILE.get("L1")


def test_a_shadow_is_that_of_the_entry_which_answers() -> None:
    desired = shadow(candidate(live(empty(), L4, 1), L4, 2), L4, revision(2), 1, REPLICAS)
    beside = select_shadow(PROFILE, desired, "acme", "L4", "t")
    assert beside is not None
    assert beside.revision == revision(2)
    assert select_shadow(PROFILE, live(desired, ACME, 3), "acme", "L4", "t") is None
    assert select_shadow(PROFILE, desired, "acme", "L1", "t") is None


def test_a_turn_goes_on_where_it_began_until_its_revision_retires() -> None:
    desired = rollback(live(empty(), L4, 1), L4)
    for still in (desired, disable(desired, L4)):
        found = at_revision(PROFILE, still, "acme", "L4", revision(1))
        assert found is not None
        assert found.engine_name == engine_name("L4", revision(1))
    assert at_revision(PROFILE, retire_idle(desired, ()), "", "L4", revision(1)) is None


def test_a_turn_on_the_profiles_own_goes_on_there_after_a_promotion() -> None:
    own = PROFILE.default_specialist
    assert at_revision(PROFILE, live(empty(), L2, 1), "", "L2", own.revision) is own


def test_standing_changes_with_cards_and_with_the_router_only() -> None:
    before = standing(PROFILE, empty(), "")
    assert standing(PROFILE, live(empty(), L2, 1, None), "") == before
    assert standing(PROFILE, live(empty(), L4, 1), "") != before
    assert standing(PROFILE, live(empty(), Key("L0"), 1, None), "") != before
    assert standing(PROFILE, live(empty(), ACME, 1), "") == before
