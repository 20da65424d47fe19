"""Adapters that passed their probe and break on what they are asked: their numbers overflow on some prompts only.

What an engine makes of that looks like an answer: llama.cpp says one token for ever, vLLM nothing. So an answer that is
none, or a failure, is asked for once more with its log-probabilities, on the bare base and on the adapter. Only where
the base has numbers and the adapter has none, twice, is the adapter called broken.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from macaron.conversation import Answer, Delta
from macaron.engine.base import Engine, HopRequest, Preempted
from macaron.errors import EngineError, EngineTimeout, MacaronError
from macaron.mol.background import Background
from macaron.mol.residency import Residency

PAUSE_SECONDS = 5.0
WAITING = 8
"""Doubtful answers of one adapter that wait for their look; of more, the oldest are let go."""

LOOK_SECONDS = 60.0
LOOKS, TOKENS, TOP = 2, 4, 5
CONTEXT_CHARACTERS = 400
"""Of the doubtful answer that are asked with: what is no number is none for all that comes after it."""

TAIL = 72
LONGEST_PERIOD = 12
"""An answer that ends in one piece of up to so many characters over and over is doubtful."""


class Doubts:
    """For one worker.

    Attributes:
        watched: engine names of the adapters that are looked at.
        broken: told of one that is, by its engine name, and why.
        pause: seconds between two looks at one adapter.
    """

    def __init__(
        self,
        engine: Engine,
        residency: Residency,
        background: Background,
    ) -> None:
        self._engine = engine
        self._residency = residency
        self._background = background
        self.pause = PAUSE_SECONDS
        self._waiting: dict[str, deque[HopRequest]] = {}
        self.watched: frozenset[str] = frozenset()
        self.broken: Callable[[str, str], None] = lambda adapter, reason: None

    def keep(self, watched: frozenset[str]) -> None:
        """Look at these from now on, and at no others."""
        self.watched = watched

    def saw(self, hop: HopRequest, answer: Answer | None) -> None:
        """A hop has ended; None where that gave nothing usable."""
        if hop.adapter in self.watched and (answer is None or _is_doubtful(answer)):
            self._look(hop, hop.adapter, answer.text if answer else "")

    def failed(self, hop: HopRequest, error: BaseException) -> None:
        """A hop has failed. That it took too long, or gave way, says nothing about numbers."""
        if isinstance(error, EngineError) and not isinstance(error, EngineTimeout | Preempted):
            self.saw(hop, None)

    def _look(self, hop: HopRequest, adapter: str, text: str) -> None:
        known = self._waiting.get(adapter)
        waiting = self._waiting.setdefault(adapter, deque(maxlen=WAITING))
        waiting.append(_asking(hop, text))
        if known is None:
            self._next(adapter)

    def _next(self, adapter: str) -> None:
        waiting = self._waiting[adapter]
        if waiting and adapter in self.watched and not self._background.full:
            self._background.start(self._examine(adapter, waiting.popleft()), f"look at {adapter}")
        else:
            del self._waiting[adapter]

    async def _examine(self, adapter: str, hop: HopRequest) -> None:
        reason: str | None = None
        try:
            with self._residency.use(adapter):
                reason = await self._reason(hop)
        finally:
            # No task sleeps through the pause: it would hold up the end of the service.
            asyncio.get_running_loop().call_later(self.pause, self._next, adapter)
        if reason and adapter in self.watched:
            self._waiting[adapter].clear()
            self.broken(adapter, reason)

    async def _reason(self, hop: HopRequest) -> str | None:
        """Why an adapter is broken; empty or None where it is not known to be."""
        reason: str | None = None
        if await self._fault(replace(hop, adapter=None)) == "":
            for _ in range(LOOKS):
                reason = await self._fault(hop)
                if not reason:
                    break
        return reason

    async def _fault(self, hop: HopRequest) -> str | None:
        """What is wrong with the numbers of a few tokens: empty where nothing is, None where there are none to see. An
        engine that fails says nothing of an adapter: it may be about to lose it."""
        seen: list[tuple[Any, ...]] = []
        try:
            async with aclosing(self._engine.answer(hop)) as batches:
                async for batch in batches:
                    seen += [_numbers(event.logprobs) for event in batch if isinstance(event, Delta) and event.logprobs]
        except MacaronError:
            return None
        seen = [numbers for numbers in seen if numbers]
        if not all(isinstance(value, int | float) and math.isfinite(value) for numbers in seen for value in numbers):
            return "the engine's probabilities are not numbers with this adapter"
        if seen and all(len(numbers) > 1 and len(set(numbers)) == 1 for numbers in seen):
            return "every token is equally likely with this adapter"
        return "" if seen else None


def _asking(hop: HopRequest, text: str) -> HopRequest:
    """The same prompt, with what was answered, for a few tokens and their numbers."""
    messages = list(hop.messages)
    if text:
        said = {"role": "assistant", "content": text[:CONTEXT_CHARACTERS]}
        messages += [said, {"role": "user", "content": "Go on."}]
    options = {"temperature": 0, "max_tokens": TOKENS, "ignore_eos": True, "logprobs": True, "top_logprobs": TOP}
    return HopRequest("answer", hop.adapter, messages, options, tenant=hop.tenant, timeout=LOOK_SECONDS)


def _is_doubtful(answer: Answer) -> bool:
    """Whether it says nothing, or ends in one piece over and over."""
    if answer.calls or answer.refusal:
        return False
    text = answer.text.rstrip()
    if not text:
        return not answer.reasoning
    tail = text[-TAIL:]
    periods = range(1, min(LONGEST_PERIOD, len(tail) // 4) + 1)
    return any(tail[period:] == tail[:-period] for period in periods)


def _numbers(logprobs: Mapping[str, Any]) -> tuple[Any, ...]:
    """The log-probabilities of the likeliest tokens, of every token in a piece; whatever stands in their place."""
    content = logprobs.get("content")
    entries = content if isinstance(content, list) else []
    tops = [entry["top_logprobs"] for entry in entries if isinstance(entry, dict) and entry.get("top_logprobs")]
    return tuple(top.get("logprob") for each in tops if isinstance(each, list) for top in each if isinstance(top, dict))
