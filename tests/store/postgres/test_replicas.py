"""Several processes on one database."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import asyncpg
import pytest

from macaron.store.base import Limits, Totals
from macaron.store.postgres import PostgresStore, expiry, store
from tests.postgres_server import PostgresServer
from tests.store.postgres.conftest import Replica
from tests.store.steps import answered, hop, make
from tests.store.test_processes import ENDLESS, start

KEPT = """SELECT (SELECT count(*) FROM macaron.steps), (SELECT count(*) FROM macaron.sessions),
    (SELECT coalesce(sum(bytes), 0)::bigint FROM macaron.steps)"""


def kept(postgres: PostgresServer, address: str) -> tuple[int, int, int]:
    """Steps, sessions and bytes that are there, counted."""
    (row,) = postgres.ask(address.split("/")[3].split("?")[0], KEPT)
    return tuple(row)


async def test_a_conversation_goes_on_at_another_replica(replica: Replica) -> None:
    one, other = replica(), replica()
    first = make("first")
    await one.put_steps([first])
    found = await other.locate("t", [first.digest], asked="v1:new", head="head")
    assert found.prefix is not None
    assert found.prefix.step == first
    second = make("second", first)
    await other.put_steps([second])
    assert await one.path("t", "second") == (first, second)


async def test_what_another_replica_changes_is_seen_despite_the_cache(replica: Replica) -> None:
    one, other = replica(), replica()
    await one.put_steps([make("s"), make("d")])
    await one.path("t", "s")
    await other.put_summary("t", "s", "summary", hop())
    assert await other.freeze_note("t", "s", "note") == "note"
    assert await one.freeze_note("t", "s", "mine") == "note"
    (seen,) = await one.path("t", "s")
    assert (seen.summary, seen.note, len(seen.hops)) == ("summary", "note", 2)
    await other.delete_step("t", "d")
    assert (await one.path("t", "d"))[0].outputs is None


async def test_what_another_replica_evicts_is_gone_despite_the_cache(replica: Replica) -> None:
    one, other = replica(), replica(Limits(max_age=-1.0))
    await one.put_steps([make("s")])
    assert await other.expire() == 1
    assert await one.path("t", "s") == ()
    assert (await one.locate("t", ["v1:d-s"], asked="")).prefix is None


async def test_one_of_two_replicas_sets_the_configuration(replica: Replica) -> None:
    one, other = replica(), replica()
    await one.compare_and_set(0, b"mine")
    assert (await other.compare_and_set(0, b"theirs")).document == b"mine"
    assert await one.config() == await other.config()


async def test_only_one_replica_evicts_at_a_time(postgres: PostgresServer, address: str, replica: Replica) -> None:
    store = replica(Limits(max_age=-1.0))
    await store.put_steps([make("s")])
    other = await asyncpg.connect(address)
    async with other.transaction():
        await other.execute(f"SELECT pg_advisory_xact_lock({expiry.LOCK})")
        assert await store.expire() == 0
    await other.close()
    assert await store.expire() == 1


async def test_replicas_that_write_and_evict_at_once_keep_the_totals_right(
    postgres: PostgresServer, address: str, replica: Replica
) -> None:
    limits = Limits(max_sessions=6)
    stores = [replica(limits), replica(limits)]

    async def work(number: int) -> None:
        mine = stores[number % 2]
        for turn in range(6):
            # Sessions are shared by all, named in another order by each.
            steps = [make(f"s{number}-{turn}-{n}", session=f"session-{(n * (number + 1)) % 9}") for n in range(4)]
            await mine.put_steps(steps)
            await mine.freeze_note("t", steps[0].id, "note")
            await mine.put_summary("t", steps[1].id, "summary", hop())

    await asyncio.gather(*map(work, range(6)))
    await stores[0].expire()
    totals = await stores[1].totals()
    assert kept(postgres, address) == (totals.steps, totals.sessions, totals.bytes)
    mine = await stores[1].totals("t")
    assert (mine.steps, mine.sessions, mine.bytes) == (totals.steps, totals.sessions, totals.bytes)
    assert totals.sessions <= 6
    assert totals.completion_tokens >= 6 * 6 * 4 * 5


async def test_a_large_session_is_evicted_in_slices(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "SLICE", 10)
    mine = replica(Limits(max_age=-1.0))
    await mine.put_steps([make(f"s{number}", session="s") for number in range(25)])
    slices = [await mine._slice() for _ in range(3)]
    assert [(done.sessions, done.more) for done in slices] == [(0, True), (0, True), (1, False)]
    assert await mine.totals() == Totals(0, 0, 0, 250, 125)


async def test_old_sessions_go_without_being_asked(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "COMMITS_PER_EXPIRY", 3)
    mine = replica(Limits(max_age=100.0), clock=iter(range(0, 10**6, 60)).__next__)
    await mine.put_steps([make("old")])
    for _ in range(3):
        await mine.ping()
    assert (await mine.totals()).steps == 0


async def test_writes_given_up_by_their_caller_are_still_made(replica: Replica) -> None:
    mine = replica()
    write = asyncio.ensure_future(mine.put_steps([make("s")]))
    await asyncio.sleep(0)
    write.cancel()
    await mine.ping()
    assert await mine.path("t", "s")


async def test_texts_that_the_server_has_no_text_for_are_kept(replica: Replica) -> None:
    step = make("s\0", scope="t\0\ud800", summary="a\0b", note="\0", session="\0", digest="d\0")
    for mine in (replica(), replica(cache_bytes=0)):
        if not (await mine.totals()).steps:
            await mine.put_steps([step])
        assert await mine.path(step.scope, step.id) == (step,)
        assert (await mine.locate(step.scope, ["d\0"], asked="")).prefix is not None
        assert await mine.session(step.scope, "\0") == (step,)


@pytest.mark.slow
async def test_neither_a_killed_process_nor_a_crashed_server_loses_an_acknowledged_step(
    postgres: PostgresServer, address: str, replica: Replica
) -> None:
    acknowledged = {}
    with start(address, "k", ENDLESS) as killed, start(address, "c", ENDLESS, stderr=subprocess.DEVNULL) as cut:
        for prefix, process in (("k", killed), ("c", cut)):
            assert process.stdout is not None
            acknowledged[prefix] = [process.stdout.readline().strip() for _ in range(50)]
        killed.kill()
        await asyncio.to_thread(postgres.stop, signal.SIGQUIT)
        for prefix, process in (("k", killed), ("c", cut)):
            assert process.stdout is not None
            acknowledged[prefix] += process.stdout.read().split("\n")[:-1]
    await asyncio.to_thread(postgres.start)
    mine = replica()
    for said in acknowledged.values():
        found = [step.id for step in await mine.path("t", said[-1])]
        assert len(found) >= 50
        assert found == said


def test_the_driver_is_loaded_only_where_it_is_used() -> None:
    code = "import sys, macaron.store, macaron.server.worker, macaron.cli; sys.exit('asyncpg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_opening_connects_nothing() -> None:
    PostgresStore("postgresql://nowhere.invalid/d", limits=Limits())


async def test_a_step_larger_than_a_page_comes_back(replica: Replica) -> None:
    step = make("s", outputs=answered("x" * 2_000_000))
    await replica().put_steps([step])
    assert await replica(cache_bytes=0).path("t", "s") == (step,)
