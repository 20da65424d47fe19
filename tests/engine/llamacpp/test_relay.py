"""Events reach the reader in order, and no task outlives its reader."""

from __future__ import annotations

import asyncio

import pytest

from macaron.conversation import Delta
from macaron.engine.base import EngineEvent
from macaron.engine.llamacpp.relay import Put, relayed
from macaron.errors import EngineError


async def test_what_came_at_once_is_yielded_at_once() -> None:
    async def produce(put: Put) -> None:
        put([Delta(text="a")])
        put([Delta(text="b")])
        await asyncio.sleep(0.01)
        put([Delta(text="c")])

    batches = [list(batch) async for batch in relayed(produce)]
    assert batches == [[Delta(text="a"), Delta(text="b")], [Delta(text="c")]]


async def test_failure_is_raised_after_the_events_before_it() -> None:
    async def produce(put: Put) -> None:
        put([Delta(text="a")])
        raise EngineError("broken")

    seen: list[EngineEvent] = []

    async def read() -> None:
        async for batch in relayed(produce):
            seen.extend(batch)

    with pytest.raises(EngineError, match="broken"):
        await read()
    assert seen == [Delta(text="a")]


async def test_nothing_to_say_ends_the_iteration() -> None:
    async def produce(put: Put) -> None:
        put([])

    assert [batch async for batch in relayed(produce)] == []


@pytest.mark.parametrize("leave", ["close", "cancel"])
async def test_leaving_ends_the_producer_before_it_returns(leave: str) -> None:
    ended: list[str] = []

    async def produce(put: Put) -> None:
        try:
            put([Delta(text="a")])
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append("ended")

    answer = relayed(produce)
    await anext(answer)
    if leave == "close":
        await answer.aclose()
    else:
        reader = asyncio.create_task(anext(answer))
        await asyncio.sleep(0)
        reader.cancel()
        await asyncio.wait([reader])
    assert ended == ["ended"]


async def test_failure_nobody_waits_for_is_no_warning() -> None:
    async def produce(put: Put) -> None:
        put([Delta(text="a")])
        raise EngineError("broken")

    answer = relayed(produce)
    await anext(answer)
    await answer.aclose()
