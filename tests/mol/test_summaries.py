"""Summary hops: bounded, and never in anybody's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from macaron.conversation import Item, ToolCall
from macaron.engine.base import EngineEvent, HopRequest, Preempted, Sink
from macaron.errors import StoreError
from macaron.hcp import Loaded
from macaron.mol import notes, summaries
from macaron.mol.background import Background
from macaron.mol.texts import Bounds
from tests.mol.heart import Heart, InstantEngine, answering, profile, result, user
from tests.mol.talk import LONG


class Engine(InstantEngine):
    """Gives way `preempted` times before it makes a summary."""

    def __init__(self, preempted: int = 0) -> None:
        super().__init__(lambda hop: "L2" if "code" in str(hop.messages[-1]) else "L1", self.say)
        self.preempted = preempted

    def say(self, hop: HopRequest) -> Any:
        return answering("the summary" if hop.kind == "summary" else LONG)

    async def answer(self, hop: HopRequest, sink: Sink | None = None) -> AsyncGenerator[Sequence[EngineEvent], None]:
        if hop.kind == "summary" and self.preempted:
            self.preempted -= 1
            raise Preempted("another hop goes first")
        async for batch in super().answer(hop):
            yield batch

    @property
    def summaries(self) -> int:
        return sum(hop.kind == "summary" for hop in self.hops)


async def note_of_first(heart: Heart, items: Sequence[Item]) -> str:
    """What another specialist sees in place of the first answer."""
    await heart.turn([*items, user("write code")])
    return str(heart.engine.last("answer").messages[2]["content"])


async def asked(heart: Heart) -> list[Item]:
    return [user("q"), *(await heart.turn([user("q")])).items]


async def test_a_deleted_turn_has_an_empty_note_and_its_specialist_sees_what_the_client_sends(loaded: Loaded) -> None:
    heart = Heart(loaded, Engine())
    items = await asked(heart)
    await heart.service.background.drain(1.0)
    assert await heart.store.delete_step("local", "r1")
    assert await note_of_first(heart, items) == "[summary of L1's answer: ]"
    await heart.turn([*items, user("go on")])
    assert [message["content"] for message in heart.engine.last("answer").messages[1:]] == ["q", LONG, "go on"]


async def test_a_summary_that_gave_way_is_tried_again(loaded: Loaded) -> None:
    heart = Heart(loaded, Engine(preempted=3))
    items = await asked(heart)
    await heart.service.background.drain(1.0)
    assert await note_of_first(heart, items) == "[summary of L1's answer: the summary]"


async def test_a_summary_that_always_gives_way_is_given_up(loaded: Loaded) -> None:
    heart = Heart(loaded, Engine(preempted=10_000))
    items = await asked(heart)
    await heart.service.background.drain(1.0)
    assert (await note_of_first(heart, items)).startswith("[summary of L1's answer: word word")


async def test_prompts_that_wait_are_bounded_and_the_oldest_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    heart = Heart(profile(tmp_path, mol='summary = "lazy"'), engine)
    monkeypatch.setattr(summaries, "PENDING_BYTES", 3 * len(LONG))
    first = await asked(heart)
    await heart.turn([user("p")])
    third = [user("o"), *(await heart.turn([user("o")])).items]
    assert await note_of_first(heart, third) == "[summary of L1's answer: the summary]"
    assert (await note_of_first(heart, first)).startswith("[summary of L1's answer: word word")
    assert engine.summaries == 1


async def test_a_prompt_that_alone_is_too_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    heart = Heart(profile(tmp_path), engine)
    monkeypatch.setattr(summaries, "PENDING_BYTES", 100)
    await asked(heart)
    await heart.service.background.drain(1.0)
    assert engine.summaries == 0


async def test_arguments_of_calls_count_for_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    heart = Heart(profile(tmp_path), engine)
    monkeypatch.setattr(summaries, "PENDING_BYTES", 2 * len(LONG))
    call = ToolCall("c", "write", '{"text": "' + "x" * 10_000 + '"}')
    await heart.turn([user("q"), call, result("c", "done"), user("and now?")])
    await heart.service.background.drain(1.0)
    assert engine.summaries == 0


async def test_summaries_kept_in_memory_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "REMEMBERED", Bounds(1, 1000))
    heart = Heart(profile(tmp_path, more='[store]\nchat = "digests"'), Engine())
    first = await asked(heart)
    await heart.service.background.drain(1.0)
    second = [user("p"), *(await heart.turn([user("p")])).items]
    await heart.service.background.drain(1.0)
    assert await note_of_first(heart, second) == "[summary of L1's answer: the summary]"
    assert (await note_of_first(heart, first)).startswith("[summary of L1's answer: word word")


async def test_notes_kept_in_memory_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "REMEMBERED", Bounds(2, 10_000))
    heart = Heart(profile(tmp_path, mol='summary = "off"', more='[store]\nchat = "digests"'), Engine())
    for number in range(5):
        question = user(f"q{number}")
        items = [question, *(await heart.turn([question])).items]
        await note_of_first(heart, items)
    assert len(heart.service.turns._notes._memory) == 2


async def test_a_store_that_cannot_keep_a_summary_harms_nobody(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> None:
        raise StoreError("the disk is full")

    heart = Heart(loaded, Engine())
    monkeypatch.setattr(heart.store, "put_summary", broken)
    items = await asked(heart)
    await heart.service.background.drain(1.0)
    assert await note_of_first(heart, items) == "[summary of L1's answer: the summary]"


async def test_when_too_much_runs_in_the_background_summaries_are_left_out() -> None:
    background, gate = Background(limit=1), asyncio.Event()
    assert not background.full
    background.start(gate.wait(), "waiting")
    assert background.full
    gate.set()
    await background.drain(1.0)
    assert not background.full


async def test_what_a_background_task_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def failing() -> None:
        raise ValueError("broken")

    background = Background()
    background.start(failing(), "the work")
    await background.drain(1.0)
    assert "the work failed: broken" in caplog.text


async def test_a_drain_ends_what_does_not_end_by_itself() -> None:
    background = Background()
    task = background.start(asyncio.Event().wait(), "endless")
    await background.drain(0.01)
    assert task.cancelled()
