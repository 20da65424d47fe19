"""An answer that is started before it is known to be wanted, and held until it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from msgspec import Struct

from macaron.engine.base import Engine, EngineEvent, HopRequest, Sink

HELD_BATCHES = 4096


class Started(Struct, frozen=True):
    """When a hop began: Unix time, and the clock its seconds are counted by."""

    time: float
    clock: float

    @classmethod
    def now(cls) -> Started:
        """This moment."""
        return cls(time.time(), time.perf_counter())


class Held:
    """Reads the answer of `hop` ahead. Nothing of it reaches anyone before `release`; `drop` ends it in the engine.

    What comes while whoever it was released to waits goes to `sink` first.
    """

    def __init__(self, hop: HopRequest, engine: Engine, sink: Sink) -> None:
        self.hop = hop
        self.started = Started.now()
        self._sink = sink
        self._awaited = False
        self._batches: asyncio.Queue[Sequence[EngineEvent] | Exception | None] = asyncio.Queue(HELD_BATCHES)
        self._task = asyncio.get_running_loop().create_task(self._read(engine), name="speculative answer")

    async def release(self) -> AsyncGenerator[Sequence[EngineEvent], None]:
        """What was held, as one batch, then the rest as it comes."""
        try:
            end: Exception | bool = False
            while not end:
                events, end = await self._next()
                if events:
                    yield events
            if isinstance(end, Exception):
                raise end
        finally:
            await self.drop()

    async def _next(self) -> tuple[list[EngineEvent], Exception | bool]:
        """Everything that has been read, and how it ended, if it has."""
        events: list[EngineEvent] = []
        self._awaited = True
        batch = await self._batches.get()
        self._awaited = False
        while batch is not None and not isinstance(batch, Exception):
            events.extend(batch)
            if self._batches.empty():
                return events, False
            batch = self._batches.get_nowait()
        return events, batch or True

    async def drop(self) -> None:
        """End the work in the engine."""
        self._task.cancel()
        # Not awaited itself: the end of this task must not be taken for the end of the one that waits.
        await asyncio.wait((self._task,))

    def _pass(self, events: Sequence[EngineEvent]) -> bool:
        """Nothing overtakes what is in the queue."""
        return self._awaited and self._batches.empty() and self._sink(events)

    async def _read(self, engine: Engine) -> None:
        try:
            async with aclosing(engine.answer(self.hop, self._pass)) as batches:
                async for batch in batches:
                    await self._batches.put(batch)
        except Exception as error:
            await self._batches.put(error)
        else:
            await self._batches.put(None)
