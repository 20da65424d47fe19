"""The tokens of an answer, from what engines say of them beside its text.

vLLM gives `token_ids` and `prompt_token_ids`, llama.cpp an `id` in each entry of `logprobs`. What is not of these
shapes counts for nothing: recording must not break an answer that is good without it.
"""

from __future__ import annotations

import math
from typing import Any, Final

from macaron.conversation import Sampled
from macaron.engine.dialect_chunk import ChunkChoice, TokenChoice

MAX_TOKENS: Final = 1_048_576
MAX_ID: Final = 2**31


class SampledTokens:
    """The tokens of one choice, put together from its chunks."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._logprobs: list[float] = []

    def add(self, choice: ChunkChoice | TokenChoice) -> None:
        """Take what one chunk says."""
        if len(self._ids) >= MAX_TOKENS or len(self._logprobs) >= MAX_TOKENS:
            return
        if isinstance(choice, TokenChoice):
            known = (choice.logprobs and choice.logprobs.content) or []
            self._logprobs += [entry.logprob for entry in known]
            told = choice.token_ids
            self._ids += [entry.id for entry in known if entry.id is not None] if told is None else told
            return
        entries = choice.logprobs.get("content") if choice.logprobs else None
        listed: list[Any] = entries if isinstance(entries, list) else []
        found = choice.token_ids
        if found is None:
            found = [entry.get("id") for entry in listed if isinstance(entry, dict)]
        self._ids += token_ids(found)
        self._logprobs += [_logprob(entry) for entry in listed]

    def event(self, choice: int, prompt: tuple[int, ...]) -> Sampled:
        """What was sampled so far."""
        return Sampled(choice, tuple(self._ids), tuple(self._logprobs), prompt)


def token_ids(value: Any) -> tuple[int, ...]:
    """A list of token ids; empty where it is none."""
    if not isinstance(value, list) or len(value) > MAX_TOKENS:
        return ()
    whole = all(type(token) is int and 0 <= token < MAX_ID for token in value)
    return tuple(value) if whole else ()


def _logprob(entry: Any) -> float:
    """The logarithm an entry holds; NaN where it holds none, so that tokens and numbers stay side by side."""
    value = entry.get("logprob") if isinstance(entry, dict) else None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else math.nan
