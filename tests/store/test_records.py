"""What every store does with responses and conversations."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from macaron.store.base import Append, Entry, Limits, Record, Store, StoreFull
from tests.store.conftest import Clock, OpenStore

PLENTY = 1_000_000


def make(
    record_id: str, parent: Record | None = None, *, scope: str = "t", body: bytes = b"{}", open: bool = False
) -> Record:
    root = parent.root if parent else record_id
    return Record(scope, record_id, "user", root, parent.id if parent else None, 1.5, body, open, 7.0 if open else 0.0)


async def test_a_record_comes_back_as_it_was_put(store: Store) -> None:
    record = make("r", open=True)
    await store.put_record(record)
    assert await store.record("t", "r") == record


async def test_a_record_is_not_known_to_another_scope(store: Store) -> None:
    record = make("r", open=True)
    await store.put_record(record)
    assert await store.record("other", "r") is None
    assert await store.lineage("other", "r", PLENTY) == ()
    assert not await store.revise_record("other", "r", b"new", open=False)
    assert not await store.append("other", Append("r", (Entry(b"e", "e"),)))
    assert not await store.delete_record("other", "r")
    assert await store.renew_leases([("other", "r")], 9.0) == frozenset()
    assert await store.record("t", "r") == record


async def test_a_lineage_is_the_chain_from_the_root(store: Store) -> None:
    root = make("root")
    child = make("child", root)
    sibling, leaf = make("sibling", root), make("leaf", child)
    for record in (root, child, sibling, leaf):
        await store.put_record(record)
    assert [record.id for record in await store.lineage("t", "leaf", PLENTY)] == ["root", "child", "leaf"]
    assert await store.lineage("t", "nobody", PLENTY) == ()


async def test_a_lineage_begins_later_where_its_bodies_are_too_large(store: Store) -> None:
    root = make("root", body=b"x" * 100)
    child = make("child", root, body=b"x" * 100)
    leaf = make("leaf", child, body=b"x" * 100)
    for record in (root, child, leaf):
        await store.put_record(record)
    assert [record.id for record in await store.lineage("t", "leaf", 250)] == ["child", "leaf"]
    assert [record.id for record in await store.lineage("t", "leaf", 300)] == ["root", "child", "leaf"]


async def test_an_open_record_is_revised_until_it_is_closed(store: Store) -> None:
    record = make("r", open=True)
    await store.put_record(record)
    assert await store.revise_record("t", "r", b"more", open=True)
    assert await store.revise_record("t", "r", b"final", open=False)
    assert not await store.revise_record("t", "r", b"again", open=False)
    assert await store.record("t", "r") == replace(record, body=b"final", open=False)


async def test_entries_are_added_with_the_revision_or_not_at_all(store: Store) -> None:
    conversation = make("c", open=True)
    await store.put_record(conversation)
    await store.put_record(make("r", conversation, open=True))
    more = [Append("c", (Entry(b"1", "a"), Entry(b"2", "b"))), Append("r", (Entry(b"end"),))]
    assert await store.revise_record("t", "r", b"final", open=False, appends=more)
    assert not await store.revise_record("t", "r", b"final", open=False, appends=more)
    assert [entry.body for entry in await store.entries("t", "c")] == [b"1", b"2"]
    assert [entry.body for entry in await store.entries("t", "r")] == [b"end"]


async def test_entries_have_positions_that_are_never_given_twice(store: Store) -> None:
    await store.put_record(make("c", open=True))
    assert await store.append("t", Append("c", (Entry(b"1", "a"), Entry(b"2", "b"))))
    assert await store.delete_entry("t", "c", "b")
    assert not await store.delete_entry("t", "c", "b")
    assert await store.append("t", Append("c", (Entry(b"3", "b"),)))
    assert await store.entries("t", "c") == (Entry(b"1", "a", 0), Entry(b"3", "b", 2))


async def test_entries_are_read_in_pages_in_both_directions(store: Store) -> None:
    await store.put_record(make("c"))
    await store.append("t", Append("c", tuple(Entry(b"%d" % number) for number in range(5))))
    bodies = [entry.body for entry in await store.entries("t", "c", after=1, limit=2)]
    assert bodies == [b"2", b"3"]
    assert [entry.body for entry in await store.entries("t", "c", limit=2, newest_first=True)] == [b"4", b"3"]
    assert [entry.body for entry in await store.entries("t", "c", after=2, newest_first=True)] == [b"1", b"0"]
    assert await store.entries("t", "c", after=4) == ()


async def test_an_entry_is_found_by_its_id(store: Store) -> None:
    await store.put_record(make("c"))
    await store.append("t", Append("c", (Entry(b"1"), Entry(b"2", "b"))))
    assert await store.entry("t", "c", "b") == Entry(b"2", "b", 1)
    assert await store.entry("t", "c", "") is None
    assert await store.entry("t", "c", "a") is None


async def test_leases_are_renewed_while_a_record_is_open(store: Store) -> None:
    await store.put_record(make("a", open=True))
    await store.put_record(make("b"))
    assert await store.renew_leases([("t", "a"), ("t", "b"), ("t", "c")], 99.0) == frozenset({("t", "a")})
    record = await store.record("t", "a")
    assert record is not None
    assert record.lease == 99.0


async def test_a_deleted_record_keeps_its_place_in_the_tree(store: Store) -> None:
    root = make("root", open=True)
    await store.put_record(root)
    await store.put_record(make("child", root))
    await store.append("t", Append("root", (Entry(b"e", "e"),)))
    assert await store.delete_record("t", "root")
    assert not await store.delete_record("t", "root")
    lineage = await store.lineage("t", "child", PLENTY)
    assert [(record.id, record.deleted) for record in lineage] == [("root", True), ("child", False)]
    assert await store.entries("t", "root") == ()
    assert not await store.append("t", Append("root", (Entry(b"e"),)))
    assert not await store.revise_record("t", "root", b"back", open=False)


async def test_a_deleted_record_that_nothing_continues_leaves_nothing(opened: OpenStore) -> None:
    store = opened(Limits(max_records=2))
    await store.put_record(make("a"))
    for name in ("b", "c", "d"):
        await store.put_record(make(name, make("a")))
        assert await store.delete_record("t", name)
        assert await store.record("t", name) is None


async def test_a_full_store_refuses_new_records_and_lets_open_ones_end(opened: OpenStore) -> None:
    store = opened(Limits(max_records=2))
    await store.put_record(make("a", open=True))
    await store.put_record(make("b"))
    with pytest.raises(StoreFull) as caught:
        await store.put_record(make("c"))
    assert "max_responses" in caught.value.message
    assert await store.revise_record("t", "a", b"x" * 1000, open=False, appends=[Append("a", (Entry(b"e"),))])


async def test_a_store_is_full_by_bytes_until_something_is_deleted(opened: OpenStore) -> None:
    store = opened(Limits(max_record_bytes=2000))
    await store.put_record(make("a", body=b"x" * 3000))
    with pytest.raises(StoreFull):
        await store.append("t", Append("a", (Entry(b"e"),)), bounded=True)
    assert await store.delete_record("t", "a")
    await store.put_record(make("b"))


async def test_trees_that_nobody_uses_go_with_everything_in_them(opened: OpenStore, clock: Clock) -> None:
    store = opened(Limits(max_age=100.0, max_records=4))
    old, used = make("old"), make("used")
    await store.put_record(old)
    await store.put_record(make("below", old))
    await store.append("t", Append("below", (Entry(b"e", "e"),)))
    await store.put_record(used)
    clock.now += 90
    await store.put_record(make("later", used))
    clock.now += 90
    await store.put_record(make("new"))
    assert [await store.record("t", name) for name in ("old", "below")] == [None, None]
    assert await store.entries("t", "below") == ()
    assert [record.id for record in await store.lineage("t", "later", PLENTY)] == ["used", "later"]
    clock.now += 1000
    await store.expire()
    assert await store.record("t", "new") is None


async def test_a_record_whose_root_is_gone_is_a_root_itself(store: Store) -> None:
    await store.put_record(make("orphan", make("gone")))
    record = await store.record("t", "orphan")
    assert record is not None
    assert record.root == "orphan"
