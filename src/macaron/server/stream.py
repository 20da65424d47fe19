"""A response of server-sent events on the ASGI wire."""

from __future__ import annotations

import asyncio

from starlette.types import Send

from macaron.server.respond import Headers
from macaron.wire.sse import PING

PING_SECONDS = 15.0


class EventStream:
    """Writes events as they come. The response begins with the first of them; a silent one is kept open by comments."""

    def __init__(self, send: Send, headers: Headers) -> None:
        self._send = send
        self._headers = headers
        self._loop = asyncio.get_running_loop()
        self._written = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._pinging: asyncio.Task[None] | None = None
        self.begun = False

    async def write(self, data: bytes) -> None:
        """Send some events at once."""
        if not self.begun:
            await self._begin()
        self._written = self._loop.time()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes) -> None:
        """Send the last events and end the response."""
        if not self.begun:
            await self._begin()
        self.close()
        await self._send({"type": "http.response.body", "body": data})

    def close(self) -> None:
        """Stop keeping the stream open."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pinging is not None:
            self._pinging.cancel()
            self._pinging = None

    async def _begin(self) -> None:
        self.begun = True
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
            *self._headers,
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        self._timer = self._loop.call_later(PING_SECONDS, self._ping)

    def _ping(self) -> None:
        silent = self._loop.time() - self._written
        if silent >= PING_SECONDS and (self._pinging is None or self._pinging.done()):
            self._pinging = self._loop.create_task(self.write(PING))
            silent = 0.0
        self._timer = self._loop.call_later(max(1.0, PING_SECONDS - silent), self._ping)
