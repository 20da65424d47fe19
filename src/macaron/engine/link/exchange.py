"""One response as it arrives: what a connection writes into and a caller reads from."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from macaron.errors import EngineError

if TYPE_CHECKING:
    from macaron.engine.link.connection import Connection


_MANY_PARTS = 1_024
"""Parts kept apart: an object for each of millions of one-byte chunks would take many times the body's size."""


class Budget(Struct, frozen=True):
    """The total time of a request: how long, and the loop time at which it is spent."""

    seconds: float
    expires: float

    @classmethod
    def of(cls, seconds: float | None, now: float) -> Budget:
        """The budget that starts at `now`; None is no limit."""
        return cls(math.inf, math.inf) if seconds is None else cls(seconds, now + seconds)


class Call(Struct, frozen=True):
    """A request ready to be sent. `whole` wakes the caller once, at the response's end;
    `bodiless` says that the response ends with its headers."""

    wire: bytes
    whole: bool
    bodiless: bool
    budget: Budget


class Exchange:
    """A response being received; also the `StreamReply` a caller reads. One reader at a time.

    Attributes:
        begun: any byte of the response has arrived.
        ready: the final headers are complete.
        complete: the body has ended as its framing says.
        failure: why the response will not be completed.
        stale: the connection was reused and closed before the response began, so the request may be sent again.
    """

    __slots__ = (
        "_connection", "_joined", "_limit", "_paused", "_pouring", "_waiter", "begun", "call", "complete", "failure",
        "headers", "parts", "ready", "size", "stale", "status",
    )  # fmt: skip

    def __init__(self, connection: Connection, call: Call, waiter: asyncio.Future[bool], limit: int) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.call = call
        self.parts: list[bytes] = []
        self.size = 0
        self.begun = False
        self.ready = False
        self.complete = False
        self.stale = False
        self.failure: EngineError | None = None
        self._connection = connection
        self._joined = bytearray()
        self._limit = limit
        self._paused = False
        self._pouring: Callable[[bytes], bool] | None = None
        self._waiter: asyncio.Future[bool] | None = waiter

    def wake(self) -> None:
        """Let the waiter look again, unless it is poured what has come and wants more."""
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        enough = False
        if self._pouring is not None and self.parts:
            try:
                enough = not self._pouring(self.take())
            except Exception as error:
                waiter.set_exception(error)
                return
            if not (enough or self.complete or self.failure is not None):
                return
        waiter.set_result(enough)

    def fail(self, error: EngineError) -> None:
        """End the response with an error; the first one stays."""
        if self.failure is None and not self.complete:
            self.failure = error
            self.wake()

    def throttle(self) -> None:
        """Stop reading from the engine until the reader has taken what is here."""
        if not self._paused:
            self._paused = True
            self._connection.pause()

    def add(self, data: bytes) -> None:
        """A part of the body has come."""
        parts = self.parts
        if len(parts) >= _MANY_PARTS:
            self._joined += b"".join(parts)
            parts.clear()
        parts.append(data)
        self.size += len(data)

    def take(self) -> bytes:
        """Everything that has arrived and was not taken yet."""
        parts = self.parts
        if self._joined:
            parts.insert(0, bytes(self._joined))
            self._joined.clear()
        self.parts = []
        self.size = 0
        if self._paused:
            self._paused = False
            self._connection.resume(self)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def chunks(self) -> AsyncIterator[bytes]:
        """Pieces of the body; see `StreamReply.chunks`."""
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self.parts:
            if self.complete:
                raise StopAsyncIteration
            if self.failure is not None:
                raise self.failure
            self._waiter = waiter = self._connection.loop.create_future()
            await waiter
        return self.take()

    async def pour(self, take: Callable[[bytes], bool]) -> bool:
        """See `StreamReply.pour`."""
        while True:
            if self.parts:
                if not take(self.take()):
                    return True
            elif self.complete:
                return False
            elif self.failure is not None:
                raise self.failure
            else:
                self._waiter = waiter = self._connection.loop.create_future()
                self._pouring = take
                try:
                    if await waiter:
                        return True
                finally:
                    self._pouring = None

    async def read(self) -> bytes:
        """The rest of the body; see `StreamReply.read`.

        Raises:
            EngineError: it is longer than the limit, or broke off.
        """
        pieces: list[bytes] = []
        size = 0
        async for piece in self:
            pieces.append(piece)
            size += len(piece)
            if size > self._limit:
                raise too_large(self._limit)
        return b"".join(pieces)


def too_large(limit: int) -> EngineError:
    """A body that is longer than it may be."""
    return EngineError(f"the engine's response body is longer than {limit} bytes (limit `body`)")
