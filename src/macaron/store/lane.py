"""A thread beside the event loop that takes everything queued at once and answers with one wake-up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from msgspec import Struct

from macaron.errors import StoreError

NOT_URGENT_SECONDS = 0.05

Work = TypeVar("Work")
"""What a lane is given to do; only its `run` knows how to call it."""


class Job(Struct, Generic[Work], frozen=True):
    """One operation and who waits for it; nobody where the store gave it to itself."""

    work: Work
    future: asyncio.Future[Any] | None = None


class Outcome(Struct, frozen=True):
    """What an operation gave, or why it failed."""

    future: asyncio.Future[Any] | None
    value: Any = None
    error: Exception | None = None


class Lane(Generic[Work]):
    """Runs operations in order, in batches, on one thread. Used from one event loop.

    Attributes:
        batch: most operations handed to `run` at once.
        waiting: most operations queued and under way, after which new ones are refused.
    """

    batch = 256
    waiting = 8192

    def __init__(self, name: str, run: Callable[[Sequence[Job[Work]]], Iterable[Outcome]]) -> None:
        self._run = run
        self._queue: SimpleQueue[list[Job[Work]] | None] = SimpleQueue()
        self._fresh: list[Job[Work]] = []
        self._pending = 0
        self._soon = False
        self._later: asyncio.TimerHandle | None = None
        self._closed = False
        self._thread = Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Work, *, urgent: bool = True) -> asyncio.Future[Any]:
        """Queue an operation. One that is not urgent goes along with the next that is, or a moment later.

        Raises:
            StoreError: the store is closed, or too much waits already.
        """
        if self._closed:
            raise StoreError("the store is closed")
        if self._pending >= self.waiting:
            raise StoreError(f"{self.waiting} operations wait for the store; try again later", retry_after=1.0)
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._fresh.append(Job(work, future))
        self._pending += 1
        if not urgent:
            if self._later is None:
                self._later = loop.call_later(NOT_URGENT_SECONDS, self._hand_over)
        elif not self._soon:
            # What one turn of the loop brings is handed over at its end: the thread is woken once, and has the
            # interpreter to itself while the loop waits.
            self._soon = True
            loop.call_soon(self._hand_over)
        return future

    def push(self, work: Work) -> None:
        """Queue an operation that nobody waits for; dropped where the store is being closed. Called on the thread."""
        self._queue.put([Job(work)])

    async def close(self) -> None:
        """Finish what is queued and end the thread."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _hand_over(self) -> None:
        self._soon = False
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._fresh:
            self._queue.put(self._fresh)
            self._fresh = []

    def _serve(self) -> None:
        last = False
        while not last:
            jobs, last = self._take()
            for start in range(0, len(jobs), self.batch):
                self._answer(self._attempt(jobs[start : start + self.batch]))

    def _take(self) -> tuple[list[Job[Work]], bool]:
        """Everything that is queued, and whether nothing more will come."""
        jobs: list[Job[Work]] = []
        more = self._queue.get()
        with suppress(Empty):
            while more is not None:
                jobs += more
                if len(jobs) >= self.batch:
                    return jobs, False
                more = self._queue.get_nowait()
            return jobs, True
        return jobs, False

    def _attempt(self, jobs: Sequence[Job[Work]]) -> list[Outcome]:
        try:
            return list(self._run(jobs))
        except Exception as error:  # whatever it is, callers must not wait for ever
            return [Outcome(job.future, error=error) for job in jobs]

    def _answer(self, outcomes: Sequence[Outcome]) -> None:
        waited = [outcome for outcome in outcomes if outcome.future is not None]
        if waited and waited[0].future is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                waited[0].future.get_loop().call_soon_threadsafe(self._resolve, waited)

    def _resolve(self, outcomes: Sequence[Outcome]) -> None:
        self._pending -= len(outcomes)
        for outcome in outcomes:
            future = outcome.future
            if future is None or future.done():
                continue
            if outcome.error is None:
                future.set_result(outcome.value)
            else:
                future.set_exception(outcome.error)
