"""What engines must hold, and the plans that lead there."""

from __future__ import annotations

from msgspec.structs import replace

from macaron.registry.desired import (
    Key,
    Plan,
    Resident,
    disable,
    engine_name,
    plan,
    resident,
    retire_idle,
    rollback,
    shadow,
)
from tests.registry.desired.states import L4, PROFILE, REPLICAS, candidate, empty, live, registered, revision

LAUNCHED = {"L0", "L2"}


def name(seed: int) -> str:
    """The engine name of a revision of L4."""
    return engine_name("L4", revision(seed))


def four() -> tuple[Resident, ...]:
    """Candidates 1 to 4 of L4 beside the profile's two."""
    desired = empty()
    for seed in range(1, 5):
        desired = registered(desired, L4, seed)
    return resident(PROFILE, desired)


def names(residents: tuple[Resident, ...]) -> list[str]:
    """Their engine names."""
    return [item.engine_name for item in residents]


def test_the_profiles_adapters_are_held_and_its_prompts_are_not() -> None:
    assert [(item.engine_name, item.duty) for item in resident(PROFILE, empty())] == [
        ("L0", "profile"),
        ("L2", "profile"),
    ]


def test_every_state_but_retired_is_held() -> None:
    desired = candidate(live(live(empty(), L4, 1), L4, 2), L4, 3)
    desired = registered(shadow(desired, L4, revision(3), 0.5, REPLICAS), L4, 4)
    assert [item.duty for item in resident(PROFILE, desired)[2:]] == ["draining", "live", "shadow", "candidate"]
    assert names(resident(PROFILE, retire_idle(rollback(live(empty(), L4, 1), L4), ()))) == ["L0", "L2"]


def test_a_disabled_label_is_not_held() -> None:
    assert names(resident(PROFILE, disable(live(empty(), L4, 1), L4))) == ["L0", "L2"]


def test_a_folder_is_named_by_the_whole_hash() -> None:
    assert resident(PROFILE, registered(empty(), L4, 1))[2].folder == revision(1)[7:]


def test_what_two_tenants_have_is_held_once_for_the_foremost_duty() -> None:
    desired = live(registered(empty(), Key("L4", "acme"), 1), Key("L4", "other"), 1)
    assert [(item.engine_name, item.duty) for item in resident(PROFILE, desired)[2:]] == [(name(1), "live")]


def test_what_is_not_listed_is_loaded_and_what_is_not_wanted_unloaded() -> None:
    found = plan(four()[:3], {"L0", "L2", name(9)})
    assert (names(found.load), found.unload) == ([name(1)], (name(9),))


def test_what_is_listed_is_never_loaded() -> None:
    assert plan(four(), {*LAUNCHED, *map(name, range(1, 5))}) == Plan()


def test_what_is_in_use_is_never_unloaded() -> None:
    assert plan(four()[:2], {*LAUNCHED, name(9)}, in_use={name(9)}) == Plan()


def test_what_the_engine_was_launched_with_is_neither_loaded_nor_unloaded() -> None:
    found = plan(four()[:2], {"L0"}, limit=0)
    assert (names(found.missing), found.load, found.unload) == (["L2"], (), ())


def test_what_is_nobodys_here_is_reported_and_left_alone() -> None:
    found = plan(four()[:2], {*LAUNCHED, "their-adapter", "L9"})
    assert (found.unknown, found.unload) == (("L9", "their-adapter"), ())


def test_the_least_recently_used_goes_when_another_is_asked_for() -> None:
    listed = {*LAUNCHED, name(1), name(2)}
    found = plan(four(), listed, last_use={name(1): 10.0, name(2): 20.0, name(3): 30.0}, limit=4)
    assert (names(found.load), found.unload, names(found.waiting)) == ([name(3)], (name(1),), [name(1), name(4)])


def test_what_is_in_use_takes_room_before_what_was_used_last() -> None:
    found = plan(four(), LAUNCHED, in_use={name(4)}, last_use={name(1): 10.0}, limit=3)
    assert names(found.load) == [name(4)]


def test_without_times_what_is_in_service_comes_first() -> None:
    desired = live(candidate(live(empty(), L4, 1), L4, 3), L4, 2)
    found = plan(resident(PROFILE, desired), LAUNCHED, limit=3)
    assert names(found.load) == [name(2)]


def test_names_of_others_take_room_too() -> None:
    found = plan(four(), {*LAUNCHED, "their-adapter"}, limit=4)
    assert len(found.load) == 1


def test_several_are_unloaded_least_recently_used_first() -> None:
    last_use = {name(7): 3.0, name(8): 1.0, name(9): 2.0}
    found = plan(four()[:2], {*LAUNCHED, *last_use}, last_use=last_use)
    assert found.unload == (name(8), name(9), name(7))


def test_a_name_that_the_engine_was_launched_with_stays_the_profiles() -> None:
    own = replace(PROFILE.specialists[2], engine_name=name(1))
    profile = replace(PROFILE, specialists=(*PROFILE.specialists[:2], own))
    assert resident(profile, registered(empty(), L4, 1))[-1].duty == "profile"
