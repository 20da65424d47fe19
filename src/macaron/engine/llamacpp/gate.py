"""The fair gate in front of the embedded engine, which by itself starves every adapter but the busiest.

One adapter has its *turn* at a time. Tickets of the same adapter join a running turn while nobody else waits, or up to
`Limits.requests` tickets and `Limits.tokens` tokens; then the turn runs out and the adapter that has waited longest is
next. Waiting is counted in admissions, not in seconds: each ticket is *due* at the number of admissions when it came
plus an allowance of its kind, which lets routes overtake answers and answers overtake summaries, but not for ever.

The bound: of A adapters, one that waits has its turn within `allowance + A * Limits.requests` admissions, counted from
when its ticket came or its last turn ended, whatever arrives meanwhile.

A running summary gives way to a route or an answer that has to wait, unless others were waiting already when its turn
came: otherwise a busy service would begin each summary many times and finish none.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from macaron.conversation import HopKind
from macaron.engine.base import Preempted
from macaron.errors import Busy, EngineError

ALLOWANCE: dict[HopKind, int] = {"route": 0, "answer": 8, "summary": 64}


class Lane(NamedTuple):
    """The slots a ticket can use: those for routing with an adapter, or those for its conversations."""

    adapter: str | None
    routing: bool


class Limits(NamedTuple):
    """Of one adapter's turn while others wait: tickets admitted, and tokens read and written."""

    requests: int = 8
    tokens: int = 2048


class Ticket:
    """One hop at the gate."""

    __slots__ = ("due", "firm", "kind", "lane", "number")

    def __init__(self, kind: HopKind, lane: Lane, number: int, due: int) -> None:
        self.kind = kind
        self.lane = lane
        self.number = number
        self.due = due
        self.firm = False


class Schedule:
    """Who is next. Pure: no clock, no event loop; every method costs at most the number of lanes."""

    def __init__(self, capacity: Callable[[Lane], int], limits: Limits | None = None) -> None:
        """`capacity` says how many tickets of a lane can run at once, at least 1."""
        self._capacity = capacity
        self._bounds = limits or Limits()
        self._waiting: dict[Lane, dict[HopKind, OrderedDict[int, Ticket]]] = {}
        self._running: dict[int, Ticket] = {}
        self._occupied: dict[Lane, int] = {}
        self._adapter: str | None = None
        self._admitted = 0
        self._turn_requests = 0
        self._turn_tokens = 0
        self._served_at: dict[str | None, int] = {}
        self._numbers = 0

    @property
    def admitted(self) -> int:
        """Tickets that have begun so far: the clock of this schedule."""
        return self._admitted

    @property
    def running(self) -> int:
        """Tickets that have begun and not finished."""
        return len(self._running)

    def waiting(self, kind: HopKind | None = None) -> int:
        """Tickets that have not begun, of one kind or of all."""
        lanes = self._waiting.values()
        return sum(len(queue) for queues in lanes for name, queue in queues.items() if kind in (None, name))

    def enter(self, kind: HopKind, adapter: str | None) -> Ticket:
        """Queue a hop. Call `admit` next."""
        lane = Lane(adapter, kind == "route")
        self._numbers += 1
        ticket = Ticket(kind, lane, self._numbers, self._admitted + ALLOWANCE[kind])
        queues = self._waiting.setdefault(lane, {})
        queues.setdefault(kind, OrderedDict())[ticket.number] = ticket
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """A ticket has finished, or gave up waiting. Call `admit` next."""
        if self._running.pop(ticket.number, None) is not None:
            self._occupied[ticket.lane] -= 1
            if not self._occupied[ticket.lane]:
                del self._occupied[ticket.lane]
            self._served_at[ticket.lane.adapter] = self._admitted
        else:
            self._forget(ticket)

    def spend(self, tokens: int) -> None:
        """Tokens that the current turn has read or written."""
        self._turn_tokens += tokens

    def admit(self) -> list[Ticket]:
        """Begin every ticket that can begin now, and return them."""
        begun: list[Ticket] = []
        while (ticket := self._next()) is not None:
            self._begin(ticket)
            begun.append(ticket)
        return begun

    def stranded(self) -> list[Ticket]:
        """Waiting tickets of lanes that have no slots any more; as long as they wait, they can keep others waiting."""
        return [
            ticket
            for lane, queues in self._waiting.items()
            if not self._capacity(lane)
            for queue in queues.values()
            for ticket in queue.values()
        ]

    def to_preempt(self) -> list[Ticket]:
        """Running summaries that should end because a route or an answer waits."""
        if not self._urgent_wait():
            return []
        return [ticket for ticket in self._running.values() if ticket.kind == "summary" and not ticket.firm]

    def _next(self) -> Ticket | None:
        if not self._running:
            heads = list(self._heads())
            if not heads:
                return None
            self._start_turn(min(heads, key=self._urgency).lane.adapter)
        return self._joining()

    def _joining(self) -> Ticket | None:
        own = [head for head in self._heads() if head.lane.adapter == self._adapter]
        spent = self._turn_requests >= self._bounds.requests or self._turn_tokens >= self._bounds.tokens
        if spent and any(lane.adapter != self._adapter for lane in self._waiting):
            return None
        free = [head for head in own if self._occupied.get(head.lane, 0) < self._capacity(head.lane)]
        best = min(free, key=lambda head: (head.due, head.number), default=None)
        if best is not None and best.kind == "summary" and self._running and self._urgent_wait():
            return best if best.due <= self._admitted else None
        return best

    def _urgent_wait(self) -> bool:
        return any(kind != "summary" for queues in self._waiting.values() for kind in queues)

    def _urgency(self, head: Ticket) -> tuple[int, bool, int]:
        # An adapter that had its turn since this ticket came queues up again behind those that had none.
        came, served = head.due - ALLOWANCE[head.kind], self._served_at.get(head.lane.adapter, -1)
        return max(came, served) + ALLOWANCE[head.kind], served >= came, head.number

    def _start_turn(self, adapter: str | None) -> None:
        self._adapter = adapter
        self._turn_requests = self._turn_tokens = 0

    def _begin(self, ticket: Ticket) -> None:
        self._forget(ticket)
        ticket.firm = self._urgent_wait()
        self._admitted += 1
        self._turn_requests += 1
        self._running[ticket.number] = ticket
        self._occupied[ticket.lane] = self._occupied.get(ticket.lane, 0) + 1

    def _heads(self) -> Iterator[Ticket]:
        """The most urgent waiting ticket of each lane; within one kind the oldest is the most urgent."""
        for queues in self._waiting.values():
            oldest = (next(iter(queue.values())) for queue in queues.values())
            yield min(oldest, key=lambda ticket: (ticket.due, ticket.number))

    def _forget(self, ticket: Ticket) -> None:
        queues = self._waiting.get(ticket.lane, {})
        queue = queues.get(ticket.kind)
        if queue is None or queue.pop(ticket.number, None) is None:
            return
        if not queue:
            del queues[ticket.kind]
        if not queues:
            del self._waiting[ticket.lane]


