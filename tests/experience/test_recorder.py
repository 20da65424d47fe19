"""Recording never keeps anybody waiting, keeps what it took, and stays within its bounds."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.experience import Bounds, ExperienceFile, create
from macaron.experience import recorder as module
from tests.experience.made import made, read, recorder_at, write
from tests.store.test_faults import fill, tiny_disk

__all__ = ["tiny_disk"]


async def test_a_turn_is_read_back_as_it_was_put(tmp_path: Path) -> None:
    path = tmp_path / "t.experience"
    record = made("r1", prompt_ids=(1, 2), ids=(3, 4), logprobs=(-0.5, -1.25))
    recorder = recorder_at(path)
    recorder.put(record)
    await recorder.close()
    (turn,) = read(path)
    assert turn.record == record
    assert (turn.consent.consent, turn.consent.licence) == ("contract of today, section 4", "CC-BY-4.0")
    assert recorder.counts == (1, 0, 0)


async def test_turns_are_written_without_being_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "t.experience"
    recorder = recorder_at(path)
    recorder.put(made("r1"))
    async with asyncio.timeout(10):
        while not recorder.counts.recorded:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert len(read(path)) == 1
    await recorder.close()


async def test_a_full_queue_drops_and_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUEUE_TURNS", 3)
    recorder = recorder_at(tmp_path / "t.experience")
    for number in range(5):
        recorder.put(made(f"r{number}"))
    assert recorder.counts.dropped == 2
    await recorder.close()
    assert recorder.counts == (3, 2, 0)


async def test_a_queue_is_bounded_by_its_bytes_too(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path / "t.experience")
    large = ({"role": "user", "content": "x" * (module.QUEUE_BYTES // 2)},)
    for number in range(3):
        recorder.put(made(f"r{number}", messages=large))
    assert recorder.counts.dropped == 2
    await recorder.close()


async def test_a_locked_file_holds_up_nobody(tmp_path: Path) -> None:
    path = tmp_path / "t.experience"
    recorder = recorder_at(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.perf_counter()
        for number in range(100):
            recorder.put(made(f"r{number}"))
        assert time.perf_counter() - began < 1
        await asyncio.sleep(2 * module.BATCH_SECONDS)
        other.execute("ROLLBACK")
    await recorder.close()
    assert len(read(path)) == 100


async def test_what_cannot_be_written_is_counted_and_the_rest_is_kept(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path / "t.experience")
    recorder.put(made("bad", options={"seed": 2**80}))
    recorder.put(made("good"))
    await recorder.close()
    assert recorder.counts == (1, 0, 1)


async def test_the_oldest_go_when_there_is_too_much(tmp_path: Path) -> None:
    path = tmp_path / "t.experience"
    recorder = recorder_at(path, Bounds(max_bytes=1_048_576))
    for number in range(30):
        recorder.put(made(f"r{number:02}", text="x" * 100_000))
    await recorder.close()
    kept = [turn.record.id for turn in read(path)]
    assert kept == [f"r{number:02}" for number in range(30 - len(kept), 30)]
    with ExperienceFile(path) as file:
        totals = file.totals()
    assert 900_000 < totals.bytes <= 1_048_576
    assert totals.turns == len(kept)


async def test_what_is_too_old_goes(tmp_path: Path) -> None:
    path = tmp_path / "t.experience"
    now = 1000.0
    recorder = recorder_at(path, Bounds(max_age=100), clock=lambda: now)
    recorder.put(made("old", created=1000.0))
    await recorder.close()
    now = 1200.0
    recorder = recorder_at(path, Bounds(max_age=100), clock=lambda: now)
    recorder.put(made("new", created=1200.0))
    await recorder.close()
    assert [turn.record.id for turn in read(path)] == ["new"]


async def test_two_workers_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "t.experience"
    one, two = recorder_at(path), recorder_at(path)
    for number in range(50):
        one.put(made(f"a{number}"))
        two.put(made(f"b{number}"))
    await asyncio.gather(one.close(), two.close())
    assert len(read(path)) == 100
    with ExperienceFile(path) as file:
        assert file.totals().turns == 100


async def test_a_full_disk_loses_turns_and_heals(tiny_disk: Path) -> None:
    path = tiny_disk / "t.experience"
    recorder = recorder_at(path)
    ballast = fill(tiny_disk)
    recorder.put(made("lost", text="x" * 300_000))
    async with asyncio.timeout(10):
        while not recorder.counts.failed:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    ballast.unlink()
    recorder.put(made("kept"))
    await recorder.close()
    assert recorder.counts == (1, 0, 1)
    assert [turn.record.id for turn in read(path)] == ["kept"]


VICTIM = """
import asyncio, sys
from pathlib import Path
from tests.experience.made import made, recorder_at

async def main():
    recorder = recorder_at(Path(sys.argv[1]))
    number = 0
    while True:
        for _ in range(20):
            recorder.put(made(f"r{number:06}", text="word " * 200))
            number += 1
        await asyncio.sleep(0.005)
        print(recorder.counts.recorded, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [5, 40])
def test_a_kill_leaves_a_clean_file_with_all_that_was_written(tmp_path: Path, after: int) -> None:
    path = tmp_path / "t.experience"
    victim = subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(path)], stdout=subprocess.PIPE, env={**os.environ}, text=True
    )
    assert victim.stdout is not None
    recorded = 0
    for _ in range(10_000):
        recorded = int(victim.stdout.readline())
        if recorded > 20 * after:
            break
    victim.send_signal(signal.SIGKILL)
    victim.wait(10)
    victim.stdout.close()
    create(path)
    kept = [turn.record for turn in read(path)]
    assert len(kept) >= recorded > 0
    assert [record.id for record in kept] == [f"r{number:06}" for number in range(len(kept))]
    assert all(record.answer.text == "word " * 200 for record in kept)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    write(path, [made("later")])
    assert read(path)[-1].record.id == "later"


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.experience"
    path.write_bytes(b"no database at all, but long enough to be one" * 100)
    with pytest.raises(ConfigError, match="cannot be used"):
        create(path)
    store = tmp_path / "other.experience"
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("CREATE TABLE notes (text)")
    with pytest.raises(ConfigError, match="no file of recorded turns"):
        create(store)


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.experience"
    create(path)
    assert path.stat().st_mode & 0o777 == 0o600
