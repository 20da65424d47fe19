"""The output items of a response, put together from the pieces an engine streams, and the events that tell of them.
Pure.

An item is open from its first piece until another begins. White space before a message's first word is held back, since
beside tool calls it is no message of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from macaron.conversation import Answer, CallDelta, Delta
from macaron.wire.responses_custom import InputReader
from macaron.wire.responses_items import WireItem, item_id
from macaron.wire.responses_tools import Named

Event = dict[str, Any]
"""An event without its sequence number; `type` comes first."""

OUTPUT_PLACES = 0x8000
"""Ids of output items are counted from here, those of input items from 0."""


class _Part:
    """A part of an item that grows."""

    def __init__(self, kind: str, field: str, index_name: str, index: int) -> None:
        self.kind, self.field, self.index_name, self.index = kind, field, index_name, index
        self.pieces: list[str] = []
        self.logprobs: list[dict[str, Any]] = []

    def whole(self, text: str | None = None) -> dict[str, Any]:
        body: dict[str, Any] = {"type": self.kind, self.field: "".join(self.pieces) if text is None else text}
        if self.kind == "output_text":
            body |= {"annotations": [], "logprobs": self.logprobs}
        return body


_EVENTS = {
    "output_text": ("response.output_text", "response.content_part"),
    "refusal": ("response.refusal", "response.content_part"),
    "reasoning_text": ("response.reasoning_text", "response.content_part"),
    "summary_text": ("response.reasoning_summary_text", "response.reasoning_summary_part"),
}


class _Item:
    """An output item that is open: its place, and how it looks so far."""

    def __init__(self, wire: WireItem, place: int) -> None:
        self.wire, self.place = wire, place
        self.parts: list[_Part] = []

    @property
    def where(self) -> dict[str, Any]:
        return {"item_id": self.wire["id"], "output_index": self.place}

    def added(self) -> Event:
        return {"type": "response.output_item.added", "output_index": self.place, "item": dict(self.wire)}

    def grow(self, kind: str, text: str, logprobs: Sequence[dict[str, Any]], index_name: str) -> list[Event]:
        """Add a piece to the part of a kind, which begins with its first."""
        events: list[Event] = []
        part = self.parts[-1] if self.parts and self.parts[-1].kind == kind else None
        if part is None:
            events += self._end_part()
            part = _Part(kind, "refusal" if kind == "refusal" else "text", index_name, len(self.parts))
            self.parts.append(part)
            events.append({"type": f"{_EVENTS[kind][1]}.added", **self._at(part), "part": part.whole("")})
        part.pieces.append(text)
        part.logprobs += logprobs
        if text:
            delta: Event = {"type": f"{_EVENTS[kind][0]}.delta", **self._at(part), "delta": text}
            events.append(delta | ({"logprobs": list(logprobs)} if kind == "output_text" else {}))
        return events

    def done(self, status: str) -> list[Event]:
        events = self._end_part()
        if self.parts:
            field = "summary" if self.parts[0].kind == "summary_text" else "content"
            self.wire[field] = [part.whole() for part in self.parts]
        self.wire["status"] = status
        events.append({"type": "response.output_item.done", "output_index": self.place, "item": dict(self.wire)})
        return events

    def _end_part(self) -> list[Event]:
        if not self.parts:
            return []
        part = self.parts[-1]
        text, whole = _EVENTS[part.kind]
        body = part.whole()
        said: Event = {"type": f"{text}.done", **self._at(part), part.field: body[part.field]}
        said |= {"logprobs": part.logprobs} if part.kind == "output_text" else {}
        return [said, {"type": f"{whole}.done", **self._at(part), "part": body}]

    def _at(self, part: _Part) -> dict[str, Any]:
        return {**self.where, part.index_name: part.index}


class _Call(_Item):
    """A tool call that is open."""

    def __init__(self, wire: WireItem, place: int, custom: bool) -> None:
        super().__init__(wire, place)
        self._pieces: list[str] = []
        self._reader = InputReader() if custom else None
        self._event = "response.custom_tool_call_input" if custom else "response.function_call_arguments"

    def write(self, arguments: str) -> list[Event]:
        """Add a piece of the arguments."""
        self._pieces.append(arguments)
        text = self._reader.feed(arguments) if self._reader else arguments
        return [{"type": f"{self._event}.delta", **self.where, "delta": text}] if text else []

    def done(self, status: str) -> list[Event]:
        events: list[Event] = []
        field, whole = "arguments", "".join(self._pieces)
        if self._reader:
            field = "input"
            rest, whole = self._reader.end(whole)
            events += [{"type": f"{self._event}.delta", **self.where, "delta": rest}] if rest else []
        self.wire[field] = whole
        said: Event = {"type": f"{self._event}.done", **self.where, field: whole}
        if not self._reader:
            said["name"] = self.wire["name"]
        return [*events, said, *super().done(status)]


class Output:
    """Takes pieces in, gives events out, and keeps the items.

    Attributes:
        items: those that are done, in order, and after `end` all of them.
    """

    def __init__(self, response_id: str, names: Mapping[str, Named], *, summary: bool = False) -> None:
        """
        Args:
            names: by the engine's name of a tool, its client's.
            summary: thoughts are shown as a summary.
        """
        self._id = response_id
        self._names = names
        self._thoughts = ("summary_text", "summary_index") if summary else ("reasoning_text", "content_index")
        self._open: _Item | None = None
        self._count = 0
        self._calls: dict[int, _Call] = {}
        self._early: dict[int, tuple[str, str]] = {}
        self._blank = ""
        self._sealed: str | None = None
        self.items: list[WireItem] = []

    def carry(self, sealed: str | None) -> None:
        """Put this into the first item, which then is reasoning, be it empty."""
        self._sealed = sealed

    def add(self, delta: Delta) -> list[Event]:
        """The events of a piece."""
        events: list[Event] = []
        if delta.reasoning:
            events += self._grow("reasoning", *self._thoughts, delta.reasoning, ())
        if delta.text or delta.logprobs:
            events += self._text(delta.text, _logprobs(delta.logprobs))
        if delta.refusal:
            events += self._grow("message", "refusal", "content_index", delta.refusal, ())
        for call in delta.calls:
            events += self._call(call)
        return events

    def end(self, status: str) -> list[Event]:
        """End what is open with this status. An answer that said nothing is an empty message."""
        events: list[Event] = []
        for index in list(self._early):
            events += self._open_call(index, "")
        said = any(item["type"] == "message" for item in self.items) or self._is_open("message")
        if not (said or self._calls):
            events += self._grow("message", "output_text", "content_index", self._blank, ())
        return events + self._close(status)

    def snapshot(self) -> list[WireItem]:
        """All items so far; what is open is incomplete. Nothing can be added afterwards."""
        self._close("incomplete")
        return self.items

    def _text(self, text: str, logprobs: Sequence[dict[str, Any]]) -> list[Event]:
        if not self._is_open("message") and not text.strip():
            self._blank += text
            return []
        text, self._blank = self._blank + text, ""
        return self._grow("message", "output_text", "content_index", text, logprobs)

    def _grow(
        self, kind: str, part: str, index_name: str, text: str, logprobs: Sequence[dict[str, Any]]
    ) -> list[Event]:
        events: list[Event] = []
        if not self._is_open(kind):
            blank: WireItem = {"role": "assistant", "content": []} if kind == "message" else {"summary": []}
            if kind == "reasoning" and part == "reasoning_text":
                blank["content"] = []
            events += [] if kind == "reasoning" else self._seal()
            events += self._begin(lambda place: _Item(self._wire(kind, place, blank), place))
        assert self._open is not None
        return events + self._open.grow(part, text, logprobs, index_name)

    def _is_open(self, kind: str) -> bool:
        return self._open is not None and self._open.wire["type"] == kind

    def _begin(self, make: Callable[[int], _Item]) -> list[Event]:
        events = self._close("completed")
        self._open = make(self._count)
        self._count += 1
        return [*events, self._open.added()]

    def _seal(self) -> list[Event]:
        """An item for what is to be carried, where no thoughts carry it."""
        if self._sealed is None or self._is_open("reasoning"):
            return []
        events = self._begin(lambda place: _Item(self._wire("reasoning", place, {"summary": []}), place))
        return events + self._close("completed")

    def _close(self, status: str) -> list[Event]:
        if self._open is None:
            return []
        if self._sealed is not None and self._open.wire["type"] == "reasoning":
            self._open.wire["encrypted_content"], self._sealed = self._sealed, None
        events = self._open.done(status)
        self.items.append(self._open.wire)
        self._open = None
        return events

    def _wire(self, kind: str, place: int, fields: WireItem) -> WireItem:
        name = item_id(kind, self._id, OUTPUT_PLACES + place)
        return {"type": kind, "id": name, "status": "in_progress", **fields}

    def _call(self, delta: CallDelta) -> list[Event]:
        call = self._calls.get(delta.index)
        if call is not None:
            # An engine may go back to an earlier call; what was closed takes no more.
            return call.write(delta.arguments) if call is self._open else []
        call_id, arguments = self._early.get(delta.index, ("", ""))
        self._early[delta.index] = (call_id or delta.call_id or "", arguments + delta.arguments)
        return self._open_call(delta.index, delta.name) if delta.name else []

    def _open_call(self, index: int, name: str) -> list[Event]:
        call_id, arguments = self._early.pop(index)
        named = self._names.get(name, Named(name))
        custom = named.kind == "custom"
        kind = "custom_tool_call" if custom else "function_call"

        def make(place: int) -> _Item:
            fields: WireItem = {
                "call_id": call_id or item_id("call", self._id, OUTPUT_PLACES + place),
                "name": named.name,
                ("input" if custom else "arguments"): "",
            }
            if named.namespace is not None:
                fields["namespace"] = named.namespace
            self._calls[index] = _Call(self._wire(kind, place, fields), place, custom)
            return self._calls[index]

        events = self._seal() + self._begin(make)
        return events + self._calls[index].write(arguments) if arguments else events


def deltas_of(answer: Answer) -> list[Delta]:
    """A whole answer as the pieces it could have come in."""
    deltas = [
        Delta(reasoning=answer.reasoning),
        Delta(text=answer.text, logprobs=answer.logprobs),
        Delta(refusal=answer.refusal),
    ]
    calls = (CallDelta(index, call.call_id, call.name, call.arguments) for index, call in enumerate(answer.calls))
    return [*deltas, *(Delta(calls=(call,)) for call in calls)]


def _logprobs(logprobs: dict[str, Any] | None) -> list[dict[str, Any]]:
    content = (logprobs or {}).get("content")
    return [_logprob(entry) for entry in content] if isinstance(content, list) else []


def _logprob(entry: Any) -> dict[str, Any]:
    top = entry.get("top_logprobs")
    return {
        **_token(entry),
        "top_logprobs": [_token(other) for other in top] if isinstance(top, list) else [],
    }


def _token(entry: Any) -> dict[str, Any]:
    token = str(entry.get("token", ""))
    spelled = entry.get("bytes")
    return {
        "token": token,
        "logprob": entry.get("logprob", 0.0),
        "bytes": spelled if isinstance(spelled, list) else list(token.encode()),
    }
