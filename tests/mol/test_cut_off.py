"""What is kept of answers that did not end, where HTTP would hide it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

import pytest

from macaron.conversation import Answer, Delta, Finish, Step, Usage
from macaron.engine.base import EngineEvent, HopRequest, Sink
from macaron.errors import EngineError
from macaron.hcp import Loaded
from macaron.mol.events import Chosen
from macaron.mol.lookup import Found, TurnRequest
from macaron.mol.speculate import Held
from macaron.mol.steps import Frame, own_summary, steps_from
from macaron.registry.cards import registry_from
from tests.mol.heart import Heart, InstantEngine, user
from tests.mol.talk import outputs

HOP = HopRequest("answer", "L1", [], {})


class Broken(InstantEngine):
    """Sends some batches, and then does something else."""

    def __init__(self, batches: Sequence[Sequence[EngineEvent]], then: Callable[[], None]) -> None:
        super().__init__(lambda _: "L1", lambda _: [])
        self.batches = batches
        self.then = then

    async def answer(self, hop: HopRequest, sink: Sink | None = None) -> AsyncGenerator[Sequence[EngineEvent], None]:
        for batch in self.batches:
            yield batch
        self.then()


def fault() -> None:
    raise RuntimeError("a mistake in the engine's code")


async def kept(heart: Heart) -> list[Step]:
    await heart.service.background.drain(1.0)
    return [node.step for node in heart.store._nodes.values()]  # type: ignore[attr-defined]


async def leave_after(heart: Heart, text: str, n: int = 1) -> None:
    """Read a turn until a text has come, and close it."""
    async with aclosing(heart.start([user("q")], n=n, stream=True)) as events:
        async for event in events:
            if isinstance(event, list) and event[-1].text == text:
                break


async def test_a_choice_that_had_ended_is_whole_when_the_client_leaves_during_another(loaded: Loaded) -> None:
    batches: list[list[EngineEvent]] = [
        [Delta(0, "all")],
        [Finish("stop", 0), Delta(1, "some of")],
        [Delta(1, " it"), Finish("stop", 1)],
    ]
    heart = Heart(loaded, Broken(batches, lambda: None))
    await leave_after(heart, "some of", n=2)
    assert [(outputs(step), step.status, step.finish) for step in await kept(heart)] == [
        ("all", "completed", "stop"),
        ("some of", "cancelled", ""),
    ]


async def test_a_refusal_that_was_sent_is_kept(loaded: Loaded) -> None:
    heart = Heart(loaded, Broken([[Delta(refusal="I will not")], [Delta(text="never sent")]], lambda: None))
    async with aclosing(heart.start([user("q")], stream=True)) as events:
        async for event in events:
            if not isinstance(event, Chosen):
                break
    assert [outputs(step) for step in await kept(heart)] == ["I will not"]


async def test_thoughts_alone_are_no_answer(loaded: Loaded) -> None:
    heart = Heart(loaded, Broken([[Delta(reasoning="hm")]], fault))
    with pytest.raises(RuntimeError):
        await heart.turn([user("q")], stream=True)
    assert await kept(heart) == []


async def test_a_mistake_in_the_code_leaves_a_failed_step_not_a_cancelled_one(loaded: Loaded) -> None:
    heart = Heart(loaded, Broken([[Delta(0, "some")]], fault))
    with pytest.raises(RuntimeError):
        await heart.turn([user("q")], stream=True)
    (step,) = await kept(heart)
    assert (step.status, step.hops[-1].outcome) == ("failed", "failed")


async def test_of_an_engines_own_error_code_only_so_much_is_kept(loaded: Loaded) -> None:
    def refuse() -> None:
        raise EngineError("no", code="x" * 10_000)

    heart = Heart(loaded, Broken([[Delta(0, "some")]], refuse))
    with pytest.raises(EngineError):
        await heart.turn([user("q")], stream=True)
    (step,) = await kept(heart)
    assert step.hops[-1].outcome == "x" * 64


async def test_an_engine_that_ends_without_a_finish_is_an_error(loaded: Loaded) -> None:
    heart = Heart(loaded, Broken([[Delta(0, "some")]], lambda: None))
    with pytest.raises(Exception, match="without a finish"):
        await heart.turn([user("q")], stream=True)
    (step,) = await kept(heart)
    assert (step.status, step.hops[-1].outcome) == ("failed", "engine_error")


async def test_leaving_a_dropped_speculation_is_not_mistaken_for_its_end() -> None:
    """Who waits for the engine to let go is cancelled in the meantime, and has to notice."""
    closing, let_go = asyncio.Event(), asyncio.Event()

    class Reluctant(Broken):
        async def answer(
            self, hop: HopRequest, sink: Sink | None = None
        ) -> AsyncGenerator[Sequence[EngineEvent], None]:
            try:
                await asyncio.Event().wait()
                yield []
            finally:
                closing.set()
                await let_go.wait()

    held = Held(HOP, Reluctant([], lambda: None), lambda _: False)
    await asyncio.sleep(0)
    dropping = asyncio.create_task(held.drop())
    await closing.wait()
    dropping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dropping
    let_go.set()


@pytest.mark.parametrize("count", [1, 2])
def test_a_short_answer_is_told_by_the_engines_count_or_by_its_bytes(loaded: Loaded, count: int) -> None:
    specialist = registry_from(loaded).specialists[1]
    request = TurnRequest(id="r", tenant="local", items=(user("q"),), n=count)
    found = Found((), request.items, "v1:x", 1, frozenset(), None)
    frame = Frame(request, found, specialist, "h", "s", "t", 1, "c", True, 10)
    short, long = Answer(0, "你好" * 2, "stop"), Answer(0, "你好" * 20, "stop")
    assert own_summary(frame, short, Usage()) == "你好你好"
    assert own_summary(frame, long, Usage()) is None
    # The count is of all choices together.
    assert own_summary(frame, long, Usage(completion=8)) == (long.text if count == 1 else None)
    assert steps_from(frame, [short], (), Usage())[0].summary == "你好你好"
