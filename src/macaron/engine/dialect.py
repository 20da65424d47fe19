"""Between the bytes of the Chat Completions wire and `AnswerEvent`s. Pure functions and a parser; no I/O.

What an engine may leave out or send as null is accepted; what cannot be understood is an error, never skipped text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

import msgspec
from msgspec import Struct

from macaron.conversation import AnswerEvent, CallDelta, Delta, Finish, Usage
from macaron.engine.dialect_error import error_from_payload, error_from_reply
from macaron.engine.dialect_sse import EventFrames
from macaron.errors import BadRequest, EngineError, MacaronError

__all__ = ["EventParser", "encode_body", "error_from_reply", "events_from_completion"]

EVENT_LIMIT: Final = 8_388_608
MAX_CHOICES: Final = 128
MAX_CALLS: Final = 1024
MAX_COUNT: Final = 2**31
UNFINISHED: Final = ("abort", "error")


class _Function(Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Message(Struct):
    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    index: int | None = None
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None


class _PromptDetails(Struct):
    cached_tokens: int | None = None


class _CompletionDetails(Struct):
    reasoning_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    reasoning_tokens: int | None = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    object: Any = None


_CHUNK: Final = msgspec.json.Decoder(_Chunk)


class EventParser:
    """Turns the bytes of one streamed answer into events, however they are cut into pieces.

    After an error the events that came before it are still given: `feed` returns them, and the next call raises.

    Args:
        choices: how many the request asked for; a stream that breaks off before all of them ended is an error.
        limit: bytes of one event that are accepted.
    """

    def __init__(self, *, choices: int = 1, limit: int = EVENT_LIMIT) -> None:
        self._frames = EventFrames(limit)
        self._answer = _Answer()
        self._expected = choices
        self._done = False
        self._fault: MacaronError | None = None

    @property
    def ended(self) -> bool:
        """Whether the rest of the stream says nothing more: `finish` can be called now."""
        return self._done or self._fault is not None

    def feed(self, data: bytes) -> list[AnswerEvent]:
        """The events that `data` completes, in order; `Usage` is given once, when the stream says that it is done.

        Raises:
            EngineError: a chunk is corrupt or too large, or the engine reports that it failed.
            BadRequest: the engine reports that the request was wrong (`ContextOverflow` where it was too long).
        """
        if self._fault is not None:
            raise self._fault
        events: list[AnswerEvent] = []
        if self._done:
            return events
        try:
            for payload in self._frames.feed(data):
                self._take(payload, events)
        except MacaronError as error:
            if not events:
                raise
            self._fault = error
        return events

    def finish(self) -> list[AnswerEvent]:
        """The events left at the end of the stream.

        Raises:
            EngineError: the stream broke off: a choice has no end, or nothing was answered at all.
        """
        if self._fault is not None:
            raise self._fault
        events: list[AnswerEvent] = []
        if not self._done:
            for payload in self._frames.finish():
                self._take(payload, events)
        if not self._done:
            self._answer.close(self._expected, events)
            self._done = True
        return events

    def _take(self, payload: bytes, events: list[AnswerEvent]) -> None:
        if self._done:
            return
        if len(payload) < 16:
            text = payload.strip()
            if text == b"[DONE]":
                self._answer.close(1, events)
                self._done = True
                return
            if not text:
                return
        self._answer.add(_decoded(payload, "chunk"), events)


def events_from_completion(body: bytes) -> list[AnswerEvent]:
    """The events of an answer that was not streamed: for each choice a `Delta` and a `Finish`, then the `Usage`.

    Raises:
        EngineError: the body is not a chat completion, or a choice in it has not ended.
        BadRequest: the body is an error that the request caused.
    """
    events: list[AnswerEvent] = []
    answer = _Answer()
    answer.add(_decoded(body, "completion"), events)
    answer.close(1, events)
    return events


def encode_body(body: Mapping[str, Any]) -> bytes:
    """A request body as JSON.

    Raises:
        BadRequest: it holds something JSON cannot express, such as a lone surrogate, or is nested too deep.
    """
    try:
        return msgspec.json.encode(body)
    except RecursionError:
        raise BadRequest("The request is nested too deep; flatten it.") from None
    except (TypeError, ValueError) as error:
        raise BadRequest(f"The request cannot be written as JSON: {error}.") from None


def _decoded(payload: bytes, what: str) -> _Chunk:
    try:
        chunk = _CHUNK.decode(payload)
        refused = chunk.error is not None or chunk.object == "error"
        complaint = msgspec.json.decode(payload) if refused else None
    except (msgspec.DecodeError, RecursionError) as error:
        raise EngineError(
            f"The engine sent a corrupt {what} ({error}); check that its address speaks Chat Completions.",
            code="corrupt_engine_answer",
        ) from None
    if refused:
        raise error_from_payload(None, complaint)
    return chunk


class _Answer:
    """What has been seen of one answer: its choices, their calls, and the usage."""

    def __init__(self) -> None:
        self._choices: dict[int, _ChoiceState] = {}
        self._usage: _Usage | None = None

    def add(self, chunk: _Chunk, events: list[AnswerEvent]) -> None:
        if chunk.usage is not None:
            self._usage = chunk.usage
        for choice in chunk.choices or ():
            self._add_choice(choice, events)

    def close(self, expected: int, events: list[AnswerEvent]) -> None:
        ended = sum(state.ended for state in self._choices.values())
        if ended < max(expected, len(self._choices)):
            raise EngineError(
                f"The engine's answer broke off: {ended} of {max(expected, len(self._choices))} choices ended.",
                code="truncated_engine_answer",
            )
        if self._usage is not None:
            events.append(_usage(self._usage))

    def _add_choice(self, choice: _Choice, events: list[AnswerEvent]) -> None:
        index = choice.index or 0
        state = self._choices.get(index)
        if state is None:
            if len(self._choices) >= MAX_CHOICES or index < 0:
                raise EngineError(f"The engine sent choice {index}; 0 to {MAX_CHOICES - 1} are accepted.")
            state = self._choices[index] = _ChoiceState(index)
        message = choice.delta or choice.message
        if message is not None:
            delta = state.delta(message, choice.logprobs)
            if delta is not None:
                events.append(delta)
        if choice.finish_reason and not state.ended:
            if choice.finish_reason in UNFINISHED:
                raise EngineError(f"The engine gave up on the answer ({choice.finish_reason}); its log says why.")
            state.ended = True
            events.append(Finish(choice.finish_reason, index))


class _ChoiceState:
    """One choice: whether it has ended, and which calls it has made."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.ended = False
        self._calls: list[_CallState] = []
        self._places: dict[int, int] = {}

    def delta(self, message: _Message, logprobs: dict[str, Any] | None) -> Delta | None:
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

    def _call(self, call: _Call) -> CallDelta:
        function = call.function or _Function()
        arguments = function.arguments or ""
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        place = self._place(call, function)
        state = self._calls[place]
        call_id = name = None
        if not state.announced:
            state.announced = True
            call_id = state.call_id
        if function.name and not state.named:
            state.named = True
            name = function.name
        return CallDelta(place, call_id, name, arguments)

    def _place(self, call: _Call, function: _Function) -> int:
        """Our index of a call. Some engines number none of them, some all of them 0; a new id with a name is new."""
        if call.index is None:
            place = len(self._calls) - 1
            known = place >= 0 and not call.id
        else:
            place = self._places.get(call.index, -1)
            known = place >= 0
        renamed = bool(known and call.id and function.name and call.id != self._calls[place].call_id)
        if known and not renamed:
            return place
        if len(self._calls) >= MAX_CALLS:
            raise EngineError(f"The engine sent more than {MAX_CALLS} tool calls in one answer.")
        self._calls.append(_CallState(call.id or f"call_{uuid4().hex}"))
        if call.index is not None:
            self._places[call.index] = len(self._calls) - 1
        return len(self._calls) - 1


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


def _usage(usage: _Usage) -> Usage:
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        _count(usage.prompt_tokens),
        _count(usage.completion_tokens),
        _count(prompt.cached_tokens if prompt is not None else None),
        _count(completion.reasoning_tokens if completion is not None else usage.reasoning_tokens),
    )


def _count(given: int | None) -> int:
    """A number of tokens that can be summed and stored, whatever the engine sent."""
    return min(max(given or 0, 0), MAX_COUNT)
