"""The store on one machine: SQLite in WAL mode, one writer and one reader thread in every process."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from macaron.conversation import Hop, Step
from macaron.store import expiry, reads, records, writes
from macaron.store.base import Append, Config, Entry, Limits, Lookup, Record, Totals
from macaron.store.cache import StepCache
from macaron.store.codec import Codec
from macaron.store.connection import Durability, Read, Reader, Write, Writer, connect
from macaron.store.lane import Lane
from macaron.store.transaction import Transaction
from macaron.store.writes import Put, row_of

COMMITS_PER_EXPIRY = 1024
"""Commits after which the age of sessions is looked at; bytes and sessions are looked at on every commit."""


class SqliteStore:
    """Implements `Store` on a file that `migrate` has prepared. Used from one event loop, which never blocks."""

    def __init__(
        self,
        path: Path,
        *,
        limits: Limits,
        durability: Durability = "normal",
        cache_bytes: int = 8_388_608,
        busy_timeout: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the file; it blocks, so do it before the event loop runs or on another thread.

        Args:
            cache_bytes: memory for steps kept between requests.
            busy_timeout: seconds to wait for another process that writes.
            clock: Unix time in seconds.

        Raises:
            ConfigError: the file is not there, damaged, not migrated, of a newer version, or not accessible.
        """
        self._limits = limits
        self._cache = StepCache(cache_bytes)
        self._codec = Codec()  # of the event loop
        self._write_codec = Codec()  # of the writer thread
        self._reads = reads.Reads(self._cache)
        self._commits = 0
        self._write_db = connect(path, "rw", durability, busy_timeout)
        self._read_db = connect(path, "ro", durability, busy_timeout)
        self._writer: Lane[Write] = Lane("store-writer", Writer(path, self._write_db, clock, self._committed).run)
        self._reader: Lane[Read] = Lane("store-reader", Reader(path, self._read_db).run)

    def put_steps(self, steps: Sequence[Step]) -> Awaitable[None]:
        """See `Store.put_steps`."""
        return self._writer.submit(Put(tuple(row_of(step, self._codec.encode(step)) for step in steps)))

    async def locate(
        self, scope: str, digests: Sequence[str], *, asked: str, session: str | None = None, head: str = ""
    ) -> Lookup:
        """See `Store.locate`."""
        query = reads.Query(scope, session, head)
        found: Lookup = await self._reader.submit(lambda cursor: self._reads.locate(cursor, query, digests, asked))
        return found

    async def path(self, scope: str, step_id: str) -> tuple[Step, ...]:
        """See `Store.path`. Begins later where the root's session was evicted."""
        steps: tuple[Step, ...] = await self._reader.submit(lambda cursor: self._reads.path(cursor, scope, step_id))
        return steps

    async def session(self, scope: str, session_id: str, limit: int = 200) -> tuple[Step, ...]:
        """See `Store.session`."""
        steps: tuple[Step, ...] = await self._reader.submit(
            lambda cursor: self._reads.session(cursor, scope, session_id, limit)
        )
        return steps

    async def put_summary(self, scope: str, step_id: str, summary: str | None, hop: Hop | None) -> None:
        """See `Store.put_summary`. Nothing happens where the step is gone; None leaves an earlier summary."""
        codec = self._write_codec
        await self._writer.submit(lambda tx: writes.put_summary(tx, codec, scope, step_id, summary, hop), urgent=False)

    async def freeze_note(self, scope: str, step_id: str, note: str) -> str:
        """See `Store.freeze_note`. A step that is gone takes the note without keeping it."""
        frozen: str = await self._writer.submit(lambda tx: writes.freeze_note(tx, scope, step_id, note))
        return frozen

    async def delete_step(self, scope: str, step_id: str) -> bool:
        """See `Store.delete_step`. The step is still found by its digest; False where it was deleted before."""
        codec = self._write_codec
        known: bool = await self._writer.submit(lambda tx: writes.delete_step(tx, codec, scope, step_id))
        return known

    async def config(self) -> Config:
        """See `Store.config`."""
        found: Config = await self._reader.submit(reads.config)
        return found

    async def compare_and_set(self, generation: int, document: bytes) -> Config:
        """See `Store.compare_and_set`."""
        now: Config = await self._writer.submit(lambda tx: writes.compare_and_set(tx, generation, document))
        return now

    async def put_record(self, record: Record) -> None:
        """See `Store.put_record`."""
        await self._writer.submit(lambda tx: records.put_record(tx, record, self._limits))

    async def record(self, scope: str, record_id: str) -> Record | None:
        """See `Store.record`."""
        found: Record | None = await self._reader.submit(lambda cursor: records.record(cursor, scope, record_id))
        return found

    async def lineage(self, scope: str, record_id: str, max_bytes: int) -> tuple[Record, ...]:
        """See `Store.lineage`."""
        found: tuple[Record, ...] = await self._reader.submit(
            lambda cursor: records.lineage(cursor, scope, record_id, max_bytes)
        )
        return found

    async def revise_record(
        self, scope: str, record_id: str, body: bytes, *, open: bool, appends: Sequence[Append] = ()
    ) -> bool:
        """See `Store.revise_record`."""
        done: bool = await self._writer.submit(
            lambda tx: records.revise_record(tx, scope, record_id, body, open, appends)
        )
        return done

    async def append(self, scope: str, append: Append, *, bounded: bool = False) -> bool:
        """See `Store.append`."""
        limits = self._limits if bounded else None
        done: bool = await self._writer.submit(lambda tx: records.append(tx, scope, append, limits))
        return done

    async def entries(
        self, scope: str, record_id: str, *, after: int = -1, limit: int = 1000, newest_first: bool = False
    ) -> tuple[Entry, ...]:
        """See `Store.entries`."""
        found: tuple[Entry, ...] = await self._reader.submit(
            lambda cursor: records.entries(cursor, scope, record_id, after, limit, newest_first)
        )
        return found

    async def entry(self, scope: str, record_id: str, entry_id: str) -> Entry | None:
        """See `Store.entry`."""
        found: Entry | None = await self._reader.submit(
            lambda cursor: records.entry(cursor, scope, record_id, entry_id)
        )
        return found

    async def delete_entry(self, scope: str, record_id: str, entry_id: str) -> bool:
        """See `Store.delete_entry`."""
        known: bool = await self._writer.submit(lambda tx: records.delete_entry(tx, scope, record_id, entry_id))
        return known

    async def renew_leases(self, leased: Sequence[tuple[str, str]], until: float) -> frozenset[tuple[str, str]]:
        """See `Store.renew_leases`."""
        still_open: frozenset[tuple[str, str]] = await self._writer.submit(
            lambda tx: records.renew_leases(tx, leased, until)
        )
        return still_open

    async def delete_record(self, scope: str, record_id: str) -> bool:
        """See `Store.delete_record`."""
        known: bool = await self._writer.submit(lambda tx: records.delete_record(tx, scope, record_id))
        return known

    async def totals(self, scope: str | None = None) -> Totals:
        """See `Store.totals`: steps, sessions and bytes that are kept, tokens since the scope is known.

        A scope whose last session was evicted is forgotten; everybody's tokens are not.
        """
        found: Totals = await self._reader.submit(lambda cursor: reads.totals(cursor, scope))
        return found

    async def expire(self) -> int:
        """See `Store.expire`. Other writes go between its slices."""
        gone = 0
        while True:
            done: expiry.Slice = await self._writer.submit(partial(expiry.expire, limits=self._limits))
            gone += done.sessions
            if not done.more:
                break
        while await self._writer.submit(partial(records.expire_records, limits=self._limits)):
            pass
        return gone

    async def ping(self) -> None:
        """See `Store.ping`. Every transaction writes the totals, so an empty one proves it."""
        await self._writer.submit(lambda tx: None)

    async def close(self) -> None:
        """See `Store.close`. The writer's connection goes last: it moves the WAL into the file."""
        await self._reader.close()
        self._read_db.close()
        await self._writer.close()
        self._write_db.close()

    def _committed(self, tx: Transaction) -> None:
        for step in tx.put:
            self._cache.put(step)
        self._commits += 1
        beyond = tx.total_bytes > self._limits.max_bytes or tx.total_sessions > self._limits.max_sessions
        if (beyond and tx.put) or tx.unexpired or self._commits % COMMITS_PER_EXPIRY == 0:
            self._writer.push(self._expire_slice)

    def _expire_slice(self, tx: Transaction) -> None:
        tx.unexpired = expiry.expire(tx, self._limits).more
