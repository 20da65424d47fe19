"""Work that outlives the request that caused it: bounded, seen to its end, and ended at shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger("macaron.background")


class Background:
    """A bounded set of tasks. What a task raises is logged, never lost."""

    def __init__(self, limit: int = 1024) -> None:
        self._limit = limit
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def full(self) -> bool:
        """Whether optional work should be left out."""
        return len(self._tasks) >= self._limit

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run `work` to its end, whatever happens to the caller."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def drain(self, timeout: float) -> None:
        """Wait for what is running or about to, then cancel what is left."""
        await asyncio.sleep(0)
        if self._tasks:
            _, late = await asyncio.wait(set(self._tasks), timeout=timeout)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=1.0)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed: %s", task.get_name(), error, exc_info=error)
