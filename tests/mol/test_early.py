"""Pieces of an answer that reach the client where they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from macaron.conversation import Delta, Finish, Message, Text, Usage
from macaron.engine.base import EngineEvent, HopRequest, Sink
from macaron.mol.events import Answered, Chosen
from macaron.mol.speculate import Held
from tests.mol.heart import Heart, InstantEngine, profile, user

BATCHES: tuple[list[EngineEvent], ...] = (
    [Delta(0, "a")],
    [Delta(0, "b"), Delta(0, "c")],
    [Delta(0, "d"), Finish("stop")],
    [Usage(3, 4)],
)
HOP = HopRequest("answer", None, [], {})


class Offering(InstantEngine):
    """Offers every batch to the sink, as one that arrives while the next is awaited."""

    def __init__(self, pause: asyncio.Event | None = None) -> None:
        super().__init__(lambda _: "L1", lambda _: [])
        self.pause = pause

    async def answer(self, hop: HopRequest, sink: Sink | None = None) -> AsyncGenerator[Sequence[EngineEvent], None]:
        for number, batch in enumerate(BATCHES):
            if number == 1 and self.pause is not None:
                await self.pause.wait()
            if sink is None or not sink(batch):
                yield batch


@pytest.mark.parametrize("room", [0, 1, 9])
async def test_what_the_client_cannot_take_at_once_is_yielded(tmp_path: Path, room: int) -> None:
    heart = Heart(profile(tmp_path), Offering())
    early: list[str] = []
    yielded: list[str] = []
    begun: list[bool] = []

    def write(deltas: Sequence[Delta]) -> bool:
        begun.append(bool(yielded))
        if len(early) >= room:
            return False
        early.append("".join(delta.text for delta in deltas))
        return True

    async with aclosing(heart.start([user("q")], stream=True, early=write)) as events:
        async for event in events:
            match event:
                case list():
                    yielded.append("".join(delta.text for delta in event))
                case Answered(answers, finishes, usage):
                    assert answers[0].items() == (Message("assistant", (Text("abcd"),)),)
                    assert (finishes, usage) == ([Finish("stop")], Usage(3, 4))
    assert early == ["bc", "d"][:room]
    assert yielded == ["a", *["bc", "d"][room:]]
    assert all(begun)


async def test_an_answer_that_was_written_early_is_kept_when_its_client_leaves(tmp_path: Path) -> None:
    never = asyncio.Event()

    class Stuck(Offering):
        async def answer(
            self, hop: HopRequest, sink: Sink | None = None
        ) -> AsyncGenerator[Sequence[EngineEvent], None]:
            yield [Delta(0, "a")]
            assert sink is not None
            sink([Delta(0, "b")])
            written.set()
            await never.wait()

    heart, written = Heart(profile(tmp_path), Stuck()), asyncio.Event()
    session = ""

    async def read() -> None:
        nonlocal session
        async with aclosing(heart.start([user("q")], stream=True, early=lambda _: True)) as events:
            async for event in events:
                session = event.session if isinstance(event, Chosen) else session

    reading = asyncio.create_task(read())
    await written.wait()
    reading.cancel()
    await asyncio.wait((reading,))
    await heart.service.background.drain(5)
    (step,) = await heart.store.session("local", session)
    assert (step.status, step.outputs) == ("cancelled", (Message("assistant", (Text("ab"),)),))


async def test_what_was_held_comes_first_and_only_what_is_awaited_is_passed_on() -> None:
    go, passed = asyncio.Event(), list[EngineEvent]()

    def sink(events: Sequence[EngineEvent]) -> bool:
        passed.extend(events)
        return True

    held = Held(HOP, Offering(go), sink)
    await asyncio.sleep(0)
    assert not passed
    released = held.release()
    assert await anext(released) == BATCHES[0]
    reading = asyncio.create_task(anext(released, None))
    await asyncio.sleep(0)
    go.set()
    assert await reading is None
    assert passed == [event for batch in BATCHES[1:] for event in batch]
