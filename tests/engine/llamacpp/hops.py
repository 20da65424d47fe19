"""Hops for the tests, and what came of them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from macaron.conversation import CallDelta, Delta, Finish, HopKind, Usage
from macaron.engine.base import ChatMessage, Engine, EngineEvent, HopRequest, Queued

SYSTEM: ChatMessage = {"role": "system", "content": "You are a brief and friendly assistant."}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city now.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "enum": ["Paris", "Rome", "New York"]},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer"},
            },
            "required": ["city", "unit"],
        },
    },
}


async def until(condition: Callable[[], bool], timeout: float = 10.0) -> None:
    """Wait for something that tells nobody when it happens."""
    async with asyncio.timeout(timeout):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


def user(text: str) -> ChatMessage:
    return {"role": "user", "content": text}


def hop(
    text: str | Sequence[ChatMessage],
    adapter: str | None = None,
    kind: HopKind = "answer",
    *,
    choices: tuple[str, ...] = (),
    prefill: str = "",
    timeout: float = 60.0,
    **options: Any,
) -> HopRequest:
    messages = [SYSTEM, user(text)] if isinstance(text, str) else list(text)
    defaults = {"temperature": 0, "max_tokens": 16}
    return HopRequest(
        kind, adapter, messages, {**defaults, **options}, choices=choices, prefill=prefill, timeout=timeout
    )


async def events_of(engine: Engine, request: HopRequest) -> list[EngineEvent]:
    return await rest_of(engine.answer(request))


async def rest_of(answer: AsyncIterator[Sequence[EngineEvent]]) -> list[EngineEvent]:
    return [event async for batch in answer for event in batch]


async def text_of_answer(engine: Engine, request: HopRequest) -> str:
    return text_in(await events_of(engine, request))


def text_in(events: Sequence[EngineEvent], choice: int = 0) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta) and event.choice == choice)


def calls_in(events: Sequence[EngineEvent]) -> list[CallDelta]:
    return [call for event in events if isinstance(event, Delta) for call in event.calls]


def joined_calls(events: Sequence[EngineEvent]) -> list[tuple[str, str]]:
    """Name and arguments of every call."""
    calls: dict[int, list[str]] = {}
    for call in calls_in(events):
        name, arguments = calls.setdefault(call.index, ["", ""])
        calls[call.index] = [name + (call.name or ""), arguments + call.arguments]
    return [(name, arguments) for name, arguments in calls.values()]


def finish_in(events: Sequence[EngineEvent]) -> list[Finish]:
    return [event for event in events if isinstance(event, Finish)]


def usage_in(events: Sequence[EngineEvent]) -> Usage:
    (usage,) = (event for event in events if isinstance(event, Usage))
    return usage


def queued_in(events: Sequence[EngineEvent]) -> float:
    first = events[0]
    assert isinstance(first, Queued)
    return first.seconds


Distribution = Mapping[int, float]


async def first_token(
    engine: Engine, messages: Sequence[ChatMessage], adapter: str | None, **options: Any
) -> Distribution:
    """The ten likeliest first tokens of an answer and their probabilities."""
    request = hop(messages, adapter, **{**options, "max_tokens": 1, "logprobs": True, "top_logprobs": 10})
    return distribution_in(await events_of(engine, request))


def distribution_in(events: Sequence[EngineEvent]) -> Distribution:
    for event in events:
        if isinstance(event, Delta) and event.logprobs:
            top = event.logprobs["content"][0]["top_logprobs"]
            return {token["id"]: math.exp(token["logprob"]) for token in top}
    raise AssertionError("the answer came without log-probabilities")


def total_variation(one: Distribution, other: Distribution) -> float:
    return sum(abs(one.get(token, 0.0) - other.get(token, 0.0)) for token in {*one, *other}) / 2
