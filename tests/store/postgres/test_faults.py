"""What a server, and other programs on it, do to an open store. Nothing hangs, and everything heals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import asyncpg
import pytest
from blockbuster import blockbuster_ctx

from macaron.errors import StoreError
from macaron.store.postgres import database, reads, writes
from macaron.store.postgres.migrations import migrate
from tests.postgres_server import PostgresServer
from tests.store.postgres.conftest import Replica
from tests.store.steps import hop, make

PATIENCE = 5.0
"""Far more than any limit that these tests set."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "CONNECT_SECONDS", 0.7)
    monkeypatch.setattr(database, "COMMAND_SECONDS", 1.0)


@pytest.fixture
def restored(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """The server, running again after the test whatever the test did."""
    yield postgres
    postgres.stop()
    postgres.start()


async def test_a_server_that_is_gone_is_said_at_once_and_used_when_it_is_back(
    restored: PostgresServer, replica: Replica
) -> None:
    mine = replica()
    await mine.put_steps([make("before")])
    await asyncio.to_thread(restored.stop)
    for call in (lambda: mine.path("t", "before"), lambda: mine.put_steps([make("lost")]), mine.ping, mine.config):
        began = time.monotonic()
        with pytest.raises(StoreError, match=r"database of the store: .*; try again in a moment") as failed:
            await call()
        assert time.monotonic() - began < PATIENCE
        assert (failed.value.status, failed.value.code, failed.value.retry_after) == (503, "store_unavailable", 1.0)
        assert str(restored.port) not in failed.value.message
        assert "check that the server runs" in (failed.value.detail or "")
    await asyncio.to_thread(restored.start)
    await mine.put_steps([make("after")])
    assert [bool(await mine.path("t", step_id)) for step_id in ("before", "lost", "after")] == [True, False, True]


async def test_connections_that_the_server_closed_are_replaced(postgres: PostgresServer, replica: Replica) -> None:
    mine = replica()
    await asyncio.gather(*(mine.put_steps([make(f"s{number}")]) for number in range(4)))
    await asyncio.gather(*(mine.path("t", f"s{number}") for number in range(4)))
    closing = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'macaron'"
    await asyncio.to_thread(postgres.ask, "postgres", closing)
    # A read takes the next connection until one lives; a write may have been done on the one that was lost.
    assert all(await asyncio.gather(*(mine.path("t", f"s{number % 4}") for number in range(8))))
    await mine.put_steps([make("after")])


@pytest.mark.usefixtures("impatient")
async def test_a_server_that_answers_nothing_is_given_up_in_time(postgres: PostgresServer, replica: Replica) -> None:
    mine = replica()
    await mine.put_steps([make("s")])
    held = postgres.pause()
    try:
        calls = [mine.path("t", "s"), mine.put_steps([make("a")]), mine.put_steps([make("b")]), mine.ping()]
        async with asyncio.timeout(PATIENCE):
            results = await asyncio.gather(*calls, return_exceptions=True)
    finally:
        postgres.pause(held)
    assert [type(result) for result in results] == [StoreError] * 4
    assert {"no answer in time" in str(result) for result in results} == {True}
    await mine.put_steps([make("after")])
    assert await mine.path("t", "after")


async def test_a_lock_of_somebody_else_is_not_waited_for_too_long(
    address: str, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(database.SETTINGS, "lock_timeout", "200")
    mine = replica()
    await mine.put_steps([make("before")])
    other = await asyncpg.connect(address)
    async with other.transaction():
        await other.execute("LOCK TABLE macaron.sessions")
        puts = [mine.put_steps([make(step_id)]) for step_id in ("a", "b")]
        results = await asyncio.gather(*puts, return_exceptions=True)
        assert [type(result) for result in results] == [StoreError] * 2
    await other.close()
    await mine.put_steps([make("a"), make("b")])
    assert (await mine.totals()).steps == 3


async def test_a_count_that_no_column_holds_fails_alone(replica: Replica) -> None:
    mine = replica()
    puts = [mine.put_steps([step]) for step in (make("a"), make("huge", hops=(hop(10**30, 1),)), make("b"))]
    results = await asyncio.gather(*puts, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), StoreError, type(None)]
    assert (await mine.totals()).steps == 2


async def test_a_damaged_step_fails_only_its_own_read(address: str, replica: Replica) -> None:
    await replica().put_steps([make("good"), make("bad")])
    other = await asyncpg.connect(address)
    await other.execute("UPDATE macaron.steps SET body = '[1]' WHERE id = 'bad'")
    await other.close()
    mine = replica(cache_bytes=0)
    with pytest.raises(StoreError, match="'bad' is damaged"):
        await mine.path("t", "bad")
    assert await mine.path("t", "good") == (make("good"),)


async def test_a_database_that_may_only_be_read_is_not_ready(postgres: PostgresServer) -> None:
    name = postgres.fresh()
    postgres.ask(name, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    mine = database.Database(postgres.url(name), lambda connection: migrate_nothing())
    with pytest.raises(StoreError, match="ReadOnlySQLTransactionError"):
        await mine.run(lambda connection: writes.put(connection, (), 0.0, 1))
    await mine.close()


async def migrate_nothing() -> None:
    """A schema that is not looked at."""


async def test_a_server_that_answers_before_its_commits_are_on_disk_is_told_not_to(postgres: PostgresServer) -> None:
    name = postgres.fresh()
    postgres.ask(name, f"ALTER DATABASE {name} SET synchronous_commit = off")
    mine = database.Database(postgres.url(name), lambda connection: migrate_nothing())
    (setting,) = await mine.run(lambda connection: connection.fetchrow("SHOW synchronous_commit"))
    assert setting == "on"
    await mine.close()


async def test_the_event_loop_never_blocks(replica: Replica) -> None:
    mine = replica()
    await asyncio.gather(*(mine.totals() for _ in range(4)))  # connecting reads the user's password file
    with blockbuster_ctx():
        await mine.put_steps([make("s")])
        await mine.locate("t", ["v1:d-s"], asked="v1:a-s")
        await mine.path("t", "s")
        await mine.put_summary("t", "s", "summary", hop())
        await mine.freeze_note("t", "s", "note")
        await mine.expire()
        await mine.delete_step("t", "s")
        await mine.compare_and_set(0, b"")
        await mine.ping()


QUERIES = [
    (reads.LOCATE, (b"t", [1, 2], [b"a", b"b"], b"s", 1, 1, b"q")),
    (reads.WALK, (b"t", b"s")),
    (reads.SESSION, (b"t", b"s", 10)),
    (reads.BODIES, ([1, 2],)),
    (writes.HOLD, (b"t", b"s")),
    (writes.FIND, (b"t", b"s", False)),
]


async def test_no_query_of_a_request_scans_a_table(postgres: PostgresServer, address: str, replica: Replica) -> None:
    await replica().put_steps([make("s")])
    async with database.connected(address, command_seconds=10) as connection:
        for sql, values in QUERIES:
            plan = [row[0] for row in await connection.fetch(f"EXPLAIN {sql}", *values)]
            assert any("Index" in line for line in plan), sql
            assert not [line for line in plan if "Seq Scan on" in line or "Bitmap" in line], (sql, plan)
        plan = [row[0] for row in await connection.fetch(f"EXPLAIN {reads.LOCATE}", *QUERIES[0][1])]
    # That would read all steps of a scope.
    assert not [line for line in plan if "steps_scope_id_key" in line]


async def test_migrating_while_a_replica_serves_changes_nothing(address: str, replica: Replica) -> None:
    mine = replica()
    await mine.put_steps([make("s")])
    await migrate(address)
    assert await mine.path("t", "s")
