"""Responses and conversations that several processes keep in one database."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress

import asyncpg
import pytest
from blockbuster import blockbuster_ctx

from macaron.store.base import Append, Entry, Limits, StoreFull
from macaron.store.postgres import database, expiry, records
from tests.postgres_server import PostgresServer
from tests.store.conftest import Clock
from tests.store.postgres.conftest import Replica
from tests.store.test_records import PLENTY, make

KEPT = """SELECT (SELECT count(*) FROM macaron.records), (SELECT coalesce(sum(bytes), 0)::bigint FROM macaron.records),
    (SELECT coalesce(sum(256 + length(body)), 0)::bigint FROM macaron.records)
        + (SELECT coalesce(sum(48 + length(body)), 0)::bigint FROM macaron.entries)"""

COUNTED = "SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM macaron.kept"

LOST = "SELECT count(*) FROM macaron.entries WHERE record NOT IN (SELECT seq FROM macaron.records)"


def check_counts(postgres: PostgresServer, address: str) -> None:
    """What is counted is what is there."""
    name = address.split("/")[3].split("?")[0]
    ((count, size, really),) = postgres.ask(name, KEPT)
    assert size == really
    assert [tuple(row) for row in postgres.ask(name, COUNTED)] == [(count, size)]
    assert [tuple(row) for row in postgres.ask(name, LOST)] == [(0,)]


async def test_a_response_of_one_replica_is_continued_ended_and_read_at_the_other(replica: Replica) -> None:
    one, other = replica(), replica()
    first = make("first", open=True)
    await one.put_record(first)
    await one.append("t", Append("first", (Entry(b"0"), Entry(b"1"))))
    assert await other.record("t", "first") == first
    assert await other.revise_record("t", "first", b"ended", open=False, appends=[Append("first", (Entry(b"2"),))])
    assert not await one.revise_record("t", "first", b"mine", open=False)
    assert await one.renew_leases([("t", "first")], 9.0) == frozenset()
    assert [entry.body for entry in await one.entries("t", "first", after=0)] == [b"1", b"2"]
    await other.put_record(make("second", first))
    assert [record.id for record in await one.lineage("t", "second", PLENTY)] == ["first", "second"]


async def test_of_two_replicas_that_end_a_response_one_does(replica: Replica) -> None:
    stores = [replica(), replica()]
    for number in range(10):
        await stores[0].put_record(make(f"r{number}", open=True))
        ended = await asyncio.gather(
            *(store.revise_record("t", f"r{number}", b"%d" % n, open=False) for n, store in enumerate(stores))
        )
        record = await stores[0].record("t", f"r{number}")
        assert record is not None
        assert sorted(ended) == [False, True]
        assert record.body == b"%d" % ended.index(True)


async def test_entries_that_replicas_add_at_once_have_a_place_each(replica: Replica) -> None:
    stores = [replica(), replica()]
    await stores[0].put_record(make("c", open=True))
    more = [Append("c", (Entry(b"%d" % number), Entry(b"%d" % number))) for number in range(20)]
    assert all(await asyncio.gather(*(stores[n % 2].append("t", each) for n, each in enumerate(more))))
    entries = await stores[0].entries("t", "c")
    assert [entry.position for entry in entries] == list(range(40))
    # Those of one call stay together.
    assert all(first.body == second.body for first, second in zip(entries[::2], entries[1::2], strict=True))


async def test_a_full_store_is_full_for_every_replica(replica: Replica) -> None:
    one, other = replica(Limits(max_records=1)), replica(Limits(max_records=1))
    await one.put_record(make("a"))
    with pytest.raises(StoreFull):
        await other.put_record(make("b"))
    assert await one.delete_record("t", "a")
    await other.put_record(make("b"))


async def test_the_counts_are_spread_so_that_writes_do_not_wait_for_each_other(
    postgres: PostgresServer, address: str, replica: Replica
) -> None:
    mine = replica()
    await asyncio.gather(*(mine.put_record(make(f"r{number}")) for number in range(40)))
    ((rows,),) = postgres.ask(address.split("/")[3].split("?")[0], "SELECT count(*) FROM macaron.kept")
    assert rows > 1


async def test_room_is_made_by_as_many_slices_as_it_takes(
    replica: Replica, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "SLICE", 2)
    filling = replica(clock=clock)
    for number in range(7):
        await filling.put_record(make(f"r{number}"))
    clock.now += 1000
    mine = replica(Limits(max_records=2, max_age=100.0), clock=clock)
    await mine.put_record(make("new"))
    assert await mine.record("t", "new") == make("new")


async def test_what_a_refused_record_has_evicted_stays_evicted(replica: Replica, clock: Clock) -> None:
    limits = Limits(max_records=2, max_age=100.0)
    filling, mine = replica(clock=clock), replica(limits, clock=clock)
    await filling.put_record(make("old"))
    clock.now += 1000
    for name in ("a", "b"):
        await filling.put_record(make(name))
    with pytest.raises(StoreFull):
        await mine.put_record(make("c"))
    assert await mine.record("t", "old") is None


async def test_a_large_tree_goes_in_slices_its_root_last(
    postgres: PostgresServer, address: str, replica: Replica, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "SLICE", 10)
    mine = replica(Limits(max_age=100.0), clock=clock)
    parent = make("r0")
    await mine.put_record(parent)
    for number in range(1, 25):
        parent = make(f"r{number}", parent)
        await mine.put_record(parent)
        await mine.append("t", Append(parent.id, (Entry(b"e"),)))
    clock.now += 1000
    await mine._database.run(mine._evict)
    assert [record.id for record in await mine.lineage("t", "r14", PLENTY)] == [f"r{number}" for number in range(15)]
    assert await mine.record("t", "r15") is None
    check_counts(postgres, address)
    await mine.expire()
    assert await mine.record("t", "r0") is None
    check_counts(postgres, address)


async def test_a_tree_that_is_used_again_stays(replica: Replica, clock: Clock) -> None:
    mine = replica(Limits(max_age=100.0), clock=clock)
    await mine.put_record(make("root"))
    clock.now += 1000
    other = replica(clock=clock)
    await other.put_record(make("child", make("root")))
    await mine.expire()
    assert [record.id for record in await mine.lineage("t", "child", PLENTY)] == ["root", "child"]


async def test_eviction_does_not_wait_for_a_record_in_use_and_leaves_its_tree(
    address: str, replica: Replica, clock: Clock
) -> None:
    mine = replica(Limits(max_age=100.0), clock=clock)
    for record in (make("root"), make("child", make("root")), make("other")):
        await mine.put_record(record)
    clock.now += 1000
    user = await asyncpg.connect(address)
    async with user.transaction():
        await user.execute("SELECT 1 FROM macaron.records WHERE id = 'child' FOR UPDATE")
        async with asyncio.timeout(4):
            await mine.expire()
    await user.close()
    assert [record.id for record in await mine.lineage("t", "child", PLENTY)] == ["root", "child"]
    assert await mine.record("t", "other") is None
    await mine.expire()
    assert await mine.record("t", "root") is None


async def test_what_continues_a_record_that_was_deleted_meanwhile_still_grows_old(
    replica: Replica, clock: Clock
) -> None:
    mine = replica(Limits(max_age=100.0), clock=clock)
    root = make("root")
    parent = make("parent", root)
    await mine.put_record(root)
    await mine.put_record(parent)
    # One request continues `parent` while another deletes it.
    assert await mine.delete_record("t", "parent")
    await mine.put_record(make("child", parent))
    assert await mine.delete_record("t", "root")
    clock.now += 1000
    await mine.expire()
    assert await mine.record("t", "child") is None


async def test_only_one_replica_evicts_records_at_a_time(address: str, replica: Replica, clock: Clock) -> None:
    mine = replica(Limits(max_age=100.0), clock=clock)
    await mine.put_record(make("r"))
    clock.now += 1000
    other = await asyncpg.connect(address)
    async with other.transaction():
        await other.execute(f"SELECT pg_advisory_xact_lock({expiry.LOCK})")
        await mine.expire()
        assert await mine.record("t", "r") is not None
    await other.close()
    await mine.expire()
    assert await mine.record("t", "r") is None


async def test_replicas_that_write_delete_and_evict_at_once_keep_the_counts_right(
    postgres: PostgresServer, address: str, replica: Replica
) -> None:
    ticks = itertools.count()
    limits = Limits(max_records=12, max_age=150.0)
    stores = [replica(limits, clock=lambda: float(next(ticks))) for _ in range(2)]
    refused = 0

    async def work(number: int) -> None:
        nonlocal refused
        mine, other = stores[number % 2], stores[(number + 1) % 2]
        shared = make(f"c{number % 3}", open=True)
        for turn in range(15):
            name = f"r{number}-{turn}"
            if await mine.record("t", shared.id) is None:
                # Another may have made it meanwhile.
                with suppress(Exception):
                    await mine.put_record(shared)
            try:
                await mine.put_record(make(name, shared, open=True))
            except StoreFull:
                refused += 1
                await mine.delete_record("t", f"r{number}-{turn - 1}")
                continue
            await asyncio.gather(
                mine.append("t", Append(name, (Entry(b"event"),))),
                mine.append("t", Append(shared.id, (Entry(b"item", name),))),
                other.renew_leases([("t", name), ("t", shared.id)], 9.0),
            )
            more = [Append(shared.id, (Entry(b"said"),)), Append(name, (Entry(b"end"),))]
            await other.revise_record("t", name, b"{}" * turn, open=False, appends=more)
            await other.delete_entry("t", shared.id, name)
            if turn % 3 == 0:
                await asyncio.gather(mine.delete_record("t", name), other.expire())

    async with asyncio.timeout(60):
        await asyncio.gather(*map(work, range(6)))
    assert refused
    check_counts(postgres, address)


async def test_names_that_the_server_has_no_text_for_are_kept(replica: Replica) -> None:
    mine = replica()
    record = make("r\0", scope="t\0\ud800")
    await mine.put_record(record)
    await mine.append(record.scope, Append(record.id, (Entry(b"\0", "e\0\ud800"),)))
    assert await mine.record(record.scope, record.id) == record
    assert await mine.entry(record.scope, record.id, "e\0\ud800") == Entry(b"\0", "e\0\ud800", 0)


async def test_the_event_loop_never_blocks(replica: Replica) -> None:
    mine = replica()
    await asyncio.gather(*(mine.totals() for _ in range(4)))  # connecting reads the user's password file
    with blockbuster_ctx():
        await mine.put_record(make("r", open=True))
        await mine.append("t", Append("r", (Entry(b"e", "e"),)), bounded=True)
        await mine.revise_record("t", "r", b"{}", open=True, appends=[Append("r", (Entry(b"e"),))])
        await mine.renew_leases([("t", "r")], 9.0)
        await mine.lineage("t", "r", PLENTY)
        await mine.entries("t", "r")
        await mine.delete_entry("t", "r", "e")
        await mine.delete_record("t", "r")
        await mine.expire()


QUERIES = [
    (records.GET, (b"t", b"r")),
    (records.LINEAGE, (b"t", b"r", 10)),
    (records.TOUCH, (b"t", b"r", 1.0)),
    (records.REVISE, (b"t", b"r", b"", False)),
    (records.PLACE, (b"t", b"r", 1, 1)),
    (records.FORWARD, (b"t", b"r", -1, 10)),
    (records.BACKWARD, (b"t", b"r", -1, 10)),
    (records.ENTRY, (b"t", b"r", b"e")),
    (records.DROP_ENTRY, (b"t", b"r", b"e")),
    (records.RENEW, ([b"t"], [b"r"], 1.0)),
    (records.FIND, (b"t", b"r")),
    (records.NEEDED, (b"t", b"r")),
    (records.DOOMED, (1.0, 1, 10)),
    (records.HOLD, ([1],)),
    (records.DROP, ([1], 1.0)),
]


async def test_no_query_scans_a_table(address: str, replica: Replica) -> None:
    await replica().put_record(make("r"))
    async with database.connected(address, command_seconds=10) as connection:
        for sql, values in QUERIES:
            plan = [row[0] for row in await connection.fetch(f"EXPLAIN {sql}", *values)]
            assert any("Index" in line for line in plan), sql
            assert not [line for line in plan if "Seq Scan on" in line or "Bitmap" in line], (sql, plan)
