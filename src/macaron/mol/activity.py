"""How many hops are running now."""

from __future__ import annotations

import asyncio


class Activity:
    """Counts the route and answer hops of one event loop; summaries that wait for room wait here."""

    def __init__(self) -> None:
        self.running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __enter__(self) -> None:
        if not self.running:
            self._idle.clear()
        self.running += 1

    def __exit__(self, *_: object) -> None:
        self.running -= 1
        if not self.running:
            self._idle.set()

    async def idle(self) -> None:
        """Return once nothing is running."""
        await self._idle.wait()
