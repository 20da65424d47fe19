"""What SQLite, the disk and other programs do to an open store."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from macaron.errors import ConfigError, StoreError
from macaron.store import migrate
from macaron.store.base import Limits
from macaron.store.sqlite import SqliteStore
from tests.store.steps import answered, make

OpenSqlite = Callable[[float], SqliteStore]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "macaron-test", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill(disk: Path) -> Path:
    """Take all the space of a disk; returns the file that holds it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while os.write(file.fileno(), bytes(4096)):
            pass
    return ballast


def open_at(path: Path, busy_timeout: float = 5.0) -> SqliteStore:
    return SqliteStore(path, limits=Limits(), cache_bytes=0, busy_timeout=busy_timeout)


async def test_a_full_disk_fails_the_write_and_heals(tiny_disk: Path) -> None:
    path = tiny_disk / "store.db"
    migrate(path)
    store = open_at(path)
    await store.put_steps([make("before")])
    ballast = fill(tiny_disk)
    with pytest.raises(StoreError, match="free disk space"):
        await store.put_steps([make("lost", outputs=answered("x" * 300_000))])
    with pytest.raises(StoreError):
        await store.put_steps([make("lost-too", outputs=answered("x" * 300_000))])
    assert len(await store.path("t", "before")) == 1
    assert await store.path("t", "lost") == ()
    ballast.unlink()
    await store.put_steps([make("after")])
    assert len(await store.path("t", "after")) == 1
    await store.close()


def test_a_store_that_does_not_fit_is_not_begun(tiny_disk: Path) -> None:
    fill(tiny_disk)
    with pytest.raises(ConfigError, match="free disk space"):
        migrate(tiny_disk / "store.db")


async def test_a_failing_commit_fails_all_of_its_batch_and_heals(database: Path) -> None:
    store = open_at(database)
    await store.put_steps([make("before")])
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = os.stat(f"{database}-wal").st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, unlimited[1]))
    try:
        puts = [store.put_steps([make(step_id)]) for step_id in ("a", "b", "c")]
        results = await asyncio.gather(*puts, return_exceptions=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert [type(result) for result in results] == [StoreError] * 3
    assert [await store.path("t", step_id) for step_id in ("a", "b", "c")] == [()] * 3
    await store.put_steps([make("a"), make("b")])
    assert (await store.totals()).steps == 3
    await store.close()


async def test_a_full_disk_fails_only_the_write_that_does_not_fit(database: Path) -> None:
    store = open_at(database)
    await store.ping()
    pages = store._write_db.execute("PRAGMA page_count").fetchone()[0]
    store._write_db.execute(f"PRAGMA max_page_count = {pages + 20}")
    results = await asyncio.gather(
        store.put_steps([make("small")]),
        store.put_steps([make("large", outputs=answered("x" * 300_000))]),
        store.put_steps([make("another")]),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [type(None), StoreError, type(None)]
    await store.close()


async def test_a_locked_database_is_an_error_after_the_time_out(database: Path) -> None:
    store = open_at(database, busy_timeout=0.2)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        started = asyncio.get_running_loop().time()
        with pytest.raises(StoreError, match=r"store\.db: database is locked; another program"):
            await store.put_steps([make("s")])
        assert asyncio.get_running_loop().time() - started >= 0.2
        assert await store.path("t", "s") == ()
        other.execute("ROLLBACK")
    await store.put_steps([make("s")])
    assert await store.path("t", "s")
    await store.close()


async def test_a_write_waits_for_another_process_and_reads_do_not(database: Path) -> None:
    store = open_at(database, busy_timeout=30.0)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        write = asyncio.ensure_future(store.put_steps([make("s")]))
        assert await store.path("t", "s") == ()
        assert not write.done()
        other.execute("ROLLBACK")
    await asyncio.wait_for(write, 30.0)
    await store.close()


async def test_a_damaged_step_fails_only_its_own_read(database: Path) -> None:
    store = open_at(database)
    await store.put_steps([make("good"), make("bad")])
    with closing(sqlite3.connect(database)) as other, other:
        other.execute("UPDATE bodies SET body = '[1]' WHERE seq = (SELECT seq FROM steps WHERE id = 'bad')")
    good, bad = await asyncio.gather(store.path("t", "good"), store.path("t", "bad"), return_exceptions=True)
    assert isinstance(bad, StoreError)
    assert "'bad' is damaged" in str(bad)
    assert good == (make("good"),)
    await store.close()


async def test_a_step_without_its_content_is_an_error(database: Path) -> None:
    store = open_at(database)
    await store.put_steps([make("s")])
    with closing(sqlite3.connect(database)) as other, other:
        other.execute("DELETE FROM bodies")
    with pytest.raises(StoreError, match="missing from the store"):
        await store.path("t", "s")
    await store.close()


async def test_a_step_that_cannot_be_encoded_is_refused_alone(database: Path) -> None:
    store = open_at(database)
    unpaired = make("bad", outputs=answered("\ud800"))
    with pytest.raises(StoreError, match="cannot be stored"):
        await store.put_steps([unpaired])
    with pytest.raises(StoreError):
        await store.put_steps([make("bad-too", digest="\ud800")])
    await store.put_steps([make("good")])
    await store.close()


async def test_writes_given_up_by_their_caller_are_still_made(database: Path) -> None:
    store = open_at(database)
    write = asyncio.ensure_future(store.put_steps([make("s")]))
    await asyncio.sleep(0)
    write.cancel()
    with pytest.raises(asyncio.CancelledError):
        await write
    await store.ping()
    assert await store.path("t", "s")
    await store.close()


async def test_eviction_goes_on_after_it_could_not(database: Path) -> None:
    store = SqliteStore(database, limits=Limits(max_sessions=1), busy_timeout=0.05)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        await store.put_steps([make("a"), make("b")])
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError):
            await store.ping()
        other.execute("ROLLBACK")
    await store.put_steps([make("c")])
    await store.ping()
    assert (await store.totals()).sessions == 1
    assert await store.path("t", "c")
    await store.close()
