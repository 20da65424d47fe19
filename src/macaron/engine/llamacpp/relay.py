"""Carries events from the task that holds a slot of the engine to whoever reads the answer.

The engine is read at its own pace: a slow client keeps neither a slot nor the other adapters waiting. What piles up is
bounded by the tokens a slot can hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from macaron.engine.base import EngineEvent

Put = Callable[[Sequence[EngineEvent]], None]


async def relayed(produce: Callable[[Put], Awaitable[None]]) -> AsyncGenerator[Sequence[EngineEvent], None]:
    """Run `produce` in a task of its own and yield what it puts, all that has come at once.

    Leaving the iteration cancels the task and waits for its end. Its exception is raised after its last events.
    """
    waiting: list[EngineEvent] = []
    news = asyncio.Event()

    def put(events: Sequence[EngineEvent]) -> None:
        waiting.extend(events)
        news.set()

    async def run() -> None:
        try:
            await produce(put)
        finally:
            news.set()

    task = asyncio.create_task(run())
    try:
        while not task.done() or waiting:
            await news.wait()
            news.clear()
            if waiting:
                batch, waiting = waiting, []
                yield batch
            elif not task.done():
                # The task says that it ends one step before it has ended.
                await asyncio.wait([task])
        await task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            # Whoever left the iteration does not want its exception, and asyncio would complain that nobody did.
            task.exception()
