"""An answer that is started before it is known to be wanted, and held until it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from macaron.engine.base import EngineEvent, HopRequest

HELD_BATCHES = 4096


class Held:
    """Reads the answer of `hop` ahead. Nothing of it reaches anyone before `release`; `drop` ends it in the engine."""

    def __init__(self, hop: HopRequest, events: AsyncGenerator[Sequence[EngineEvent], None]) -> None:
        self.hop = hop
        self._batches: asyncio.Queue[Sequence[EngineEvent] | BaseException | None] = asyncio.Queue(HELD_BATCHES)
        self._task = asyncio.get_running_loop().create_task(self._read(events), name="speculative answer")

    async def release(self) -> AsyncGenerator[Sequence[EngineEvent], None]:
        """What was held, then the rest as it comes."""
        try:
            while (batch := await self._batches.get()) is not None:
                if isinstance(batch, BaseException):
                    raise batch
                yield batch
        finally:
            await self.drop()

    async def drop(self) -> None:
        """End the work in the engine."""
        self._task.cancel()
        # Not awaited itself: the end of this task must not be taken for the end of the one that waits.
        await asyncio.wait((self._task,))

    async def _read(self, events: AsyncGenerator[Sequence[EngineEvent], None]) -> None:
        try:
            async with aclosing(events) as batches:
                async for batch in batches:
                    await self._batches.put(batch)
        except Exception as error:
            await self._batches.put(error)
        else:
            await self._batches.put(None)
