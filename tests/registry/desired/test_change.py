"""What users see changes by promotion, rollback, disabling and enabling, and by nothing else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from macaron.registry.cards import Registry
from macaron.registry.desired import (
    Conflict,
    Desired,
    Key,
    canary,
    carry,
    disable,
    drain,
    enable,
    in_force,
    problems,
    promote,
    retire_idle,
    rollback,
    shadow,
)
from tests.registry.desired.states import CARD, L2, L4, PROFILE, REPLICAS, candidate, empty, live, own, proved, revision

OTHER = replace(CARD, name="Law 2", identity="You know more law.")


def states(desired: Desired, key: Key = L4) -> list[str]:
    """The states of an entry's revisions, in order of registration."""
    return [item.state for item in desired.find(key).revisions]


def test_a_promotion_keeps_the_one_before_for_a_rollback() -> None:
    desired = live(live(empty(), L4, 1), L4, 2)
    entry = desired.find(L4)
    assert (entry.live, entry.previous) == (revision(2), revision(1))
    assert states(desired) == ["draining", "live"]


def test_a_promotion_ends_the_revisions_trial() -> None:
    desired = canary(candidate(live(empty(), L4, 1), L4, 2), L4, revision(2), 0.5, REPLICAS, PROFILE)
    item = promote(desired, L4, revision(2), REPLICAS, PROFILE).find(L4).find(revision(2))
    assert (item.state, item.share) == ("live", 0)


def test_promoting_the_live_revision_again_keeps_the_rollback() -> None:
    desired = live(live(empty(), L4, 1), L4, 2)
    assert promote(desired, L4, revision(2), REPLICAS, PROFILE) is desired


def test_a_rollback_restores_revision_and_card() -> None:
    before = live(empty(), L4, 1)
    after = live(before, L4, 2, OTHER)
    assert in_force(PROFILE, after, "").specialists[-1].identity == "You know more law."
    restored = rollback(after, L4)
    assert in_force(PROFILE, restored, "") == in_force(PROFILE, before, "")
    assert states(restored) == ["live", "draining"]


def test_a_rollback_of_the_first_promotion_takes_a_new_label_away() -> None:
    restored = rollback(live(empty(), L4, 1), L4)
    assert in_force(PROFILE, restored, "") == PROFILE
    assert states(restored) == ["draining"]


def test_a_rollback_of_the_first_promotion_gives_the_profile_its_label_back() -> None:
    desired = live(empty(), L2, 1)
    assert in_force(PROFILE, desired, "").labels == PROFILE.labels
    assert in_force(PROFILE, rollback(desired, L2), "") == PROFILE


def test_there_is_one_rollback_for_one_promotion() -> None:
    with pytest.raises(Conflict, match="nothing was promoted"):
        rollback(rollback(live(empty(), L4, 1), L4), L4)


def test_only_the_last_of_several_is_kept_for_a_rollback() -> None:
    desired = live(live(live(empty(), L4, 1), L4, 2), L4, 3)
    assert desired.find(L4).previous == revision(2)
    assert [item.state for item in retire_idle(desired, ()).find(L4).revisions] == ["retired", "draining", "live"]


def test_what_was_rolled_back_may_be_promoted_again() -> None:
    after = live(live(empty(), L4, 1), L4, 2)
    again = promote(rollback(after, L4), L4, revision(2), REPLICAS, PROFILE)
    assert again == after


def test_a_rollback_to_nothing_ends_the_trial_beside_it() -> None:
    desired = shadow(candidate(live(empty(), L4, 1), L4, 2), L4, revision(2), 0.5, REPLICAS)
    restored = rollback(desired, L4)
    assert states(restored) == ["draining", "draining"]
    assert not list(problems(restored))


def test_the_previous_revision_may_go_on_trial_and_still_be_rolled_back_to() -> None:
    desired = live(live(empty(), L4, 1), L4, 2)
    tried = canary(proved(desired, L4, 1), L4, revision(1), 0.2, REPLICAS, PROFILE)
    assert not list(problems(tried))
    assert states(rollback(tried, L4)) == ["live", "draining"]
    assert drain(tried, L4, revision(1)).find(L4).previous == revision(1)


def test_a_rollback_works_on_a_disabled_label() -> None:
    desired = disable(live(live(empty(), L4, 1), L4, 2), L4)
    restored = rollback(desired, L4)
    assert in_force(PROFILE, restored, "") == PROFILE
    assert in_force(PROFILE, enable(restored, L4, PROFILE), "").specialists[-1].revision == revision(1)


def test_a_disabled_label_of_the_profile_falls_back_to_the_profile() -> None:
    desired = live(empty(), L2, 1)
    disabled = disable(desired, L2)
    assert in_force(PROFILE, disabled, "") == PROFILE
    assert enable(disabled, L2, PROFILE) == desired


def test_disabling_twice_is_disabling_once() -> None:
    disabled = disable(live(empty(), L4, 1), L4)
    assert disable(disabled, L4) is disabled


def test_another_contract_keeps_what_means_the_same() -> None:
    desired = live(live(empty(), L4, 1), L2, 2)
    carried = carry(desired, "hcp1:new", PROFILE)
    assert carried == replace(desired, contract="hcp1:new")


@pytest.mark.parametrize(
    ("labels", "disabled"), [(("L0", "L1", "L2", "L4"), "L4"), (("L0", "L1"), "L2")], ids=["gained", "lost"]
)
def test_another_contract_disables_labels_that_mean_something_else(labels: tuple[str, ...], disabled: str) -> None:
    profile = Registry(tuple(own(label, None) for label in labels), "L0", "L1")
    carried = carry(live(live(empty(), L4, 1), L2, 2, None), "hcp1:new", profile)
    assert [entry.label for entry in carried.entries if entry.disabled] == [disabled]
    assert not list(problems(carried))
    with pytest.raises(Conflict, match="another contract"):
        enable(carried, Key(disabled), profile)
