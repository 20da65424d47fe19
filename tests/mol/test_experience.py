"""What the heart hands to the recorder: the turns of tenants that agreed, as they were, and nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from macaron.conversation import Answer, Delta, Finish, Item, Sampled, ToolCall, Usage
from macaron.engine.base import EngineEvent, HopRequest, Sink
from macaron.experience import Bounds, Consent, ExperienceFile, Recorder, Turn, create
from macaron.hcp import Loaded
from macaron.mol.events import Chosen
from macaron.mol.experience import Said, covers
from tests.mol.heart import Heart, InstantEngine, answering, profile, result, said, user

LOCAL = Consent("local", "the test agreed")
TOKENS = Sampled(0, (11, 12, 13), (-0.5, -0.25, -1.5), (1, 2, 3, 4))


def with_tokens(hop: HopRequest) -> list[Any]:
    told = [TOKENS] if hop.sampled else []
    return [Delta(0, "to be, of course"), *told, Finish("stop"), Usage(4, 3)]


class Recording:
    """A heart with a recorder; `turns` ends the recording and reads it."""

    def __init__(self, folder: Path, loaded: Loaded, engine: InstantEngine, consent: Consent) -> None:
        self._path = folder / "t.experience"
        create(self._path)
        self.recorder = Recorder(self._path, [consent], Bounds())
        self.heart = Heart(loaded, engine, recorder=self.recorder)

    async def turns(self) -> dict[str, Turn]:
        await self.heart.service.background.drain(5)
        await self.recorder.close()
        with ExperienceFile(self._path) as file:
            return {turn.record.id: turn for turn in file.turns()}


def recording(folder: Path, loaded: Loaded, script: Any = with_tokens, consent: Consent = LOCAL) -> Recording:
    return Recording(folder, loaded, InstantEngine(lambda _: "L2", script), consent)


async def test_a_turn_is_recorded_exactly(tmp_path: Path, loaded: Loaded) -> None:
    kept = recording(tmp_path, loaded)
    await kept.heart.turn([user("to be?")], options={"temperature": 0.5}, user="somebody")
    record = (await kept.turns())["r1"].record
    hop = kept.heart.engine.last("answer")
    assert record.messages == tuple(hop.messages)
    assert (record.label, record.adapter, record.reason, record.status) == ("L2", "L2", "routed", "completed")
    assert (record.tenant, record.user, record.asked) == ("local", "somebody", "to be?")
    assert record.options == {"temperature": 0.5}
    assert record.answer == Answer(0, "to be, of course", "stop")
    assert (record.ids, record.logprobs, record.prompt_ids) == (TOKENS.ids, TOKENS.logprobs, TOKENS.prompt)
    assert (record.contract, record.generation, record.usage) == (loaded.digest, 1, Usage(4, 3))
    assert [hop.kind for hop in record.hops] == ["route", "answer"]
    assert record.given == 1


async def test_nobody_else_is_recorded_or_asked_for_tokens(tmp_path: Path, loaded: Loaded) -> None:
    kept = recording(tmp_path, loaded, consent=Consent("somebody else", "agreed"))
    await kept.heart.turn([user("to be?")])
    assert not kept.heart.engine.last("answer").sampled
    assert await kept.turns() == {}


async def test_only_answers_are_asked_for_with_their_tokens(tmp_path: Path, loaded: Loaded) -> None:
    kept = recording(tmp_path, loaded, lambda _: [Delta(0, "long " * 2000), Finish("stop")])
    await kept.heart.turn([user("to be?")])
    await kept.turns()
    assert {hop.kind: hop.sampled for hop in kept.heart.engine.hops} == {
        "route": False,
        "answer": True,
        "summary": False,
    }


async def test_a_contract_may_leave_the_tokens_out(tmp_path: Path) -> None:
    loaded = profile(tmp_path, more="[experience]\ntokens = false")
    kept = recording(tmp_path, loaded)
    await kept.heart.turn([user("to be?")])
    assert not kept.heart.engine.last("answer").sampled
    record = (await kept.turns())["r1"].record
    assert (record.answer.text, record.ids) == ("to be, of course", ())


async def test_the_next_words_are_the_reaction(tmp_path: Path, loaded: Loaded) -> None:
    kept = recording(tmp_path, loaded)
    items: list[Item] = [user("to be?")]
    await kept.heart.turn(items)
    await kept.heart.turn([*items, said("to be, of course"), user("no, wrong")])
    reaction = (await kept.turns())["r1"].reaction
    assert (reaction.kind, reaction.text) == ("next", "no, wrong")


async def test_each_step_of_a_tool_loop_is_recorded(tmp_path: Path, loaded: Loaded) -> None:
    call = ToolCall("c1", "look", "{}")

    def script(hop: HopRequest) -> Sequence[Any]:
        tools = any(message["role"] == "tool" for message in hop.messages)
        return answering("found") if tools else answering(calls=[call])

    kept = recording(tmp_path, loaded, script)
    items: list[Item] = [user("look it up")]
    await kept.heart.turn(items)
    await kept.heart.turn([*items, call, result("c1", "there")])
    turns = await kept.turns()
    assert turns["r1"].reaction.kind == "tools"
    assert turns["r2"].record.turn == "r1"
    assert turns["r2"].record.asked == ""
    assert turns["r2"].record.reason == "sticky"


async def test_what_a_client_broke_off_is_recorded_as_cancelled(tmp_path: Path, loaded: Loaded) -> None:
    class Endless(InstantEngine):
        async def answer(
            self, hop: HopRequest, sink: Sink | None = None
        ) -> AsyncGenerator[Sequence[EngineEvent], None]:
            self.hops.append(hop)
            yield [Delta(0, "to be")]
            await asyncio.Event().wait()

    engine = Endless(lambda _: "L2", lambda _: [])
    kept = Recording(tmp_path, loaded, engine, LOCAL)
    async with aclosing(kept.heart.start([user("to be?")], stream=True)) as events:
        async for event in events:
            if not isinstance(event, Chosen):
                break
    record = (await kept.turns())["r1"].record
    assert (record.status, record.answer.text, record.ids) == ("cancelled", "to be", ())


async def test_every_choice_is_a_record(tmp_path: Path, loaded: Loaded) -> None:
    def two(_: HopRequest) -> list[Any]:
        return [Delta(0, "a"), Delta(1, "b"), Finish("stop"), Finish("stop", 1)]

    kept = recording(tmp_path, loaded, two)
    await kept.heart.turn([user("to be?")], n=2)
    assert {name: turn.record.answer.text for name, turn in (await kept.turns()).items()} == {"r1": "a", "r1.1": "b"}


@pytest.mark.parametrize(
    ("told", "completion", "finish", "whole"),
    [(3, 3, "stop", True), (3, 4, "stop", True), (3, 4, "length", False), (3, 5, "stop", False), (0, 1, "stop", False)],
)
def test_tokens_are_kept_only_where_they_are_all(told: int, completion: int, finish: str, whole: bool) -> None:
    sampled = {0: Sampled(0, tuple(range(told)))}
    assert covers(Said([], [Answer(0, "x", finish)], sampled, Usage(1, completion))) is whole


async def test_a_turn_that_may_not_be_kept_is_not_recorded_either(tmp_path: Path, loaded: Loaded) -> None:
    kept = recording(tmp_path, loaded)
    await kept.heart.turn([user("secret?")], keep=False)
    assert not kept.heart.engine.last("answer").sampled
    await kept.heart.turn([user("to be?")])
    assert list(await kept.turns()) == ["r2"]
