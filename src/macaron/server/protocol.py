"""The HTTP/1.1 protocol of the server: uvicorn's, with bounds on how slowly and how much a client may send or read."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from macaron.server.coalesce import CoalescingTransport
from macaron.server.receive import Departure
from macaron.server.respond import Headers
from macaron.server.stream import ChunkWriter

MAX_OVERHEAD = 65_536
"""Bytes of a request that are not body: its headers, and a chunked body's framing and trailers."""

MAX_PIPELINED = 16
DEFAULT_HEADER_TIMEOUT = 10.0
WRITE_TIMEOUT = 60.0


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose request line and headers do not arrive whole, in time and within size, that go on
    sending a body that was answered already, or that do not read their response.

    uvicorn bounds none of it: a client that sends one byte a minute, or headers without end, would hold it for ever.
    """

    header_timeout = DEFAULT_HEADER_TIMEOUT
    write_timeout = WRITE_TIMEOUT

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        coalescing = CoalescingTransport(transport, self.loop)
        super().connection_made(coalescing)
        self._chunks = ChunkWriter(coalescing, self.flow)
        self._reading: Literal["", "headers", "body"] = ""
        self._overhead = 0
        self._running: RequestResponseCycle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = self.loop.call_later(self.header_timeout, self._late)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._overhead += len(data)
        super().data_received(data)
        if self._overhead > MAX_OVERHEAD:
            self._refuse(b"431 Request Header Fields Too Large")
        elif self._timer is None:
            if self._reading == "headers":
                self._timer = self.loop.call_later(self.header_timeout, self._late)
            elif not self._reading and self.timeout_keep_alive_task is None and self._answered:
                # What came was the rest of an answered body, or empty lines: uvicorn has stopped its own timer.
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )

    def on_message_begin(self) -> None:
        """See `httptools`."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise HttpParserError("too many requests in one go")
        self._reading = "headers"
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """See `httptools`."""
        self._reading = "body"
        self._stop_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """See `httptools`. Framing may be as long as what it frames: clients may write small chunks."""
        self._overhead = max(0, self._overhead - 2 * len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """See `httptools`."""
        self._reading = ""
        self._overhead = 0
        self._stop_timer()
        super().on_message_complete()
        if self._running is self.cycle:
            self._departure.arrived = True

    def on_response_complete(self) -> None:
        """See `HttpToolsProtocol`. The rest of an answered body is read and forgotten, for a while, since a client that
        finds its connection reset may never see the answer.
        """
        super().on_response_complete()
        if self._reading == "body" and self._answered and not self.transport.is_closing():
            if self.expect_100_continue:
                self.transport.close()
            else:
                self._timer = self.loop.call_later(self.header_timeout, self._late)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        state = cycle.scope["state"]
        state["departure"] = self._departure = Departure(arrived=not cycle.more_body)
        state["chunks"] = self._chunks
        state["respond"] = self._respond
        super()._start_asgi_task(cycle, app)

    def _respond(self, body: bytes, headers: Headers) -> bool:
        """See `respond.Respond`: what the cycle's `send` does with two messages, without checking our own headers."""
        cycle = self._running
        if cycle is None or cycle.response_started or cycle.disconnected:
            return False
        if not cycle.keep_alive or self.flow.write_paused:
            return False
        parts = [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n" % len(body)]
        for name, value in (*cycle.default_headers, *headers):
            parts += (name, b": ", value, b"\r\n")
        parts += (b"\r\n", body)
        self.transport.write(b"".join(parts))
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        cycle.on_response()
        return True

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self.write_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._stop_stalled()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._stop_timer()
        self._stop_stalled()
        super().connection_lost(exc)
        running = self._running
        if running is not None and not running.response_complete:
            self._departure.happen()
            # uvicorn tells only the last of several pipelined requests that its client has left.
            running.disconnected = True
            running.message_event.set()

    @property
    def _answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _late(self) -> None:
        self._timer = None
        if self._answered:
            self._refuse(b"408 Request Timeout")
        else:
            # A pipelined request may be late only once the one before it is answered.
            self._timer = self.loop.call_later(self.header_timeout, self._late)

    def _refuse(self, status: bytes) -> None:
        self._stop_timer()
        if self.transport.is_closing():
            return
        if self._answered and self._reading != "body":
            self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        self.transport.close()


def protocol_class(header_timeout: float) -> type[BoundedProtocol]:
    """The protocol with this many seconds for a request's headers."""
    return type("BoundedProtocol", (BoundedProtocol,), {"header_timeout": header_timeout})
