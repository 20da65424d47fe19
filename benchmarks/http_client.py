"""A light HTTP/1.1 client for load: one kept-alive connection on httptools, a callback an exchange."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import cast

import httptools
import msgspec

FIRST_TEXT = re.compile(rb'"content":\s*"[^"]')
FINISH = re.compile(rb'"finish_reason":\s*"')
TAIL_BYTES = 24


class Exchange(msgspec.Struct):
    """One request and what came back. Times are `perf_counter` seconds, 0.0 for what did not happen.

    `first` is the first text of a stream, `terminal` the event with a finish reason, `end` the last byte.
    """

    began: float
    status: int = 0
    first: float = 0.0
    terminal: float = 0.0
    end: float = 0.0
    size: int = 0
    body: list[bytes] = []


class Client(asyncio.Protocol):
    """A connection. `done` is called when a response is complete, with status 0 when the connection is lost.

    `keep_body` keeps the response's bytes; `closed` says that no further request can be sent.
    """

    def __init__(self, done: Callable[[Client, Exchange], None], keep_body: bool = False) -> None:
        self._done = done
        self._keep_body = keep_body
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._events = False
        self._tail = b""
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send(self, request: bytes, began: float = 0.0) -> None:
        """Send a request; `began` is when it was due, now where it is left out."""
        assert self._transport is not None
        self._exchange = Exchange(began or perf_counter())
        self._tail = b""
        self._events = False
        self._transport.write(request)

    def close(self) -> None:
        """Close the connection; a running exchange is given up silently."""
        self._exchange = None
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._exchange is not None:
            self._finish(0)

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"content-type":
            self._events = value.startswith(b"text/event-stream")

    def on_body(self, body: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        exchange.size += len(body)
        if self._keep_body or self._parser.get_status_code() >= 400:
            exchange.body.append(body)
        if self._events and not exchange.terminal:
            self._watch(exchange, self._tail + body)

    def on_message_complete(self) -> None:
        if self._exchange is not None:
            self._finish(self._parser.get_status_code())

    def _watch(self, exchange: Exchange, text: bytes) -> None:
        if not exchange.first and FIRST_TEXT.search(text):
            exchange.first = perf_counter()
        if FINISH.search(text):
            exchange.terminal = perf_counter()
        # A mark may be cut by the boundary of two pieces; the tail of the last one joins the next.
        self._tail = text[-TAIL_BYTES:]

    def _finish(self, status: int) -> None:
        exchange, self._exchange = self._exchange, None
        assert exchange is not None
        self.closed = self.closed or not status or not self._parser.should_keep_alive()
        exchange.status = status
        exchange.end = perf_counter()
        self._done(self, exchange)


async def connect(port: int, done: Callable[[Client, Exchange], None], keep_body: bool = False) -> Client:
    """Open a connection to a port of this machine."""
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: Client(done, keep_body), "127.0.0.1", port)
    return client


class Pool:
    """Connections to one port, opened when all are busy; an exchange at a time on each."""

    def __init__(self, port: int, keep_body: bool = False) -> None:
        self._port = port
        self._keep_body = keep_body
        self._idle: list[Client] = []
        self._waiting: dict[Client, asyncio.Future[Exchange]] = {}

    async def exchange(self, request: bytes, due: float = 0.0, seconds: float = 120.0) -> Exchange:
        """Send a request and wait for its whole answer; `due` is when its time began, now where it is left out.

        Raises:
            TimeoutError: there is no whole answer within `seconds`.
        """
        due = due or perf_counter()
        client = await self._client()
        self._waiting[client] = asyncio.get_running_loop().create_future()
        client.send(request, due)
        return await asyncio.wait_for(self._waiting[client], seconds)

    def close(self) -> None:
        """Close what rests."""
        for client in self._idle:
            client.close()

    async def _client(self) -> Client:
        while self._idle:
            if not (client := self._idle.pop()).closed:
                return client
        return await connect(self._port, self._on_done, self._keep_body)

    def _on_done(self, client: Client, exchange: Exchange) -> None:
        waiting = self._waiting.pop(client)
        if not client.closed:
            self._idle.append(client)
        if not waiting.done():
            waiting.set_result(exchange)


async def burst(port: int, requests: Iterator[bytes], connections: int) -> Counter[int]:
    """Send all requests, `connections` at a time; how many answers had which status."""
    pool = Pool(port)
    statuses: Counter[int] = Counter()

    async def lane() -> None:
        for request in requests:
            statuses[(await pool.exchange(request)).status] += 1

    await asyncio.gather(*(lane() for _ in range(connections)))
    pool.close()
    return statuses