class Gate:
    """`Schedule` for coroutines of one event loop."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._turns: dict[int, asyncio.Future[None]] = {}
        self._limits: dict[int, asyncio.Timeout] = {}
        self._preempted: set[int] = set()
        self._closed = False
        self._empty = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Hops in the queue."""
        return self._schedule.waiting()

    @property
    def running(self) -> int:
        """Hops in the engine."""
        return self._schedule.running

    def spend(self, tokens: int) -> None:
        """Tokens that hops of the current turn have read or written."""
        self._schedule.spend(tokens)

    @asynccontextmanager
    async def closed(self, drain: float) -> AsyncIterator[None]:
        """Let no hop begin for the block, which starts when none runs any more.

        Raises:
            Busy: that took longer than `drain` seconds.
        """
        self._closed = True
        try:
            await self._until_empty(drain)
            yield
        finally:
            self._closed = False
            self._review()

    def expel(self) -> None:
        """End the wait of hops whose adapter is gone."""
        for ticket in self._schedule.stranded():
            turn = self._turns[ticket.number]
            if not turn.done():
                gone = f"adapter {ticket.lane.adapter!r} left the engine while a {ticket.kind} hop waited for it"
                turn.set_exception(
                    EngineError("The specialist is not served any more.", code="adapter_gone", detail=gone)
                )

    async def _until_empty(self, seconds: float) -> None:
        self._empty.clear()
        if self.running:
            try:
                await asyncio.wait_for(self._empty.wait(), seconds)
            except TimeoutError:
                raise Busy(f"hops ran on for more than {seconds:g} s", code="engine_busy") from None

    @asynccontextmanager
    async def turn(self, kind: HopKind, adapter: str | None) -> AsyncIterator[float]:
        """Wait for a turn and hold it for the block, which must run in one task; gives the seconds waited.

        Raises:
            Preempted: the block was cancelled, because it is a summary that had to give way.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        ticket = self._schedule.enter(kind, adapter)
        try:
            await self._begin(ticket)
            async with asyncio.timeout(None) as limit:
                self._limits[ticket.number] = limit
                self._review()
                yield loop.time() - began
        except TimeoutError:
            if ticket.number not in self._preempted:
                raise
            raise Preempted("the summary gave way to a more urgent hop; it may be tried again") from None
        finally:
            self._limits.pop(ticket.number, None)
            self._preempted.discard(ticket.number)
            self._schedule.leave(ticket)
            if not self.running:
                self._empty.set()
            self._review()

    async def _begin(self, ticket: Ticket) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns[ticket.number] = turn
        try:
            self._review()
            await turn
        finally:
            del self._turns[ticket.number]

    def _review(self) -> None:
        if self._closed:
            return
        for ticket in self._schedule.admit():
            turn = self._turns[ticket.number]
            if not turn.done():
                turn.set_result(None)
        for ticket in self._schedule.to_preempt():
            if ticket.number in self._limits and ticket.number not in self._preempted:
                self._preempted.add(ticket.number)
                self._limits[ticket.number].reschedule(asyncio.get_running_loop().time())
