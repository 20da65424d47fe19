"""Several processes on one file, and one that is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.store import acquire, migrate, open_store
from macaron.store.base import Limits, Store
from tests.store.steps import hop, make

ROOT = Path(__file__).parents[2]
ENDLESS = 10**9


def start(url: str, prefix: str, count: int, stderr: int | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.worker", url, prefix, str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr, text=True)


@pytest.fixture
async def store(database: Path) -> AsyncIterator[Store]:
    store = open_store(f"sqlite://{database}", limits=Limits(), durability="normal")
    yield store
    await store.close()


@pytest.fixture
async def elsewhere(database: Path) -> AsyncIterator[Store]:
    """The same file as another worker has it."""
    store = open_store(f"sqlite://{database}", limits=Limits(), durability="normal")
    yield store
    await store.close()


async def test_a_killed_process_loses_no_acknowledged_step(database: Path) -> None:
    with start(f"sqlite://{database}", "k", ENDLESS) as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline().strip() for _ in range(300)]
        process.kill()
        acknowledged += process.stdout.read().split("\n")[:-1]
    migrate(database)
    store = open_store(f"sqlite://{database}", limits=Limits(), durability="normal")
    found = [step.id for step in await store.path("t", acknowledged[-1])]
    await store.close()
    assert len(found) >= 300
    assert found == acknowledged


async def test_two_processes_write_and_a_third_reads_one_file(database: Path, store: Store) -> None:
    await store.put_steps([make("shared")])
    with start(f"sqlite://{database}", "a", 100) as one, start(f"sqlite://{database}", "b", 100) as two:
        outputs = [process.communicate(timeout=60)[0].split("\n") for process in (one, two)]
    assert [len(await store.path("t", step_id)) for step_id in ("a99", "b99")] == [100, 100]
    notes = {output[-2] for output in outputs}
    assert notes == {f"note {(await store.path('t', 'shared'))[0].note}"}
    assert (await store.totals()).steps == 201


async def test_what_another_worker_changes_is_seen_despite_the_cache(store: Store, elsewhere: Store) -> None:
    await store.put_steps([make("s")])
    before = await store.path("t", "s")
    assert before == await elsewhere.path("t", "s")
    await elsewhere.put_summary("t", "s", "summary", hop())
    await elsewhere.freeze_note("t", "s", "note")
    (seen,) = await store.path("t", "s")
    assert (seen.summary, seen.note, len(seen.hops)) == ("summary", "note", 2)
    assert await store.freeze_note("t", "s", "mine") == "note"


async def test_what_another_worker_deletes_is_gone_despite_the_cache(store: Store, elsewhere: Store) -> None:
    await store.put_steps([make("s")])
    await store.path("t", "s")
    await elsewhere.delete_step("t", "s")
    (seen,) = await store.path("t", "s")
    assert (seen.inputs, seen.outputs) == (None, None)


async def test_what_another_worker_evicts_is_not_served_from_the_cache(database: Path, store: Store) -> None:
    await store.put_steps([make("s")])
    evicting = open_store(f"sqlite://{database}", limits=Limits(max_age=-1.0), durability="normal")
    assert await evicting.expire() == 1
    await evicting.put_steps([make("same-number", scope="other")])
    await evicting.close()
    assert await store.path("t", "s") == ()
    assert [step.id for step in await store.path("other", "same-number")] == ["same-number"]


async def test_one_of_two_workers_sets_the_configuration(store: Store, elsewhere: Store) -> None:
    await store.compare_and_set(0, b"mine")
    assert (await elsewhere.compare_and_set(0, b"theirs")).document == b"mine"
    assert await elsewhere.config() == await store.config()


def test_another_process_is_refused_while_this_one_serves(database: Path) -> None:
    code = "import sys, pathlib; from macaron.store import acquire; acquire(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(database)]
    with acquire(database):
        second = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert second.returncode == 1
    assert ConfigError.__name__ in second.stderr
    assert subprocess.run(command, timeout=60).returncode == 0
