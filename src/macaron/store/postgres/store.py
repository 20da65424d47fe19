"""The store of several proxies behind one address: PostgreSQL."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from macaron.conversation import Hop, Step
from macaron.errors import MacaronError
from macaron.store.base import Config, Limits, Lookup, Totals
from macaron.store.cache import StepCache
from macaron.store.codec import Codec
from macaron.store.postgres import expiry, reads, writes
from macaron.store.postgres.database import Connection, Database
from macaron.store.postgres.migrations import check_schema
from macaron.store.postgres.queue import WriteQueue
from macaron.store.postgres.records import PostgresRecords
from macaron.store.postgres.rows import Row, raw, row_of
from macaron.store.postgres.writes import SHARDS, Edit, Found

COMMITS_PER_EXPIRY = 1024
"""Batches after which the age of sessions is looked at; bytes and sessions are looked at with every one."""


class PostgresStore(PostgresRecords):
    """Implements `Store` on a database that `migrate` has prepared. Used from one event loop."""

    def __init__(
        self, url: str, *, limits: Limits, cache_bytes: int = 8_388_608, clock: Callable[[], float] = time.time
    ) -> None:
        """Nothing is connected before the first use.

        Args:
            url: `postgresql://user@host:port/database`.
            cache_bytes: memory for steps kept between requests.
            clock: Unix time in seconds.

        Raises:
            ConfigError: the address is not understood, or the driver is not installed.
        """
        self._limits = limits
        self._clock = clock
        self._codec = Codec()
        self._cache = StepCache(cache_bytes)
        self._reads = reads.Reads(self._cache)
        self._database = Database(url, lambda connection: check_schema(url, connection))
        self._shard = random.randrange(SHARDS)
        super().__init__(self._database, limits, clock)
        self._queue = WriteQueue(self._flush, self._after)
        self._commits = 0
        self._overdue = False
        self._evicting = asyncio.Lock()

    def put_steps(self, steps: Sequence[Step]) -> Awaitable[None]:
        """See `Store.put_steps`."""
        self._database.check_open()
        done = self._queue.submit([row_of(step, self._codec) for step in steps])
        done.add_done_callback(lambda put: self._remember(steps, put))
        return done

    async def locate(
        self, scope: str, digests: Sequence[str], *, asked: str, session: str | None = None, head: str = ""
    ) -> Lookup:
        """See `Store.locate`."""
        self._database.check_open()
        if not digests:
            return Lookup(None, None)
        query = reads.Query(scope, digests[::-1], asked, session, head)
        return await self._database.run(lambda connection: self._reads.locate(connection, query), again=True)

    async def path(self, scope: str, step_id: str) -> tuple[Step, ...]:
        """See `Store.path`. Begins later where the root's session was evicted."""
        return await self._steps(scope, reads.WALK, raw(scope), raw(step_id))

    async def session(self, scope: str, session_id: str, limit: int = 200) -> tuple[Step, ...]:
        """See `Store.session`."""
        return await self._steps(scope, reads.SESSION, raw(scope), raw(session_id), limit)

    async def put_summary(self, scope: str, step_id: str, summary: str | None, hop: Hop | None) -> None:
        """See `Store.put_summary`. Nothing happens where the step is gone; None leaves an earlier summary."""
        await self._change(scope, step_id, lambda found: writes.summarised(found, self._codec, summary, hop))

    async def freeze_note(self, scope: str, step_id: str, note: str) -> str:
        """See `Store.freeze_note`. A step that is gone takes the note without keeping it."""
        return writes.note_of(await self._change(scope, step_id, lambda found: writes.noted(found, note)), note)

    async def delete_step(self, scope: str, step_id: str) -> bool:
        """See `Store.delete_step`. The step is still found by its digest; False where it was deleted before."""
        before = await self._change(scope, step_id, lambda found: writes.emptied(found, self._codec), body=True)
        return before is not None and not before.deleted

    async def config(self) -> Config:
        """See `Store.config`."""
        return await self._database.run(reads.config, again=True)

    async def compare_and_set(self, generation: int, document: bytes) -> Config:
        """See `Store.compare_and_set`."""
        return await self._database.run(lambda connection: writes.compare_and_set(connection, generation, document))

    async def totals(self, scope: str | None = None) -> Totals:
        """See `Store.totals`: steps, sessions and bytes that are kept, tokens since the scope is known.

        A scope whose last session was evicted is forgotten; everybody's tokens are not.
        """
        return await self._database.run(lambda connection: reads.totals(connection, scope), again=True)

    async def expire(self) -> int:
        """See `Store.expire`. Nothing is done where another process is at it."""
        gone = 0
        while True:
            done = await self._slice()
            gone += done.sessions
            if not done.more:
                await self._expire_records()
                return gone

    async def ping(self) -> None:
        """See `Store.ping`. It writes what puts write: a row of the counters."""
        self._database.check_open()
        await self._queue.submit(())

    async def close(self) -> None:
        """See `Store.close`."""
        await self._queue.close()
        await self._database.close()

    def _remember(self, steps: Sequence[Step], put: asyncio.Future[None]) -> None:
        if not put.cancelled() and put.exception() is None:
            for step in steps:
                self._cache.put(step)

    async def _steps(self, scope: str, sql: str, *values: object) -> tuple[Step, ...]:
        return await self._database.run(
            lambda connection: self._reads.steps(connection, scope, sql, *values), again=True
        )

    async def _change(self, scope: str, step_id: str, edit: Edit, *, body: bool = False) -> Found | None:
        return await self._database.run(
            lambda connection: writes.change(connection, scope, step_id, edit, self._shard, body=body)
        )

    async def _flush(self, rows: Sequence[Row]) -> None:
        now = self._clock()

        async def put(connection: Connection) -> Totals:
            return await writes.put(connection, rows, now, self._shard)

        total = await self._database.run(put)
        self._commits += 1
        beyond = total.bytes > self._limits.max_bytes or total.sessions > self._limits.max_sessions
        self._overdue |= (beyond and bool(rows)) or self._commits % COMMITS_PER_EXPIRY == 0

    async def _after(self) -> None:
        """Evict a slice where it is due; where it cannot be done, it is tried again after the next write."""
        if self._overdue:
            with suppress(MacaronError):
                self._overdue = (await self._slice()).more

    async def _slice(self) -> expiry.Slice:
        evict = partial(expiry.expire, limits=self._limits, now=self._clock(), shard=self._shard)
        # Another process that evicts is left alone, but who asks here finds done what this one was about to do.
        async with self._evicting:
            return await self._database.run(evict)
