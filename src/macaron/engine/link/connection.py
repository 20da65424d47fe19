"""One connection to the engine: an asyncio protocol around llhttp, used for one exchange after another."""

from __future__ import annotations

import asyncio
import math
from typing import Protocol, cast

import httptools

from macaron.engine.link.base import Limits
from macaron.engine.link.exchange import Call, Exchange, too_large
from macaron.errors import EngineError, EngineTimeout

_HIGH_WATER = 262_144
"""Bytes a slow reader may leave waiting before the engine is slowed down."""


class Keeper(Protocol):
    """Who owns the connections of a link and watches their time limits."""

    limits: Limits
    peer: str

    def opened(self, connection: Connection) -> None:
        """The transport is there."""
        ...

    def lost(self, connection: Connection) -> None:
        """The transport is gone."""
        ...

    def send(self, transport: asyncio.Transport, wire: bytes) -> None:
        """Write a request before the loop's next turn."""
        ...

    def watch(self, deadline: float) -> None:
        """Make sure that `Connection.expire` is called not long after the deadline."""
        ...


class Connection(asyncio.Protocol):
    """Receives responses. No method raises; what goes wrong ends the exchange and the transport.

    Attributes:
        deadline: loop time after which the connection is ended, infinite where nothing is awaited.
        served: exchanges that were completed before the present one.
    """

    __slots__ = (
        "_clean", "_doomed", "_exchange", "_header_bytes", "_headers", "_interim", "_keeper", "_limits", "_parser",
        "_silent", "_transport", "_until_close", "deadline", "loop", "served",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, keeper: Keeper) -> None:
        self.loop = loop
        self.deadline = math.inf
        self.served = 0
        self._keeper = keeper
        self._limits = keeper.limits
        self._parser: httptools.HttpResponseParser | None = None
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._doomed = False
        self._clean = False
        self._interim = False
        self._until_close = False
        self._header_bytes = 0
        self._headers: dict[str, str] = {}
        self._silent = 0

    # What the link asks for

    def send(self, call: Call) -> tuple[Exchange, asyncio.Future[bool]]:
        """Write a request; the future is done when the response is ready (or whole), or has failed."""
        waiter = self.loop.create_future()
        exchange = self._exchange = Exchange(self, call, waiter, self._limits.body)
        exchange.headers = self._headers = {}
        self._clean = False
        self._header_bytes = 0
        self._silent = 0
        transport = self._transport
        if transport is None or transport.is_closing():
            self._closed(None)
            return exchange, waiter
        self._keeper.send(transport, call.wire)
        self.deadline = min(self.loop.time() + self._limits.first_byte, call.budget.expires)
        self._keeper.watch(self.deadline)
        return exchange, waiter

    def finish(self) -> bool:
        """End the exchange; whether the connection can be used for another one. If not, it is closed."""
        exchange, self._exchange = self._exchange, None
        transport = self._transport
        if (
            exchange is None or not exchange.complete or not self._clean or transport is None
            or transport.is_closing() or transport.get_write_buffer_size()
        ):  # fmt: skip
            if exchange is not None:
                exchange.fail(EngineError("the response was left before its end"))
            self.abort()
            return False
        if not transport.is_reading():
            transport.resume_reading()
        self.served += 1
        self.deadline = self.loop.time() + self._limits.keep_alive
        self._keeper.watch(self.deadline)
        return True

    def alive(self) -> bool:
        """Whether an idle connection may still be used."""
        transport = self._transport
        return transport is not None and not transport.is_closing() and self.deadline > self.loop.time()

    def abort(self) -> None:
        """Close at once, whatever is under way; also while the connection is still being made."""
        self._doomed = True
        self.deadline = math.inf
        if self._transport is not None:
            self._transport.abort()

    def fail(self, error: EngineError) -> None:
        """End the exchange with an error and close."""
        if self._exchange is not None:
            self._exchange.fail(error)
        self.abort()

    def expire(self, now: float) -> None:
        """End what took too long; an idle connection is only closed."""
        exchange = self._exchange
        if exchange is None:
            self.abort()
            return
        limits, budget = self._limits, exchange.call.budget
        if budget.expires <= now:
            reason = f"did not complete its response within {budget.seconds:g} s (the request's `timeout`)"
        elif not exchange.ready:
            reason = f"sent no response headers within {limits.first_byte:g} s (limit `first_byte`)"
        else:
            reason = f"sent nothing for {limits.idle:g} s in the middle of a response (limit `idle`)"
        self.fail(EngineTimeout(f"the engine at {self._keeper.peer} {reason}"))

    def pause(self) -> None:
        """Stop reading; the reader is slow, so the engine's silence is not held against it."""
        if self._transport is not None and self._exchange is not None:
            self._transport.pause_reading()
            self.deadline = self._exchange.call.budget.expires

    def resume(self, exchange: Exchange) -> None:
        """Read on, unless the exchange is no longer this connection's."""
        if self._exchange is exchange and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            if not exchange.complete:
                self.deadline = min(self.loop.time() + self._limits.idle, exchange.call.budget.expires)
                self._keeper.watch(self.deadline)

    # What the transport reports

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there (over TLS: the handshake is done)."""
        self._transport = cast("asyncio.Transport", transport)
        if self._doomed:
            self._transport.abort()
            return
        self._parser = httptools.HttpResponseParser(self)
        self._keeper.opened(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of the response, or bytes nobody asked for, after which the connection cannot be trusted."""
        exchange = self._exchange
        if exchange is None or exchange.complete or self._parser is None:
            self.abort()
            return
        if exchange.failure is not None:
            return
        exchange.begun = True
        # Heads, interim responses, chunk extensions and trailers: whatever brings no body must stay small.
        self._silent += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.fail(self._corrupt("it switched protocols, which was not asked for"))
        except httptools.HttpParserError as error:
            self._unreadable(exchange, error)
        self._progress(exchange)

    def eof_received(self) -> None:
        """The engine will send no more; the only end of a body without a length."""
        exchange = self._exchange
        if exchange is not None and exchange.ready and self._until_close and exchange.failure is None:
            exchange.complete = True
            self.deadline = math.inf
            exchange.wake()
        else:
            self._closed(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, by either side."""
        self._closed(exc)
        self._transport = None
        self._parser = None
        self._keeper.lost(self)

    # What the parser reports

    def on_message_begin(self) -> None:
        """A response begins; one after the response is a surplus that ends the connection."""
        exchange = self._exchange
        if exchange is None or exchange.complete:
            self._clean = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, or one trailer, which is only counted."""
        self._header_bytes += len(name) + len(value) + 4
        if self._header_bytes > self._limits.headers:
            raise _headers_too_large(self._limits.headers)
        exchange = self._exchange
        if exchange is None or exchange.ready:
            return
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1").rstrip(" \t")
        headers = self._headers
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        """The head of a final or an interim response is complete."""
        exchange, parser = self._exchange, self._parser
        if exchange is None or parser is None or exchange.complete:
            return
        status = parser.get_status_code()
        self._interim = 100 <= status < 200
        if self._interim:
            self._headers.clear()
            return
        if status < 200:
            raise self._corrupt(f"its status is {status}")
        exchange.status = status
        exchange.ready = True
        self._frame(exchange)

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        exchange = self._exchange
        if exchange is None or exchange.complete:
            self._clean = False
            return
        self._silent = 0
        exchange.add(data)
        if exchange.call.whole and exchange.size > self._limits.body:
            raise too_large(self._limits.body)

    def on_message_complete(self) -> None:
        """The response has ended as its framing says."""
        exchange, parser = self._exchange, self._parser
        if exchange is None or parser is None or exchange.complete:
            return
        if self._interim:
            self._interim = False
            return
        exchange.complete = True
        self._clean = parser.should_keep_alive()

    # Helpers

    def _frame(self, exchange: Exchange) -> None:
        encoding = self._headers.get("transfer-encoding")
        if encoding is not None and encoding.lower() != "chunked":
            raise self._corrupt(f"transfer-encoding {encoding[:80]!r} is not supported, only chunked")
        self._until_close = encoding is None and "content-length" not in self._headers
        if exchange.call.bodiless:
            # The parser cannot be told that a length is not followed by a body, so it is not used again.
            exchange.complete = True

    def _progress(self, exchange: Exchange) -> None:
        """Wake the reader if it has something to see, and set the next time limit."""
        if exchange.complete:
            self.deadline = math.inf
            exchange.wake()
            return
        if self._silent > self._limits.headers:
            self.fail(_headers_too_large(self._limits.headers))
        if exchange.failure is not None or not exchange.ready:
            return
        first = self.deadline
        self.deadline = min(self.loop.time() + self._limits.idle, exchange.call.budget.expires)
        if self.deadline < first:
            self._keeper.watch(self.deadline)
        if exchange.call.whole:
            return
        exchange.wake()
        if exchange.size > _HIGH_WATER:
            exchange.throttle()

    def _unreadable(self, exchange: Exchange, error: httptools.HttpParserError) -> None:
        self._clean = False
        if exchange.complete:
            return
        cause = error.__context__
        self.fail(cause if isinstance(cause, EngineError) else self._corrupt(str(error)))

    def _closed(self, exc: Exception | None) -> None:
        exchange = self._exchange
        if exchange is None or exchange.complete or exchange.failure is not None:
            return
        if not exchange.begun:
            exchange.stale = self.served > 0
            when = "before it answered"
        elif not exchange.ready:
            when = "in the middle of its response headers"
        else:
            when = "in the middle of a response"
        reason = f": {exc}" if exc is not None else ""
        self.fail(EngineError(f"the engine at {self._keeper.peer} closed the connection {when}{reason}"))

    def _corrupt(self, reason: str) -> EngineError:
        return EngineError(f"the engine at {self._keeper.peer} sent a response that is not valid HTTP/1.1: {reason}")


def _headers_too_large(limit: int) -> EngineError:
    return EngineError(f"the engine's response headers are larger than {limit} bytes (limit `headers`)")
