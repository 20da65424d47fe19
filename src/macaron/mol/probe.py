"""The effect probe on any engine that gives log-probabilities: a few fixed prompts, with and without the adapter."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from macaron.conversation import Delta
from macaron.engine.base import Engine, HopRequest
from macaron.errors import EngineError
from macaron.registry.check import Effect, effect_of

TOP = 10
LEAST = -1000.0
PROBE_SECONDS = 300.0
"""For one hop, which on a busy engine waits behind all that came before it."""
SYSTEM = "You are a helpful assistant."
PROMPTS = (
    "What is tea?",
    "Write a function that reverses a list.",
    "Plan a weekend in Berlin for two people.",
    "Make a form that asks for my name.",
    "Tell me about Paris.",
    "Is 17 a prime number?",
)
"""Of the kinds that specialists are made for, so that one that does only one thing shows on one of them."""


class EngineProbe:
    """`macaron.registry.check.Probe` on a running engine. `tenant` keeps its prompts out of others' caches."""

    def __init__(self, engine: Engine, *, tenant: str = "") -> None:
        self._engine = engine
        self._tenant = tenant

    async def effect(self, adapter: str) -> Effect:
        """Two short hops a prompt, the base's and the adapter's. A prompt that either answers with no token, or
        with a part of a character, does not count.

        Raises:
            EngineError: the engine failed, or gives no log-probabilities for more than half of the prompts.
        """
        # All of one side at once: an engine that runs one adapter at a time changes only twice on a busy service.
        base = await asyncio.gather(*(self._first(prompt, None) for prompt in PROMPTS))
        adapted = await asyncio.gather(*(self._first(prompt, adapter) for prompt in PROMPTS))
        said = [pair for pair in zip(base, adapted, strict=True) if all(pair)]
        if 2 * len(said) < len(PROMPTS):
            raise EngineError(
                f"The engine gave log-probabilities of base and adapter for {len(said)} of {len(PROMPTS)} prompts, too "
                "few to measure an effect. See that it gives them at all, and that the adapter answers anything."
            )
        return effect_of(said)

    async def _first(self, prompt: str, adapter: str | None) -> dict[str, float]:
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
        options = {"temperature": 0, "max_tokens": 1, "logprobs": True, "top_logprobs": TOP}
        hop = HopRequest("answer", adapter, messages, options, tenant=self._tenant, timeout=PROBE_SECONDS)
        found: dict[str, float] = {}
        async with aclosing(self._engine.answer(hop)) as batches:
            async for batch in batches:
                for event in batch:
                    if isinstance(event, Delta) and event.logprobs and not found:
                        found = _distribution(event.logprobs)
        return found


def _distribution(logprobs: Mapping[str, Any]) -> dict[str, float]:
    """Probabilities of the first token; NaN for what is no number. Tokens of the same text count together."""
    content = logprobs.get("content")
    first = content[0] if isinstance(content, list) and content else {}
    top = first.get("top_logprobs") if isinstance(first, dict) else None
    found: dict[str, float] = {}
    for entry in top[:TOP] if isinstance(top, list) else ():
        if isinstance(entry, dict):
            token, value = str(entry.get("token", "")), entry.get("logprob")
            probability = math.exp(max(min(value, 0.0), LEAST)) if isinstance(value, int | float) else math.nan
            found[token] = found.get(token, 0.0) + probability
    return found
