"""What the store must not cost: a blocked event loop, memory without bound, work that grows with the history."""

from __future__ import annotations

import gc
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx

from macaron.conversation import Media, Message, Opaque, Step, Text, ToolCall
from macaron.store import open_store, reads
from macaron.store.base import Limits
from macaron.store.cache import StepCache, weigh_step
from macaron.store.codec import Codec, Marks
from macaron.store.connection import connect
from macaron.store.expiry import SLICE, Slice, expire
from macaron.store.sqlite import COMMITS_PER_EXPIRY, SqliteStore
from macaron.store.transaction import Transaction
from macaron.store.writes import FIND_STEP, put_steps, row_of
from tests.store.steps import answered, hop, make

UNMARKED = Marks(None, None, None, 0)


def written(database: Path) -> int:
    return database.with_name(database.name + "-wal").stat().st_size


async def test_bytes_written_do_not_depend_on_the_history(database: Path) -> None:
    store = open_store(f"sqlite://{database}", limits=Limits(), durability="normal")
    parent = None
    sizes = {}
    with closing(sqlite3.connect(database)) as other:
        for depth in range(1, 201):
            parent = make(f"s{depth:04}", parent)
            if depth in (2, 200):
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            await store.put_steps([parent])
            if depth in (2, 200):
                sizes[depth] = written(database)
    await store.close()
    page = 4096 + 24
    assert abs(sizes[200] - sizes[2]) <= 6 * page  # b-trees split now and then
    assert sizes[200] < 20 * page


@pytest.mark.parametrize("sql", [reads.WALK, reads.SESSION, reads.KNOWN, reads.PICK, reads.ASKED, FIND_STEP])
def test_no_query_of_a_request_scans_a_table(database: Path, sql: str) -> None:
    names = ("scope", "id", "session", "limit", "crcs", "crc", "digest", "head", "parent", "asked")
    parameters: Any = dict.fromkeys(names, "[]") if sql != FIND_STEP else ("t", "s")
    with closing(sqlite3.connect(database)) as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    assert any(line.startswith("SEARCH") for line in plan)
    derived = ("SCAN walk", "SCAN json_each", "SCAN (subquery")
    assert [line for line in plan if line.startswith("SCAN") and not line.startswith(derived)] == []


async def test_the_event_loop_never_blocks(database: Path) -> None:
    store = open_store(f"sqlite://{database}", limits=Limits(), durability="full")
    with blockbuster_ctx():
        await store.put_steps([make("s")])
        await store.locate("t", ["v1:d-s"], asked="v1:a-s")
        await store.path("t", "s")
        await store.put_summary("t", "s", "summary", hop())
        await store.freeze_note("t", "s", "note")
        await store.totals()
        await store.expire()
        await store.delete_step("t", "s")
        await store.compare_and_set(0, b"")
        await store.ping()


def step_with(number: int, *items: Any) -> Step:
    return make(f"s{number}", inputs=items, session="s" * 200)


STEPS = {
    "plain": step_with(0, Message("user", (Text("x" * 5000),))),
    "wide characters": step_with(1, Message("user", (Text("x" * 5000 + "\U0001f600"),))),
    "many small items": step_with(2, *(Message("user", (Text("y"), Text("z"))) for _ in range(500))),
    "many small objects": step_with(3, Opaque("o", {"a": [{"b": {}} for _ in range(500)]})),
    "media": step_with(4, Message("user", (Media("image", {"url": "u" * 9000}),), {"name": "n"})),
    "calls": step_with(5, *(ToolCall(f"c{n}", "run", "{}") for n in range(300))),
    "hops": make("s6", hops=tuple(hop(1000 + n, 2000 + n) for n in range(100))),
}


def memory_of(step: Step) -> int:
    """Bytes of every object that a step decoded from bytes keeps alive."""
    total, seen, stack = 0, set(), [step]
    while stack:
        item: Any = stack.pop()
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        total += sys.getsizeof(item)
        stack.extend(gc.get_referents(item))
    return total


@pytest.mark.parametrize("kind", STEPS)
def test_the_weight_of_a_step_is_never_less_than_its_memory(kind: str) -> None:
    assert weigh_step(STEPS[kind]) >= memory_of(STEPS[kind])


def test_the_cache_stays_within_its_bound() -> None:
    cache = StepCache(100_000)
    for number in range(200):
        cache.put(make(f"s{number}", outputs=answered("x" * 1000)))
        cache.get(("t", f"s{number}"), Marks("s" * 500, "n" * 500, None, 0), Codec())
        assert cache.bytes <= 100_000
    assert cache.get(("t", "s199"), UNMARKED, Codec()) is not None
    assert cache.get(("t", "s0"), UNMARKED, Codec()) is None


def test_a_step_larger_than_the_cache_is_not_kept() -> None:
    cache = StepCache(10_000)
    cache.put(make("s", outputs=answered("x" * 20_000)))
    assert (cache.bytes, cache.get(("t", "s"), UNMARKED, Codec())) == (0, None)


def test_a_step_seen_deleted_leaves_no_content_in_the_cache() -> None:
    cache = StepCache(100_000)
    cache.put(make("s", outputs=answered("x" * 10_000)))
    seen = cache.get(("t", "s"), Marks(None, "", None, 1), Codec())
    assert seen is not None
    assert seen.outputs is None
    assert cache.bytes < 10_000


def slices(database: Path, steps: int, text: str, limits: Limits) -> list[Slice]:
    """Put a session and evict it; returns what every transaction of that did."""
    done: list[Slice] = []
    rows = [
        row_of(step, Codec().encode(step)) for step in (make(f"s{n}", session="s", note=text) for n in range(steps))
    ]
    with closing(connect(database, "rw", "normal", 5.0)) as db:
        cursor = db.cursor()
        transaction = Transaction(cursor, 0.0)
        put_steps(transaction, rows)
        transaction.finish()
        while not done or done[-1].more:
            transaction = Transaction(cursor, 1.0)
            done.append(expire(transaction, limits))
            transaction.finish()
        assert cursor.execute("SELECT (SELECT count(*) FROM steps) + (SELECT count(*) FROM bodies)").fetchone() == (0,)
        assert cursor.execute("SELECT sum(steps + sessions + bytes) FROM scopes").fetchone() == (0,)
    return done


async def test_old_sessions_go_without_being_asked(database: Path) -> None:
    store = SqliteStore(database, limits=Limits(max_age=100.0), clock=iter(range(10**6)).__next__)
    await store.put_steps([make("old")])
    for _ in range(COMMITS_PER_EXPIRY):
        await store.ping()
    assert (await store.totals()).steps == 0
    await store.close()


def test_a_large_session_is_evicted_in_slices(database: Path) -> None:
    done = slices(database, 2 * SLICE + 10, "", Limits(max_age=0.0))
    assert done == [Slice(0, True), Slice(0, True), Slice(1, False)]


def test_slices_are_bounded_in_bytes(database: Path) -> None:
    done = slices(database, 20, "x" * 2_000_000, Limits(max_bytes=0))
    assert [slice_.sessions for slice_ in done] == [0, 0, 1]
