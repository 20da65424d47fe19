"""The link of the project's own: HTTP/1.1 on asyncio protocols and llhttp, made for a proxy's hot path.

A request is one write and one wake-up: no task, no per-read timer and no copy beyond the one that joins the body.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from macaron.engine.link.base import Limits, Reply, StreamReply
from macaron.engine.link.connection import Connection
from macaron.engine.link.exchange import Budget, Call, Exchange
from macaron.engine.link.message import RequestWriter
from macaron.engine.link.origin import Origin
from macaron.engine.link.pool import Pool
from macaron.errors import EngineError


class NativeLink:
    """A `Link`. It belongs to the event loop of its first request."""

    def __init__(
        self, origin: Origin, headers: Mapping[str, str] | None, limits: Limits, tls: ssl.SSLContext | None
    ) -> None:
        self._origin = origin
        self._limits = limits
        self._tls = tls
        self._writer = RequestWriter(origin, headers)
        self._pool: Pool | None = None
        self._closed = False

    async def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Reply:  # fmt: skip
        """See `Link.request`."""
        pool = self._ready()
        wire = self._writer.render(method, path, body, headers)
        budget = Budget.of(timeout, pool.now())
        connection, exchange = await self._exchange(pool, Call(wire, True, method == "HEAD", budget))
        reply = Reply(exchange.status, exchange.headers, exchange.take())
        pool.give_back(connection)
        return reply

    def stream(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[StreamReply]:  # fmt: skip
        """See `Link.stream`."""
        return _Stream(self, self._writer.render(method, path, body, headers), method == "HEAD", timeout)

    async def close(self) -> None:
        """See `Link.close`. Requests under way fail with an EngineError; so does every later one."""
        self._closed = True
        if self._pool is not None:
            await self._pool.close()

    def _ready(self) -> Pool:
        if self._pool is None:
            if self._closed:
                raise EngineError("the link to the engine is closed; open a new one")
            self._pool = Pool(asyncio.get_running_loop(), self._origin, self._limits, self._tls)
        return self._pool

    async def _exchange(self, pool: Pool, call: Call) -> tuple[Connection, Exchange]:
        """Send a request and wait for its response's headers, or its end; the connection is the caller's then."""
        connection = pool.take()
        if connection is None:
            connection = await pool.open(call.budget)
        while True:
            exchange, arrival = connection.send(call)
            try:
                await arrival
            except BaseException:
                pool.give_back(connection)
                raise
            if not exchange.stale:
                break
            # Nothing of a response came, so the engine had closed the connection before it saw the request. A
            # connection that was just made is never stale.
            connection = await pool.replace(connection, call.budget)
        if exchange.failure is not None:
            pool.give_back(connection)
            raise exchange.failure
        return connection, exchange


class _Stream:
    """The context of one streamed response; a class, because a generator would cost more than the rest of it."""

    __slots__ = ("_bodiless", "_connection", "_link", "_pool", "_timeout", "_wire")

    def __init__(self, link: NativeLink, wire: bytes, bodiless: bool, timeout: float | None) -> None:
        self._link = link
        self._wire = wire
        self._bodiless = bodiless
        self._timeout = timeout
        self._pool: Pool | None = None
        self._connection: Connection | None = None

    async def __aenter__(self) -> StreamReply:
        pool = self._pool = self._link._ready()
        call = Call(self._wire, False, self._bodiless, Budget.of(self._timeout, pool.now()))
        self._connection, exchange = await self._link._exchange(pool, call)
        return exchange

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection, self._connection = self._connection, None
        if self._pool is not None and connection is not None:
            self._pool.give_back(connection)
