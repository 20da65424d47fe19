"""Routing that nobody waits for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from macaron.engine.base import Choice, Engine, HopRequest, Preempted
from macaron.errors import BadRequest, EngineError
from macaron.hcp import load
from macaron.mol.route import RouteTemplate
from macaron.mol.unhurried import GIVES_WAY, Unhurried
from macaron.registry.cards import registry_from
from tests.harness import write_profile

TALK = ({"role": "user", "content": "plan a trip"},)


class Scripted:
    """An engine that answers in turn what it was told to; the last of it again and again."""

    def __init__(self, *answers: Choice | Exception) -> None:
        self._answers = list(answers)
        self.hops: list[HopRequest] = []

    async def choose(self, hop: HopRequest) -> Choice:
        self.hops.append(hop)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def asker(tmp_path: Path) -> Any:
    def make(engine: Scripted, labels: tuple[str, ...] = ("L0", "L1", "L2")) -> Unhurried:
        loaded = load(write_profile(tmp_path, "http://127.0.0.1:9", labels=labels))
        registry = registry_from(loaded)
        template = RouteTemplate(registry.fill("{labels}"), "instruction_first", "", 1024)
        return Unhurried(cast(Engine, engine), registry, loaded.contract, template, "check")

    return make


async def test_it_asks_what_a_live_route_asks_in_the_order_of_summaries(asker: Any) -> None:
    engine = Scripted(Choice("L1", "L1"))
    assert await asker(engine).route(TALK) == "L1"
    hop = engine.hops[0]
    assert (hop.kind, hop.adapter, hop.choices, hop.tenant) == ("summary", "L0", ("L0", "L1", "L2"), "check")
    assert hop.messages[-1]["content"] == "<request>\nplan a trip\n</request>"


async def test_an_unusable_answer_is_asked_for_once_more_and_then_the_default_is_taken(asker: Any) -> None:
    engine = Scripted(Choice(None, "what"))
    assert await asker(engine).route(TALK) == "L2"
    assert len(engine.hops) == 2
    assert await asker(Scripted(BadRequest("no"), Choice("L0", "L0"))).route(TALK) == "L0"


async def test_a_hop_that_gives_way_too_often_takes_its_turn_among_the_answers(asker: Any) -> None:
    engine = Scripted(*(Preempted("later") for _ in range(GIVES_WAY)), Choice("L1", "L1"))
    assert await asyncio.wait_for(asker(engine).route(TALK), 5) == "L1"
    assert [hop.kind for hop in engine.hops] == ["summary"] * GIVES_WAY + ["answer"]


async def test_an_engine_that_fails_is_no_label(asker: Any) -> None:
    with pytest.raises(EngineError):
        await asker(Scripted(EngineError("gone"))).route(TALK)


async def test_with_one_specialist_nothing_is_asked(asker: Any) -> None:
    engine = Scripted(Choice(None, ""))
    assert await asker(engine, ("L0",)).route(TALK) == "L0"
    assert engine.hops == []
