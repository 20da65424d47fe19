"""A response of server-sent events on the ASGI wire."""

from __future__ import annotations

import asyncio

from starlette.types import Send
from uvicorn.protocols.http.flow_control import FlowControl

from macaron.server.coalesce import CoalescingTransport
from macaron.server.respond import Headers
from macaron.wire.sse import PING

PING_SECONDS = 15.0


class ChunkWriter:
    """Writes chunks of a begun response of unknown length without a coroutine. The protocol puts its connection's into
    every request's state."""

    __slots__ = ("_flow", "_transport")

    def __init__(self, transport: CoalescingTransport, flow: FlowControl) -> None:
        self._transport = transport
        self._flow = flow

    @property
    def open(self) -> bool:
        """Whether the client reads as fast as it is written to."""
        return not self._flow.write_paused

    def write(self, data: bytes) -> None:
        """Send some bytes, at least one."""
        self._transport.write_now(b"%x\r\n%b\r\n" % (len(data), data))


class EventStream:
    """Writes events as they come. The response begins with the first of them; a silent one is kept open by comments.

    Args:
        chunks: under our own server, the shorter way to the client.
    """

    def __init__(self, send: Send, headers: Headers, chunks: ChunkWriter | None = None) -> None:
        self._send = send
        self._chunks = chunks
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

    @property
    def open(self) -> bool:
        """Whether `put` may be used now."""
        return self.begun and self._chunks is not None and self._chunks.open

    def put(self, data: bytes) -> None:
        """Send some events at once, without waiting: only while the stream is `open`."""
        if self._chunks is not None:
            self._written = self._loop.time()
            self._chunks.write(data)

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
