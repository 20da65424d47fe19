"""Connections to a migrated store, and the two ways they are used: write transactions and read snapshots."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from macaron.store.failures import config_error, store_error
from macaron.store.lane import Job, Outcome
from macaron.store.migrations import check_schema
from macaron.store.transaction import Transaction
from macaron.store.writes import Put, put_steps

CHECKPOINT_PAGES = 4096
"""Pages in the log after which a commit moves them into the file, which takes milliseconds: 16 MiB, not SQLite's 4."""

PAGE_CACHE_KIB = 8192
"""Memory for the database's pages, of each connection."""

Durability = Literal["normal", "full"]
Read = Callable[[sqlite3.Cursor], Any]
Write = Put | Callable[[Transaction], Any]


def connect(path: Path, mode: Literal["rw", "ro"], durability: Durability, busy_timeout: float) -> sqlite3.Connection:
    """Open a store that is there and has this version's schema.

    Raises:
        ConfigError: it is not there, damaged, not migrated, newer, or not accessible.
    """
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        db = sqlite3.connect(uri, uri=True, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
        try:
            check_schema(path, db)
            db.execute(f"PRAGMA synchronous = {durability}")
            db.execute(f"PRAGMA cache_size = -{PAGE_CACHE_KIB}")
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            # What a client had deleted is overwritten where that costs no extra page.
            db.execute("PRAGMA secure_delete = FAST")
        except BaseException:
            db.close()
            raise
    except sqlite3.Error as error:
        raise config_error(path, error) from error
    return db


class Reader:
    """Runs reads, a batch in one snapshot."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path = path
        self._cursor = db.cursor()

    def run(self, jobs: Sequence[Job[Read]]) -> list[Outcome]:
        """A failing read fails only its own caller."""
        try:
            self._cursor.execute("BEGIN")
            return [self._one(job) for job in jobs]
        except sqlite3.Error as error:
            return [Outcome(job.future, error=store_error(self._path, error)) for job in jobs]
        finally:
            if self._cursor.connection.in_transaction:
                self._cursor.execute("ROLLBACK")

    def _one(self, job: Job[Read]) -> Outcome:
        try:
            return Outcome(job.future, job.work(self._cursor))
        except Exception as error:
            return Outcome(job.future, error=store_error(self._path, error))


class Writer:
    """Runs writes, a batch in one transaction.

    A failing write fails only its own caller: the batch is undone and its writes are run again one by one. A failing
    commit fails them all, since what is on the disk is then unknown.
    """

    def __init__(
        self,
        path: Path,
        db: sqlite3.Connection,
        clock: Callable[[], float],
        committed: Callable[[Transaction], None],
    ) -> None:
        self._path = path
        self._cursor = db.cursor()
        self._clock = clock
        self._committed = committed

    def run(self, jobs: Sequence[Job[Write]]) -> list[Outcome]:
        """All in one transaction; returns once it is durable."""
        transaction = Transaction(self._cursor, self._clock())
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
            try:
                outcomes = _perform(jobs, transaction)
            except Exception as error:
                self._undo()
                return self._apart(jobs, error)
            transaction.finish()
            self._cursor.execute("COMMIT")
        except Exception as error:
            self._undo()
            return [Outcome(job.future, error=store_error(self._path, error)) for job in jobs]
        self._committed(transaction)
        return outcomes

    def _apart(self, jobs: Sequence[Job[Write]], error: Exception) -> list[Outcome]:
        if len(jobs) > 1:
            return [outcome for job in jobs for outcome in self.run([job])]
        return [Outcome(jobs[0].future, error=store_error(self._path, error))]

    def _undo(self) -> None:
        # SQLite has already rolled back on its own after some errors, a full disk among them.
        if self._cursor.connection.in_transaction:
            self._cursor.execute("ROLLBACK")


def _perform(jobs: Sequence[Job[Write]], transaction: Transaction) -> list[Outcome]:
    """All steps go first and together: whatever else is in the batch may be about them, never the other way."""
    rows = [row for job in jobs if isinstance(job.work, Put) for row in job.work.rows]
    if rows:
        put_steps(transaction, rows)
    return [Outcome(job.future, None if isinstance(job.work, Put) else job.work(transaction)) for job in jobs]
