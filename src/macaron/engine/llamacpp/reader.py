"""Reads one choice of an answer: finds the calls in its text and numbers it as the client asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from macaron.conversation import AnswerEvent, CallDelta, Delta, Finish, Sampled, Usage
from macaron.engine.llamacpp.calls import CallParser


class ChoiceReader:
    """Feed it the engine's events of one request in order; `usage` is what that request has cost so far."""

    def __init__(self, choice: int, callable_names: frozenset[str]) -> None:
        self._choice = choice
        self._parser = CallParser(callable_names) if callable_names else None
        self.usage = Usage()

    def read(self, events: Iterable[AnswerEvent]) -> list[Delta | Finish | Sampled]:
        """The events as the client sees them."""
        return [seen for event in events for seen in self._one(event)]

    def _one(self, event: AnswerEvent) -> Iterator[Delta | Finish | Sampled]:
        match event:
            case Usage():
                self.usage = event
            case Sampled():
                yield replace(event, choice=self._choice)
            case Finish(reason):
                yield from self._end(reason)
            case Delta():
                yield from self._delta(event)

    def _delta(self, delta: Delta) -> Iterator[Delta]:
        if self._parser is None or not delta.text:
            yield self._numbered(delta, delta.text)
            return
        pieces = list(self._parser.feed(delta.text)) or [""]
        for place, piece in enumerate(pieces):
            # Log-probabilities belong to all the pieces of a token; they are passed on once.
            seen = delta if place == 0 else Delta()
            if piece or seen.logprobs or seen.reasoning:
                yield self._piece(seen, piece)

    def _end(self, reason: str) -> Iterator[Delta | Finish]:
        if self._parser is not None:
            for piece in self._parser.end():
                yield self._piece(Delta(), piece)
            if self._parser.calls and reason == "stop":
                reason = "tool_calls"
        yield Finish(reason, self._choice)

    def _piece(self, delta: Delta, piece: str | CallDelta) -> Delta:
        return self._numbered(delta, piece) if isinstance(piece, str) else self._numbered(delta, "", (piece,))

    def _numbered(self, delta: Delta, text: str, calls: tuple[CallDelta, ...] = ()) -> Delta:
        return Delta(self._choice, text, delta.reasoning, delta.refusal, calls, delta.logprobs)


def tokens_in(events: Sequence[AnswerEvent]) -> int:
    """Tokens these events have cost the engine: about one a delta, and the part of the prompt it had to read."""
    read = sum(event.prompt - event.cached for event in events if isinstance(event, Usage))
    return read + sum(isinstance(event, Delta) for event in events)
