"""Which slot a prompt is sent to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.engine.llamacpp.gate import Lane
from macaron.engine.llamacpp.slots import Chain, SlotTable, chain_of, shared_bytes, slots_needed

BASE = Lane(None, False)
HEAD = b"head" * 10


def chain(*pieces: bytes) -> Chain:
    return chain_of(pieces, 100)


def used(table: SlotTable, lane: Lane, prompt: Chain) -> int:
    """The slot for a hop that ends before the next begins."""
    slot = table.take(lane, prompt)
    table.release(slot)
    return slot


def test_route_has_slot_zero_and_every_adapter_its_own() -> None:
    table = SlotTable(["a", "b"], "a", 2)
    route = table.take(Lane("a", True), chain(b"r"))
    others = [table.take(Lane(adapter, False), chain(b"x")) for adapter in ("a", "a", "b", "b")]
    assert [route, *others] == [0, 1, 2, 3, 4]
    assert slots_needed(2, 2) == 5


def test_specialists_without_adapter_share_a_pool() -> None:
    table = SlotTable([None, "a", None], None, 1)
    assert table.capacity(BASE) == 2
    assert {table.take(BASE, chain(b"x")), table.take(BASE, chain(b"y"))} == {1, 3}


def test_lane_the_engine_was_not_started_with_has_no_slots() -> None:
    assert SlotTable(["a"], "a", 1).capacity(Lane("b", False)) == 0


def test_conversation_comes_back_to_its_slot() -> None:
    table = SlotTable([None, None, None], None, 1)
    first = used(table, BASE, chain(HEAD, b"red " * 30))
    second = used(table, BASE, chain(HEAD, b"blue" * 30))
    assert first != second
    assert used(table, BASE, chain(HEAD, b"red " * 30, b"more")) == first
    assert used(table, BASE, chain(HEAD, b"blue" * 30, b"more")) == second


def test_specialists_are_told_apart_by_their_heads() -> None:
    table = SlotTable([None, None], None, 1)
    chat = used(table, BASE, chain(b"You chat. " * 20, b"hi"))
    code = used(table, BASE, chain(b"You code. " * 20, b"hi"))
    assert used(table, BASE, chain(b"You chat. " * 20, b"another user")) == chat
    assert used(table, BASE, chain(b"You code. " * 20, b"another user")) == code


def test_new_conversation_takes_the_least_recently_used() -> None:
    table = SlotTable([None, None], None, 1)
    old = used(table, BASE, chain(HEAD, b"old" * 50))
    used(table, BASE, chain(HEAD, b"young" * 50))
    assert used(table, BASE, chain(HEAD, b"new" * 50)) == old


def test_busy_slot_is_not_shared() -> None:
    table = SlotTable([None, None], None, 1)
    prompt = chain(HEAD, b"x")
    assert table.take(BASE, prompt) != table.take(BASE, prompt)
    with pytest.raises(LookupError):
        table.take(BASE, prompt)


def test_longest_prefix_wins() -> None:
    table = SlotTable([None, None], None, 1)
    short, long = chain(HEAD, b"a"), chain(HEAD, b"a", b"b", b"c")
    one, two = table.take(BASE, short), table.take(BASE, long)
    table.release(one)
    table.release(two)
    assert used(table, BASE, chain(HEAD, b"a", b"b", b"c", b"d")) == two


def test_chain_is_bounded() -> None:
    assert len(chain_of([b"x"] * 50, 10)) == 10


@given(st.lists(st.binary(max_size=4), max_size=12), st.lists(st.binary(max_size=4), max_size=12))
def test_shared_bytes_are_those_of_the_common_pieces(one: list[bytes], other: list[bytes]) -> None:
    common = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        common += len(left)
    assert shared_bytes(chain(*one), chain(*other)) == common


def test_another_adapter_that_may_route_has_a_slot_of_its_own_for_it() -> None:
    table = SlotTable(("a", "b", "a2"), "a", 1, ("a2",))
    numbers = {used(table, lane, chain(b"x")) for lane in (Lane("a", True), Lane("a2", True), Lane("a2", False))}
    assert numbers == {0, 4, 3}
    assert table.capacity(Lane("b", True)) == 0
