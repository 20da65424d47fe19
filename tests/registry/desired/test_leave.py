"""Draining, retiring and removing."""

from __future__ import annotations

import pytest

from macaron.errors import NotFound
from macaron.registry.desired import (
    Conflict,
    Desired,
    disable,
    drain,
    engine_name,
    remove,
    remove_label,
    retire,
    retire_idle,
    rollback,
    shadow,
)
from macaron.registry.desired import leave as leave_module
from tests.registry.desired.states import L4, REPLICAS, candidate, empty, live, registered, revision

FIRST, SECOND = revision(1), revision(2)
NAME = engine_name("L4", FIRST)


def replaced() -> Desired:
    """The second revision live, the first kept for a rollback."""
    return live(live(empty(), L4, 1), L4, 2)


def state(desired: Desired, revision: str) -> str:
    """A revision's state."""
    return desired.find(L4).find(revision).state


def test_draining_ends_a_trial() -> None:
    desired = shadow(candidate(live(empty(), L4, 1), L4, 2), L4, SECOND, 0.5, REPLICAS)
    item = drain(desired, L4, SECOND).find(L4).find(SECOND)
    assert (item.state, item.share) == ("draining", 0)


def test_the_live_revision_is_not_drained() -> None:
    with pytest.raises(Conflict, match="is live; roll back"):
        drain(replaced(), L4, SECOND)


def test_draining_the_kept_revision_gives_the_rollback_up() -> None:
    desired = drain(replaced(), L4, FIRST)
    assert desired.find(L4).previous is None
    assert state(retire(desired, L4, FIRST, ()), FIRST) == "retired"


def test_draining_twice_is_draining_once() -> None:
    desired = drain(registered(empty(), L4, 1), L4, FIRST)
    assert drain(desired, L4, FIRST) is desired


def test_the_kept_revision_is_neither_retired_nor_removed() -> None:
    with pytest.raises(Conflict, match="kept for a rollback"):
        retire(replaced(), L4, FIRST, ())
    with pytest.raises(Conflict, match="kept for a rollback"):
        remove(replaced(), L4, FIRST, ())


def test_a_revision_in_use_is_neither_retired_nor_removed() -> None:
    desired = rollback(live(empty(), L4, 1), L4)
    for change in (retire, remove):
        with pytest.raises(Conflict, match=f"{NAME} is in use"):
            change(desired, L4, FIRST, {NAME})
    with pytest.raises(Conflict, match="in use"):
        remove_label(desired, L4, {NAME})


def test_only_draining_revisions_are_retired() -> None:
    with pytest.raises(Conflict, match="is candidate; only a draining one"):
        retire(registered(empty(), L4, 1), L4, FIRST, ())


def test_a_retired_revision_is_not_drained() -> None:
    desired = retire(drain(registered(empty(), L4, 1), L4, FIRST), L4, FIRST, ())
    with pytest.raises(Conflict, match="retired already"):
        drain(desired, L4, FIRST)


def test_a_round_retires_all_that_nothing_needs() -> None:
    desired = drain(candidate(candidate(replaced(), L4, 3), L4, 4), L4, revision(3))
    desired = retire_idle(drain(desired, L4, revision(4)), {engine_name("L4", revision(4))})
    assert [item.state for item in desired.find(L4).revisions] == ["draining", "live", "retired", "draining"]


def test_a_round_with_nothing_to_retire_changes_nothing() -> None:
    desired = replaced()
    assert retire_idle(desired, ()) is desired


def test_what_answers_turns_is_not_removed() -> None:
    desired = shadow(candidate(live(empty(), L4, 1), L4, 2), L4, SECOND, 0.5, REPLICAS)
    for busy in (FIRST, SECOND):
        with pytest.raises(Conflict, match="end that first"):
            remove(desired, L4, busy, ())


def test_removing_a_revision_leaves_the_others() -> None:
    desired = remove(registered(live(empty(), L4, 1), L4, 2), L4, SECOND, ())
    assert [item.revision for item in desired.find(L4).revisions] == [FIRST]
    assert [item.revision for item in desired.bound] == [SECOND]


def test_removing_the_last_revision_removes_the_label() -> None:
    desired = remove(registered(empty(), L4, 1), L4, FIRST, ())
    assert desired.get(L4) is None
    with pytest.raises(NotFound):
        remove(desired, L4, FIRST, ())


def test_a_label_in_service_is_removed_only_when_disabled() -> None:
    with pytest.raises(Conflict, match="disable it first") as caught:
        remove_label(replaced(), L4, ())
    assert caught.value.code == "in_service"
    desired = remove_label(disable(replaced(), L4), L4, ())
    assert desired.entries == ()
    assert {item.engine_name for item in desired.bound} == {NAME, engine_name("L4", SECOND)}


def test_the_oldest_bound_names_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leave_module, "MAX_BOUND", 3)
    desired = empty()
    for seed in range(5):
        desired = remove_label(registered(desired, L4, seed), L4, ())
    assert [item.revision for item in desired.bound] == [revision(seed) for seed in (2, 3, 4)]
