"""Writing turns down without ever keeping a request waiting: a bounded queue, one thread, one transaction a batch.

What does not fit into the queue is dropped and counted. A kill loses what was handed over in the last moment, and never
more: the file opens clean, with every turn in it whole.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

import msgspec
from msgspec import Struct

from macaron.experience.base import Consent, Record
from macaron.experience.file import connect, file_error

log = logging.getLogger("macaron.experience")

BATCH_SECONDS = 0.1
"""Turns are handed over together this often, so that the thread is not woken for each."""

QUEUE_TURNS, QUEUE_BYTES = 4096, 67_108_864
"""Turns that may wait, and characters in them, roughly."""

MAX_RECORD = 16_777_216
"""Bytes of the largest turn that is kept."""

SLICE = 256
AGE_SECONDS, COMPLAIN_SECONDS = 60.0, 60.0

ROWS = (64, 16, 4, 1)
"""Rows of one statement. Each statement lets the event loop have the interpreter and takes it back, which costs more
than the row; and few lengths of them are compiled once."""

OLDEST = "SELECT seq, bytes, created FROM turns ORDER BY seq LIMIT ?"


class Bounds(Struct, frozen=True):
    """How much is kept: bytes of all turns together, and seconds of the oldest. The oldest go first."""

    max_bytes: int = 1_073_741_824
    max_age: float = 90 * 86_400.0


class Counts(NamedTuple):
    """Turns since the start: on the disk; not taken, because too many waited; and lost, because the disk or the file
    failed or the turn was too large."""

    recorded: int = 0
    dropped: int = 0
    failed: int = 0


class _Row(NamedTuple):
    record: Record
    body: bytes


class Recorder:
    """Keeps the turns of tenants that agreed. Used from one event loop.

    Args:
        path: a file that `create` has made.
        consents: one a tenant; nobody else's turns are taken.
        clock: Unix time in seconds.

    Raises:
        ConfigError: the file cannot be opened.
    """

    def __init__(
        self, path: Path, consents: Iterable[Consent], bounds: Bounds, clock: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._consents = {consent.tenant: consent for consent in consents}
        self._bounds = bounds
        self._clock = clock
        self._db = connect(path, "rw")
        self._numbers: dict[str, int] = {}
        self._fresh: list[Record] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        # Each number is written by one side only, the loop or the thread, so that none needs a lock.
        self._taken = self._taken_bytes = self._dropped = 0
        self._done = self._done_bytes = self._recorded = self._failed = 0
        self._aged = self._complained = float("-inf")
        self._queue: SimpleQueue[list[Record] | None] = SimpleQueue()
        self._encoder = msgspec.msgpack.Encoder()
        self._thread = Thread(target=self._serve, name="experience", daemon=True)
        self._thread.start()

    @property
    def counts(self) -> Counts:
        """What became of the turns so far."""
        return Counts(self._recorded, self._dropped, self._failed)

    def wants(self, tenant: str) -> bool:
        """Whether a tenant's turns are kept."""
        return tenant in self._consents

    def put(self, record: Record) -> None:
        """Take a turn, or drop it where too many wait. Never blocks, never raises."""
        size = _characters(record)
        waiting, waiting_bytes = self._taken - self._done, self._taken_bytes - self._done_bytes
        if self._closed or waiting >= QUEUE_TURNS or waiting_bytes + size > QUEUE_BYTES:
            self._dropped += 1
            return
        self._taken += 1
        self._taken_bytes += size
        self._fresh.append(record)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BATCH_SECONDS, self._hand_over)

    async def close(self) -> None:
        """Write what waits and release the file."""
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._hand_over()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _hand_over(self) -> None:
        self._timer = None
        if self._fresh:
            self._queue.put(self._fresh)
            self._fresh = []

    def _serve(self) -> None:
        while (records := self._queue.get()) is not None:
            for start in range(0, len(records), SLICE):
                self._keep(records[start : start + SLICE])
        with suppress(sqlite3.Error):
            self._db.close()

    def _keep(self, records: Sequence[Record]) -> None:
        rows = [row for record in records if (row := self._encoded(record)) is not None]
        try:
            self._write(rows)
            self._recorded += len(rows)
            self._failed += len(records) - len(rows)
        except Exception as error:  # whatever it is, the next turns must be tried
            self._failed += len(records)
            self._undo()
            self._complain(error)
        self._done += len(records)
        self._done_bytes += sum(map(_characters, records))

    def _encoded(self, record: Record) -> _Row | None:
        try:
            body = self._encoder.encode(record)
        except Exception as error:  # a client's numbers and texts are in it, and one must not cost the others
            self._complain(error)
            return None
        return _Row(record, body) if len(body) <= MAX_RECORD else None

    def _write(self, rows: Sequence[_Row]) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        first = 1 + (db.execute("SELECT max(seq) FROM turns").fetchone()[0] or 0)
        heads = [self._head(first + at, row) for at, row in enumerate(rows)]
        _insert(db, "turns", heads)
        _insert(db, "bodies", [(first + at, row.body) for at, row in enumerate(rows)])
        size = sum(len(row.body) for row in rows)
        change = "UPDATE totals SET turns = turns + ?, bytes = bytes + ? RETURNING bytes"
        total: int = db.execute(change, (len(rows), size)).fetchone()[0]
        self._prune(total)
        db.execute("COMMIT")

    def _head(self, seq: int, row: _Row) -> tuple[object, ...]:
        record = row.record
        return (
            seq, record.id, record.tenant, record.session, record.parent, record.turn, record.question, record.label,
            record.revision, record.status, record.created, self._consent(record.tenant), len(row.body),
        )  # fmt: skip

    def _consent(self, tenant: str) -> int:
        number = self._numbers.get(tenant)
        if number is None:
            values = msgspec.structs.astuple(self._consents[tenant])
            self._db.execute("INSERT OR IGNORE INTO consents (tenant, consent, licence) VALUES (?, ?, ?)", values)
            find = "SELECT id FROM consents WHERE (tenant, consent, licence) = (?, ?, ?)"
            number = self._numbers[tenant] = self._db.execute(find, values).fetchone()[0]
        return number

    def _prune(self, total: int) -> None:
        """Delete the oldest turns while there are too many bytes, and those that are too old, a slice at a time."""
        now = self._clock()
        due = now - self._aged >= AGE_SECONDS
        if total <= self._bounds.max_bytes and not due:
            return
        before = now - self._bounds.max_age
        last = gone = 0
        for seq, size, created in self._db.execute(OLDEST, (SLICE * 4,)).fetchall():
            if total <= self._bounds.max_bytes and created >= before:
                # Only when nothing more is too old, it is looked at later again.
                self._aged = now
                break
            last, total, gone = seq, total - size, gone + 1
        else:
            self._aged = now if not gone else self._aged
        if gone:
            self._db.execute("DELETE FROM turns WHERE seq <= ?", (last,))
            self._db.execute("DELETE FROM bodies WHERE seq <= ?", (last,))
            self._db.execute("UPDATE totals SET turns = turns - ?, bytes = ?", (gone, total))

    def _undo(self) -> None:
        self._numbers.clear()
        with suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _complain(self, error: Exception) -> None:
        now = time.monotonic()
        if now - self._complained >= COMPLAIN_SECONDS:
            self._complained = now
            log.error("turns were not recorded: %s", file_error(self._path, error).message)


def _insert(db: sqlite3.Connection, table: str, rows: Sequence[tuple[object, ...]]) -> None:
    at = 0
    for size in ROWS:
        while len(rows) - at >= size:
            values = ", ".join([f"({', '.join('?' * len(rows[0]))})"] * size)
            db.execute(f"INSERT INTO {table} VALUES {values}", tuple(chain.from_iterable(rows[at : at + size])))
            at += size


def _characters(record: Record) -> int:
    """Roughly what a record keeps in memory: its texts and tokens."""
    size = len(record.answer.text) + 8 * (len(record.prompt_ids) + len(record.ids)) + 2048
    for message in record.messages:
        content = message.get("content")
        size += len(content) if isinstance(content, str) else len(str(content))
    return size
