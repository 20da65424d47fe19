"""The probe against an engine that says what a test wants."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, cast

import pytest

from macaron.conversation import Delta, Finish
from macaron.engine.base import Engine, EngineEvent, HopRequest, Sink
from macaron.errors import EngineError
from macaron.mol.probe import PROMPTS, EngineProbe


def said(*logprobs: Any) -> dict[str, Any]:
    top = [{"token": f"t{place}", "logprob": value} for place, value in enumerate(logprobs)]
    return {"content": [{"token": "t0", "logprob": 0.0, "top_logprobs": top}]}


class _Scripted:
    """Answers every hop with the log-probabilities of its adapter."""

    def __init__(self, answers: Mapping[str | None, dict[str, Any] | None]) -> None:
        self.hops: list[HopRequest] = []
        self._answers = answers

    async def answer(self, hop: HopRequest, sink: Sink | None = None) -> AsyncGenerator[Sequence[EngineEvent], None]:
        self.hops.append(hop)
        yield [Delta(text="t0", logprobs=self._answers[hop.adapter])]
        yield [Finish("length")]


def probe(engine: _Scripted) -> EngineProbe:
    return EngineProbe(cast(Engine, engine), tenant="probe")


async def test_the_effect_is_between_the_base_and_the_adapter_on_every_prompt() -> None:
    engine = _Scripted({None: said(math.log(0.8), math.log(0.2)), "x": said(math.log(0.3), math.log(0.7))})
    effect = await probe(engine).effect("x")
    assert effect.mean == pytest.approx(0.5)
    assert effect.prompts == len(PROMPTS)
    assert {hop.adapter for hop in engine.hops} == {None, "x"}
    assert {hop.tenant for hop in engine.hops} == {"probe"}
    assert all(hop.messages[0]["role"] == "system" for hop in engine.hops)


@pytest.mark.parametrize("value", [None, math.nan, "0.1"])
async def test_what_is_no_number_makes_the_effect_not_finite(value: Any) -> None:
    engine = _Scripted({None: said(-0.1), "x": said(value)})
    assert not (await probe(engine).effect("x")).finite


@pytest.mark.parametrize("value", [10**400, -(10**400), math.inf, -math.inf])
async def test_numbers_beyond_all_bounds_are_probabilities_all_the_same(value: Any) -> None:
    engine = _Scripted({None: said(-0.1), "x": said(value)})
    assert 0.0 <= (await probe(engine).effect("x")).mean <= 1.0


@pytest.mark.parametrize("logprobs", [None, {}, {"content": []}, {"content": [1]}, {"content": [{"top_logprobs": 5}]}])
async def test_an_engine_without_log_probabilities_is_an_error(logprobs: Any) -> None:
    engine = _Scripted({None: said(-0.1), "x": logprobs})
    with pytest.raises(EngineError, match="0 of 6 prompts"):
        await probe(engine).effect("x")
