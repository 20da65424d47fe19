"""The connections of a link: how many there are, who waits for one, and which have taken too long."""

from __future__ import annotations

import asyncio
import math
import ssl
from collections import deque

from macaron.engine.link.base import Limits
from macaron.engine.link.connection import Connection
from macaron.engine.link.exchange import Budget
from macaron.engine.link.origin import Origin
from macaron.errors import EngineError, EngineTimeout


class Pool:
    """Hands out connections, the last used first, up to `Limits.connections` at once.

    A *slot* is the right to have one connection. It is held by whoever was given a connection, by an idle connection,
    or it is free; a freed slot goes to the longest waiting caller.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, origin: Origin, limits: Limits, tls: ssl.SSLContext | None
    ) -> None:
        self.limits = limits
        self.peer = origin.authority
        self.now = loop.time
        self._loop = loop
        self._origin = origin
        self._tls = tls
        self._slots = limits.connections
        self._idle: list[Connection] = []
        self._live: set[Connection] = set()
        self._waiters: deque[asyncio.Future[Connection | None]] = deque()
        self._connecting: set[asyncio.Timeout] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._is_closed = False
        self._settled: asyncio.Future[None] | None = None
        self._unsent: list[tuple[asyncio.Transport, bytes]] = []

    def take(self) -> Connection | None:
        """An idle connection that can be trusted, if there is one."""
        while self._idle:
            connection = self._idle.pop()
            if connection.alive():
                return connection
            connection.abort()
            self._free_slot()
        return None

    async def open(self, budget: Budget) -> Connection:
        """A new connection, or the next that becomes free.

        Raises:
            EngineTimeout: none was there in time.
            EngineError: the engine cannot be reached, or the link is closed.
        """
        if self._is_closed:
            raise _closed()
        if self._slots > 0:
            self._slots -= 1
            return await self._connect(budget)
        connection = await self._next(budget)
        return connection if connection is not None else await self._connect(budget)

    async def replace(self, connection: Connection, budget: Budget) -> Connection:
        """A new connection in the slot of one that turned out to be closed.

        Raises:
            EngineError: the engine cannot be reached, or the link is closed.
        """
        connection.finish()
        return await self._connect(budget)

    def give_back(self, connection: Connection) -> None:
        """End the use of a connection: it becomes idle if it is clean, else it is closed."""
        if not connection.finish():
            self._free_slot()
        elif self._waiters:
            self._pass_on(connection)
        else:
            self._idle.append(connection)

    async def close(self) -> None:
        """Close everything; callers that use or await a connection get an EngineError."""
        self._is_closed = True
        while self._waiters:
            _wake(self._waiters.popleft(), None)
        for scope in self._connecting:
            if not scope.expired():
                scope.reschedule(self._loop.time())
        self._idle.clear()
        for connection in list(self._live):
            connection.fail(_closed())
        while self._live or self._connecting:
            if self._settled is None or self._settled.done():
                self._settled = self._loop.create_future()
            await asyncio.shield(self._settled)
        if self._timer is not None:
            self._timer.cancel()

    # What connections report

    def opened(self, connection: Connection) -> None:
        """A transport is there."""
        self._live.add(connection)

    def lost(self, connection: Connection) -> None:
        """A transport is gone; if it was idle its slot is free."""
        self._live.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
            self._free_slot()
        self._settle()

    def watch(self, deadline: float) -> None:
        """Have the timer go off at the earliest deadline; a later one costs nothing."""
        if deadline < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = deadline
            self._timer = self._loop.call_at(deadline, self._sweep)

    def send(self, transport: asyncio.Transport, wire: bytes) -> None:
        """Write a request with the others of this turn of the loop.

        An engine on the same machine is woken once for all of them instead of once for each, which costs the sender
        more than everything else about a request. A request that is alone does not wait.
        """
        if len(self._live) - len(self._idle) <= 1:
            transport.write(wire)
            return
        if not self._unsent:
            self._loop.call_soon(self._write_unsent)
        self._unsent.append((transport, wire))

    # Helpers

    def _write_unsent(self) -> None:
        unsent, self._unsent = self._unsent, []
        for transport, wire in unsent:
            if not transport.is_closing():
                transport.write(wire)

    def _sweep(self) -> None:
        self._timer = None
        self._timer_at = math.inf
        now = self._loop.time()
        for connection in list(self._live):
            # Loops fire a timer up to their clock's resolution early.
            if connection.deadline <= now + 0.002:
                connection.expire(connection.deadline)
        self.watch(min((connection.deadline for connection in self._live), default=math.inf))

    def _pass_on(self, connection: Connection) -> None:
        while self._waiters:
            if _wake(self._waiters.popleft(), connection):
                return
        self._idle.append(connection)

    def _free_slot(self) -> None:
        while self._waiters:
            if _wake(self._waiters.popleft(), None):
                return
        self._slots += 1

    async def _next(self, budget: Budget) -> Connection | None:
        """Wait in the queue for a connection, or for None: a slot to make one in."""
        waiter: asyncio.Future[Connection | None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout_at(_when(budget.expires)):
                connection = await waiter
        except BaseException as error:
            self._withdraw(waiter)
            if isinstance(error, TimeoutError):
                raise EngineTimeout(
                    f"all {self.limits.connections} connections to the engine at {self.peer} were busy for "
                    f"{budget.seconds:g} s (the request's `timeout`)"
                ) from None
            raise
        if self._is_closed:
            raise _closed()
        return connection

    def _withdraw(self, waiter: asyncio.Future[Connection | None]) -> None:
        """Leave the queue; what was handed over in the same instant goes to the next in it."""
        if waiter.cancelled() or not waiter.done():
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        elif (connection := waiter.result()) is not None and connection.alive():
            self._pass_on(connection)
        else:
            self._free_slot()

    async def _connect(self, budget: Budget) -> Connection:
        """Connect in a slot that the caller holds; it is freed if that fails."""
        connection = Connection(self._loop, self)
        scope = asyncio.timeout_at(min(self._loop.time() + self.limits.connect, budget.expires))
        self._connecting.add(scope)
        try:
            if self._is_closed:
                raise _closed()
            async with scope:
                await self._loop.create_connection(
                    lambda: connection, self._origin.host, self._origin.port, ssl=self._tls,
                    server_hostname=self._origin.host if self._tls is not None else None,
                )  # fmt: skip
            if self._is_closed:
                raise _closed()
        except BaseException as error:
            connection.abort()
            # uvloop does not report the loss of a connection whose making was cancelled.
            self._live.discard(connection)
            self._free_slot()
            if isinstance(error, OSError | UnicodeError):
                raise self._unreachable(error, scope.expired(), budget) from error
            raise
        finally:
            self._connecting.discard(scope)
            self._settle()
        return connection

    def _unreachable(self, error: Exception, expired: bool, budget: Budget) -> EngineError:
        if self._is_closed:
            return _closed()
        if expired and budget.expires <= self._loop.time() + 0.002:
            return EngineTimeout(
                f"no connection to the engine at {self.peer} within {budget.seconds:g} s (the request's `timeout`)"
            )
        if expired:
            return EngineTimeout(
                f"no connection to the engine at {self.peer} within {self.limits.connect:g} s (limit `connect`); "
                "is the engine running?"
            )
        if isinstance(error, ssl.SSLError):
            return EngineError(
                f"no TLS connection to the engine at {self.peer}: {error}; does it trust its certificate?"
            )
        return EngineError(f"cannot connect to the engine at {self.peer}: {error}; is the engine running?")

    def _settle(self) -> None:
        if self._settled is not None and not self._settled.done() and not self._live and not self._connecting:
            self._settled.set_result(None)


def _wake(waiter: asyncio.Future[Connection | None], connection: Connection | None) -> bool:
    if waiter.done():
        return False
    waiter.set_result(connection)
    return True


def _when(expires: float) -> float | None:
    return None if expires == math.inf else expires


def _closed() -> EngineError:
    return EngineError("the link to the engine is closed; open a new one")
