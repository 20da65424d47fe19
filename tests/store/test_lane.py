"""The thread beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Event

import pytest

from macaron.errors import StoreError
from macaron.store.lane import Job, Lane, Outcome


class Echo:
    """Gives every operation back, once it is allowed to; remembers the sizes of batches."""

    def __init__(self) -> None:
        self.allowed = Event()
        self.entered = Event()
        self.sizes: list[int] = []

    def run(self, jobs: Sequence[Job[int]]) -> list[Outcome]:
        self.entered.set()
        assert self.allowed.wait(30.0)
        self.sizes.append(len(jobs))
        return [Outcome(job.future, job.work) for job in jobs]


def divide(jobs: Sequence[Job[int]]) -> list[Outcome]:
    return [Outcome(job.future, 1 // job.work) for job in jobs]


async def held(echo: Echo) -> tuple[Lane[int], asyncio.Future[int]]:
    """A lane whose thread is busy with one operation."""
    lane: Lane[int] = Lane("test", echo.run)
    first = lane.submit(-1)
    assert await asyncio.to_thread(echo.entered.wait, 30.0)
    return lane, first


async def test_what_is_queued_goes_together_in_order_and_in_bounded_batches() -> None:
    echo = Echo()
    lane, first = await held(echo)
    futures = [lane.submit(number) for number in range(600)]
    echo.allowed.set()
    assert await asyncio.gather(first, *futures) == [-1, *range(600)]
    assert echo.sizes == [1, 256, 256, 88]
    await lane.close()


async def test_too_many_operations_are_refused() -> None:
    echo = Echo()
    lane, first = await held(echo)
    futures = [lane.submit(number) for number in range(Lane.waiting - 1)]
    with pytest.raises(StoreError, match="wait for the store"):
        lane.submit(0)
    echo.allowed.set()
    await asyncio.gather(first, *futures)
    await lane.close()


async def test_what_is_queued_is_done_before_it_closes() -> None:
    echo = Echo()
    lane, _ = await held(echo)
    future = lane.submit(7)
    echo.allowed.set()
    await lane.close()
    assert await future == 7


async def test_a_fault_of_the_lane_reaches_its_callers_and_the_next_are_served() -> None:
    lane: Lane[int] = Lane("test", divide)
    with pytest.raises(ZeroDivisionError):
        await lane.submit(0)
    assert await lane.submit(1) == 1
    await lane.close()


def test_a_caller_whose_loop_has_ended_does_not_stop_the_lane() -> None:
    echo = Echo()

    async def leave() -> Lane[int]:
        return (await held(echo))[0]

    async def ask(lane: Lane[int]) -> int:
        answer: int = await lane.submit(1)
        await lane.close()
        return answer

    lane = asyncio.run(leave())
    echo.allowed.set()
    assert asyncio.run(ask(lane)) == 1
