"""Between the bytes of the Chat Completions wire and `AnswerEvent`s. Pure functions and a parser; no I/O.

What an engine may leave out or send as null is accepted; what cannot be understood is an error, never skipped text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from macaron.conversation import AnswerEvent
from macaron.engine.dialect_answer import AnswerState
from macaron.engine.dialect_chunk import decoded_chunk
from macaron.engine.dialect_error import error_from_reply
from macaron.engine.dialect_sse import EventFrames
from macaron.errors import BadRequest, EngineError, MacaronError

__all__ = ["EventParser", "encode_body", "error_from_reply", "events_from_completion"]

EVENT_LIMIT: Final = 8_388_608


class EventParser:
    """Turns the bytes of one streamed answer into events, however they are cut into pieces.

    After an error the events that came before it are still given: `feed` returns them, and every later call raises.

    Args:
        choices: how many the request asked for; a stream that breaks off before all of them ended is an error.
        sampled, logprobs: as for `AnswerState`.
        limit: bytes of one event that are accepted.
    """

    def __init__(
        self, *, choices: int = 1, sampled: bool = False, logprobs: bool = True, limit: int = EVENT_LIMIT
    ) -> None:
        self._frames = EventFrames(limit)
        self._answer = AnswerState(sampled=sampled, logprobs=logprobs)
        self._expected = choices
        self._done = False
        self._fault: MacaronError | None = None

    @property
    def ended(self) -> bool:
        """Whether the rest of the stream says nothing more: `finish` can be called now."""
        return self._done or self._fault is not None

    @property
    def complete(self) -> bool:
        """Whether every choice has ended, so that only the usage can be missing."""
        return self._answer.ended(self._expected)

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
            self._fault = error
            if not events:
                raise
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
            self._take_rest(events)
        if not self._done:
            self._answer.close(self._expected, events)
            self._done = True
        return events

    def _take_rest(self, events: list[AnswerEvent]) -> None:
        try:
            for payload in self._frames.finish():
                self._take(payload, events)
        except EngineError:
            # Behind the end of every choice a piece of an event can only have been about the usage.
            if not self.complete:
                raise

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
        self._answer.add(decoded_chunk(payload, "chunk", tokens=self._answer.tokens_only), events)


def events_from_completion(
    body: bytes, choices: int = 1, *, sampled: bool = False, logprobs: bool = True
) -> list[AnswerEvent]:
    """The events of an answer that was not streamed: for each choice a `Delta` and a `Finish`, then the `Usage`.

    `choices` is how many were asked for; an answer with fewer is broken. `sampled` and `logprobs` as for `AnswerState`.

    Raises:
        EngineError: the body is not a chat completion, or a choice in it has not ended.
        BadRequest: the body is an error that the request caused.
    """
    events: list[AnswerEvent] = []
    answer = AnswerState(sampled=sampled, logprobs=logprobs)
    answer.add(decoded_chunk(body, "completion", tokens=answer.tokens_only), events)
    answer.close(choices, events)
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
