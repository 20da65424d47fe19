"""What a real vLLM tells of an answer's tokens can be scored again on the same adapter."""

from __future__ import annotations

import statistics
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from macaron.conversation import Delta, Sampled, Usage
from macaron.engine.vllm import VllmEngine
from tests.mol.talk import user
from tests.vllm.talk import QUESTION, head, hop

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(600)]

WITHIN = 0.05


@pytest.mark.parametrize("stream", [True, False])
async def test_sampled_tokens_scored_again_have_their_log_probabilities(
    engine: VllmEngine, origin: str, stream: bool
) -> None:
    asked = hop("L1", head("L1", user(QUESTION)), temperature=0.8, seed=5, max_tokens=24)
    events = [event async for batch in engine.answer(replace(asked, stream=stream, sampled=True)) for event in batch]
    (sampled,) = (event for event in events if isinstance(event, Sampled))
    (usage,) = (event for event in events if isinstance(event, Usage))
    assert not any(event.logprobs for event in events if isinstance(event, Delta))
    assert (len(sampled.prompt), len(sampled.ids)) == (usage.prompt, usage.completion)
    same, other = [await _scored(origin, name, sampled) for name in ("L1", "L0")]
    assert max(_apart(same, sampled)) <= WITHIN
    assert statistics.mean(_apart(other, sampled)) > 3 * WITHIN


def _apart(scores: list[float], sampled: Sampled) -> list[float]:
    return [abs(a - b) for a, b in zip(scores, sampled.logprobs, strict=True)]


async def _scored(origin: str, model: str, sampled: Sampled) -> list[float]:
    tokens = [*sampled.prompt, *sampled.ids]
    body = {"model": model, "prompt": tokens, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
    async with aiohttp.ClientSession(origin) as session, session.post("/v1/completions", json=body) as reply:
        scores: list[dict[str, Any]] = (await reply.json())["choices"][0]["prompt_logprobs"]
    places = range(len(sampled.prompt), len(tokens))
    return [float(scores[at][str(tokens[at])]["logprob"]) for at in places]
