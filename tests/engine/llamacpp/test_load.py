"""Several adapters at once on the real engine: right answers, fair waits, and summaries that give way."""

from __future__ import annotations

import asyncio
import time
from itertools import combinations

import pytest

from macaron.engine.base import Preempted
from macaron.engine.llamacpp.client import ServerClient
from macaron.engine.llamacpp.engine import LlamaCppEngine
from macaron.engine.llamacpp.request import adapter_fields
from tests.engine.llamacpp.conftest import ADAPTERS
from tests.engine.llamacpp.hops import (
    SYSTEM,
    Distribution,
    distribution_in,
    events_of,
    finish_in,
    first_token,
    hop,
    queued_in,
    rest_of,
    text_in,
    total_variation,
    user,
)

pytestmark = pytest.mark.engine
HISTORY = [
    SYSTEM,
    user("I am planning a week in Italy with two children who like trains and ice cream."),
    {"role": "assistant", "content": "Lovely! Take the fast trains between Milan, Florence and Rome."},
]
QUESTIONS = ("Which city first?", "Write it as code.", "How much does it cost?", "Tell me a joke.", "Danke, und jetzt?")
EVERYONE = (None, *ADAPTERS)
TURNS = 200


async def cold(client: ServerClient, question: str, adapter: str | None) -> Distribution:
    """The first token of an answer that uses nothing of any earlier prompt."""
    body = {
        "messages": [*HISTORY, user(question)],
        "stream": True,
        "cache_prompt": False,
        "id_slot": 0,
        "temperature": 0,
        "max_tokens": 1,
        "logprobs": True,
        "top_logprobs": 10,
        **adapter_fields(None if adapter is None else ADAPTERS.index(adapter)),
    }
    return distribution_in([event async for batch in client.stream(body) for event in batch])


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_alternating_adapters_on_one_prefix_answer_as_if_they_were_alone(
    engine: LlamaCppEngine, client: ServerClient
) -> None:
    asked = [(question, adapter) for question in QUESTIONS for adapter in EVERYONE]
    alone = {key: await cold(client, *key) for key in asked}
    for one, other in combinations(EVERYONE, 2):
        effects = [total_variation(alone[question, one], alone[question, other]) for question in QUESTIONS]
        assert sum(effects) / len(effects) > 0.2
    worst = 0.0
    for turn in range(TURNS):
        question, adapter = asked[turn % len(asked)]
        warm = await first_token(engine, [*HISTORY, user(question)], adapter)
        worst = max(worst, total_variation(warm, alone[question, adapter]))
    assert worst <= 0.1


@pytest.mark.slow
async def test_two_clients_in_a_loop_do_not_starve_another_adapter(engine: LlamaCppEngine) -> None:
    stop = asyncio.Event()
    served: list[float] = []

    async def loop(name: str) -> None:
        while not stop.is_set():
            began = time.monotonic()
            events = await events_of(engine, hop(f"I am {name}. Say hello.", "one", max_tokens=12))
            served.append(time.monotonic() - began - queued_in(events))

    crowd = [asyncio.create_task(loop(name)) for name in ("Ann", "Bob")]
    waits = [queued_in(await events_of(engine, hop(f"Number {n}?", "two", max_tokens=2))) for n in range(12)]
    stop.set()
    await asyncio.gather(*crowd)
    assert len(served) >= len(waits)
    # At most the answer that runs, and what is left of one batch.
    assert max(waits) <= 2 * max(served) + 0.2


async def test_summary_gives_way_to_an_answer(engine: LlamaCppEngine) -> None:
    summary = engine.answer(hop("Summarise the whole of history.", "one", "summary", max_tokens=1500))
    async for batch in summary:
        if text_in(batch):
            break
    began = time.monotonic()
    answer = await events_of(engine, hop("Hello.", "two", max_tokens=1))
    assert queued_in(answer) < 2.0
    assert time.monotonic() - began < 10.0
    with pytest.raises(Preempted):
        await rest_of(summary)


async def test_route_runs_beside_an_answer_of_the_same_adapter(engine: LlamaCppEngine) -> None:
    answer = engine.answer(hop("Tell a long story.", None, max_tokens=60))
    async for batch in answer:
        if text_in(batch):
            break
    choice = await engine.choose(hop("A poem, please.", None, "route", choices=("L0", "L1")))
    assert choice.queued < 0.1
    assert engine.gate.running == 1
    assert finish_in(await rest_of(answer))
