"""Follows one answer through its chunks: which choices it has, which calls they make, and what is new in each chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

import msgspec
from msgspec import Struct, field

from macaron.conversation import AnswerEvent, CallDelta, Delta, Finish, Usage
from macaron.engine.dialect_chunk import (
    AnswerMessage,
    Call,
    Chunk,
    ChunkChoice,
    Function,
    TokenChoice,
    TokenChunk,
    UsageCounts,
)
from macaron.engine.dialect_sampled import SampledTokens, token_ids
from macaron.errors import EngineError

MAX_CHOICES: Final = 128
MAX_CALLS: Final = 1024
MAX_COUNT: Final = 2**31
UNFINISHED: Final = ("abort", "error")


class AnswerState:
    """What has been seen of one answer: its choices, their calls, and the usage.

    Args:
        sampled: give `Sampled` before the end of each choice.
        logprobs: let the deltas carry log-probabilities.
    """

    def __init__(self, *, sampled: bool = False, logprobs: bool = True) -> None:
        self._sampled = sampled
        self._logprobs = logprobs
        self._prompt: tuple[int, ...] = ()
        # Nobody but the record wants the tokens, so that a chunk need not be taken to pieces.
        self.tokens_only = sampled and not logprobs
        self._choices: dict[int, _ChoiceState] = {}
        self._open = 0
        self._usage: UsageCounts | None = None

    def add(self, chunk: Chunk | TokenChunk, events: list[AnswerEvent]) -> None:
        """Append what the chunk adds to the answer; the usage is kept for the end."""
        if chunk.usage is not None:
            self._usage = chunk.usage
        if self._sampled and chunk.prompt_token_ids:
            self._prompt = token_ids(chunk.prompt_token_ids)
        for choice in chunk.choices or ():
            self._add_choice(choice, events)

    def ended(self, expected: int) -> bool:
        """Whether all choices that were begun, and at least `expected`, have ended."""
        return not self._open and len(self._choices) >= expected

    def close(self, expected: int, events: list[AnswerEvent]) -> None:
        """Append the usage.

        Raises:
            EngineError: fewer than `expected` choices have ended, or one that was begun has not.
        """
        if not self.ended(expected):
            ended = len(self._choices) - self._open
            raise EngineError(
                f"The engine's answer broke off: {ended} of {max(expected, len(self._choices))} choices ended.",
                code="truncated_engine_answer",
            )
        if self._usage is not None:
            events.append(_usage(self._usage))

    def _add_choice(self, choice: ChunkChoice | TokenChoice, events: list[AnswerEvent]) -> None:
        index = choice.index or 0
        state = self._choices.get(index)
        if state is None:
            if len(self._choices) >= MAX_CHOICES or index < 0:
                raise EngineError(f"The engine sent choice {index}; 0 to {MAX_CHOICES - 1} are accepted.")
            state = self._choices[index] = _ChoiceState(index)
            self._open += 1
        if self._sampled and not state.ended:
            state.tokens.add(choice)
        message = choice.delta or choice.message
        if message is not None:
            shown = choice.logprobs if self._logprobs and isinstance(choice, ChunkChoice) else None
            delta = state.delta(message, shown)
            if delta is not None:
                events.append(delta)
        if choice.finish_reason and not state.ended:
            if choice.finish_reason in UNFINISHED:
                raise EngineError(f"The engine gave up on the answer ({choice.finish_reason}); its log says why.")
            state.ended = True
            self._open -= 1
            if self._sampled:
                events.append(state.tokens.event(index, self._prompt))
            events.append(Finish(choice.finish_reason, index))


class _ChoiceState(Struct):
    """One choice: whether it has ended, and which calls it has made, by our index and by the engine's."""

    index: int
    ended: bool = False
    calls: list[_CallState] = []
    places: dict[int, int] = {}
    tokens: SampledTokens = field(default_factory=SampledTokens)

    def delta(self, message: AnswerMessage, logprobs: dict[str, Any] | None) -> Delta | None:
        """What the message says, None where that is nothing."""
        content = message.content
        reasoning = message.reasoning_content or message.reasoning or ""
        if isinstance(content, list):
            content, thought = _from_parts(content)
            reasoning += thought
        refusal = message.refusal or ""
        calls = tuple(map(self._call, message.tool_calls)) if message.tool_calls else ()
        if not (content or reasoning or refusal or calls or logprobs):
            return None
        if self.ended and (content or reasoning or refusal or calls):
            raise EngineError(f"The engine sent more of choice {self.index} after its end.")
        return Delta(self.index, content or "", reasoning, refusal, calls, logprobs)

    def _call(self, call: Call) -> CallDelta:
        function = call.function or Function()
        arguments = function.arguments or ""
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        place = self._place(call, function)
        state = self.calls[place]
        call_id = name = None
        if not state.announced:
            state.announced = True
            call_id = state.call_id
        if function.name and not state.named:
            state.named = True
            name = function.name
        return CallDelta(place, call_id, name, arguments)

    def _place(self, call: Call, function: Function) -> int:
        """Our index of a call. Some engines number none of them, some all of them 0; a new id with a name is new."""
        if call.index is None:
            place = len(self.calls) - 1
            known = place >= 0 and not call.id
        else:
            place = self.places.get(call.index, -1)
            known = place >= 0
        renamed = bool(known and call.id and function.name and call.id != self.calls[place].call_id)
        if known and not renamed:
            return place
        if len(self.calls) >= MAX_CALLS:
            raise EngineError(f"The engine sent more than {MAX_CALLS} tool calls in one answer.")
        self.calls.append(_CallState(call.id or f"call_{uuid4().hex}"))
        if call.index is not None:
            self.places[call.index] = len(self.calls) - 1
        return len(self.calls) - 1


class _CallState(Struct):
    call_id: str
    announced: bool = False
    named: bool = False


def _from_parts(parts: Sequence[Any]) -> tuple[str, str]:
    """Text and thinking of a content that is a list of parts."""
    text, thought = "", ""
    for part in parts:
        match part:
            case str() | {"type": "text" | "output_text", "text": str()}:
                text += part if isinstance(part, str) else part["text"]
            case {"type": "thinking", "thinking": str() | list() as thinking}:
                thought += thinking if isinstance(thinking, str) else _from_parts(thinking)[0]
            case _:
                kind = part.get("type") if isinstance(part, dict) else type(part).__name__
                raise EngineError(f"The engine answered with a content part of type {kind!r}; only text is understood.")
    return text, thought


def _usage(usage: UsageCounts) -> Usage:
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    counts = (
        usage.prompt_tokens,
        usage.completion_tokens,
        prompt.cached_tokens if prompt is not None else None,
        completion.reasoning_tokens if completion is not None else usage.reasoning_tokens,
    )
    # Numbers that can be summed and stored, whatever the engine sent.
    return Usage(*[min(max(count, 0), MAX_COUNT) if count else 0 for count in counts])
