"""Writes of one process, gathered: what comes while a batch is under way goes together in the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from macaron.errors import MacaronError, StoreError
from macaron.store.postgres.failures import refused
from macaron.store.postgres.rows import Row

BATCH = 256
"""Most writes of one batch, and the bytes after which it is closed."""
BATCH_BYTES = 16_777_216

WAITING = 8192
"""Most writes that wait, after which new ones are refused; likewise their bytes."""
WAITING_BYTES = 268_435_456


class Write(NamedTuple):
    """Steps to put, all or none, and who waits for them. None at all is a write that only proves it can be done."""

    rows: Sequence[Row]
    done: asyncio.Future[None]

    @property
    def size(self) -> int:
        """Bytes, about."""
        return sum(row.size for row in self.rows)


class WriteQueue:
    """One batch at a time. Used from one event loop."""

    def __init__(self, flush: Callable[[Sequence[Row]], Awaitable[None]], after: Callable[[], Awaitable[None]]) -> None:
        """`flush` writes rows, all or none; `after` is awaited between batches, and raises nothing."""
        self._flush = flush
        self._after = after
        self._waiting: list[Write] = []
        self._bytes = 0
        self._task: asyncio.Task[None] | None = None

    def submit(self, rows: Sequence[Row]) -> asyncio.Future[None]:
        """Queue a write; it is made whether or not anybody waits for it.

        Raises:
            StoreError: too much waits already.
        """
        if len(self._waiting) >= WAITING or self._bytes >= WAITING_BYTES:
            raise StoreError(f"{len(self._waiting)} writes wait for the store; try again later", retry_after=1.0)
        write = Write(rows, asyncio.get_running_loop().create_future())
        self._waiting.append(write)
        self._bytes += write.size
        if self._task is None:
            # It begins after this turn of the loop, whose other writes then go along.
            self._task = asyncio.create_task(self._run(), name="store writes")
        return write.done

    async def close(self) -> None:
        """Wait until everything that was queued is written, or has failed."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while batch := self._take():
                await self._write(batch)
                await self._after()
        finally:
            self._task = None
            for write in self._waiting:
                _fail(write, StoreError("the store is closed"))
            self._waiting.clear()

    def _take(self) -> list[Write]:
        count = size = 0
        for write in self._waiting[:BATCH]:
            count, size = count + 1, size + write.size
            if size >= BATCH_BYTES:
                break
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        self._bytes -= size
        return batch

    async def _write(self, batch: Sequence[Write]) -> None:
        """A write that is refused fails alone: the others are made again, one by one. Where the server is at fault,
        they all fail: what it has is then unknown, and waiting for each in turn would take for ever."""
        try:
            await self._flush([row for write in batch for row in write.rows])
        except MacaronError as error:
            if len(batch) > 1 and refused(error):
                for write in batch:
                    await self._write([write])
                return
            for write in batch:
                _fail(write, error)
        except BaseException as error:
            for write in batch:
                _fail(write, StoreError(f"the write failed: {type(error).__name__}"))
            raise
        else:
            for write in batch:
                if not write.done.done():
                    write.done.set_result(None)


def _fail(write: Write, error: MacaronError) -> None:
    if not write.done.done():
        write.done.set_exception(error)
