"""Anthropic Messages answers as streams of events. Pure: neutral events in, bytes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from macaron.conversation import Answer, CallDelta, Delta, Hop, Usage
from macaron.errors import MacaronError
from macaron.wire.messages_answer import SIGNATURE, is_object, message_start, stop_reason, usage_object
from macaron.wire.messages_error import anthropic_error

Place = int | Literal["text", "thinking"]
"""What a block is for: thoughts, text, or the call of this index."""


class MessagesStream:
    """Writes the events of one streamed answer.

    Blocks follow each other, and one that has ended cannot be gone on with. So a call is ended by what comes after it
    only if its arguments are whole; otherwise everything else waits for the end of the answer.

    Args:
        thinking: whether the client is shown the thoughts.
    """

    def __init__(self, message_id: str, model: str, *, thinking: bool) -> None:
        self._message = message_start(message_id, model)
        self._thinking = thinking
        self._begun = False
        self._blocks = -1
        self._open: Place | None = None
        self._before = b""
        self._calls: dict[int, _Call] = {}
        self._waiting: dict[Place, list[str]] = {}

    def chunks(self, deltas: Sequence[Delta]) -> bytes:
        """The events for deltas that arrived together; neighbouring pieces of one block become one event."""
        if len(deltas) == 1 and self._open == "text" and _is_text(deltas[0]):
            return self._before + msgspec.json.encode(deltas[0].text) + b"}}\n\n"
        events = [self._begin()]
        for place, text in self._pieces(deltas):
            self._add(place, text, events)
        return b"".join(events)

    def finish(self, answer: Answer, usage: Usage, hops: Sequence[Hop]) -> bytes:
        """What is left of the blocks, and the terminal events."""
        events = [self._begin()]
        self._close(events)
        for place, pieces in self._waiting.items():
            self._start(place, events)
            self._piece("".join(pieces), events)
            self._close(events)
        delta = {"stop_reason": stop_reason(answer), "stop_sequence": None}
        events.append(_event("message_delta", {"delta": delta, "usage": usage_object(usage, hops)}))
        events.append(_event("message_stop", {}))
        return b"".join(events)

    def error(self, error: MacaronError) -> bytes:
        """An error event, which ends the stream."""
        return b"event: error\ndata: " + msgspec.json.encode(anthropic_error(error)) + b"\n\n"

    def _begin(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        return _event("message_start", {"message": self._message}) + _event("ping", {})

    def _pieces(self, deltas: Sequence[Delta]) -> list[tuple[Place, str]]:
        """The deltas as pieces of blocks, neighbours of one block joined."""
        pieces: list[tuple[Place, str]] = []
        for delta in deltas:
            if delta.reasoning and self._thinking:
                _join(pieces, "thinking", delta.reasoning)
            if delta.text or delta.refusal:
                _join(pieces, "text", delta.text + delta.refusal)
            for call in delta.calls:
                self._know(call)
                _join(pieces, call.index, call.arguments)
        return pieces

    def _know(self, delta: CallDelta) -> None:
        call = self._calls.setdefault(delta.index, _Call())
        call.id = call.id or delta.call_id or ""
        call.name = call.name or delta.name or ""

    def _add(self, place: Place, text: str, events: list[bytes]) -> None:
        if place != self._open:
            # A block begins with its call's name.
            nameless = isinstance(place, int) and not self._calls[place].name
            if self._waiting or nameless or not self._may_close():
                self._waiting.setdefault(place, []).append(text)
                return
            self._close(events)
            self._start(place, events)
        self._piece(text, events)

    def _may_close(self) -> bool:
        if not isinstance(self._open, int):
            return True
        arguments = "".join(self._calls[self._open].arguments)
        return is_object(arguments)

    def _start(self, place: Place, events: list[bytes]) -> None:
        self._open = place
        self._blocks += 1
        kind, field, block = self._shape(place)
        events.append(_event("content_block_start", {"index": self._blocks, "content_block": block}))
        self._before = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":'
            % (self._blocks, kind, field)
        )

    def _shape(self, place: Place) -> tuple[bytes, bytes, dict[str, Any]]:
        """The type of a block's deltas, the field of their text, and the block before the first of them."""
        match place:
            case "text":
                return b"text_delta", b"text", {"type": "text", "text": ""}
            case "thinking":
                return b"thinking_delta", b"thinking", {"type": "thinking", "thinking": "", "signature": ""}
            case _:
                call = self._calls[place]
                block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
                return b"input_json_delta", b"partial_json", block

    def _piece(self, text: str, events: list[bytes]) -> None:
        if text:
            if isinstance(self._open, int):
                self._calls[self._open].arguments.append(text)
            events.append(self._before + msgspec.json.encode(text) + b"}}\n\n")

    def _close(self, events: list[bytes]) -> None:
        if self._open is None:
            return
        if self._open == "thinking":
            signed = {"type": "signature_delta", "signature": SIGNATURE}
            events.append(_event("content_block_delta", {"index": self._blocks, "delta": signed}))
        events.append(_event("content_block_stop", {"index": self._blocks}))
        self._open = None


class _Call:
    """A call: what its block begins with, and the arguments so far."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


def _join(pieces: list[tuple[Place, str]], place: Place, text: str) -> None:
    if pieces and pieces[-1][0] == place:
        pieces[-1] = (place, pieces[-1][1] + text)
    else:
        pieces.append((place, text))


def _is_text(delta: Delta) -> bool:
    return bool(delta.text) and not (delta.reasoning or delta.refusal or delta.calls)


def _event(name: str, fields: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode({"type": name, **fields}))
