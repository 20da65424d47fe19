"""Responses answers: the response object, and the events of a stream. Pure: neutral events in, bytes out.

The id is the same from the first event to the last, and the sequence numbers count up from 0. `usage` counts the answer
hop in the public fields; `usage.hops` says what each hop before the terminal event cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from macaron.conversation import Answer, Delta, Hop, Usage
from macaron.errors import Busy, ContextOverflow, MacaronError
from macaron.wire.chat_answer import coalesce
from macaron.wire.errors import MAX_MESSAGE, openai_error
from macaron.wire.responses_items import WireItem
from macaron.wire.responses_output import Event, Output, deltas_of
from macaron.wire.responses_tools import Named
from macaron.wire.sse import DONE

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}

Body = dict[str, Any]
"""A response object."""


class About(Struct, frozen=True):
    """What a response object says of its request.

    Attributes:
        created: Unix time in seconds.
        store: whether it is kept.
        echo: what it repeats of the request.
        names: by the engine's name of a tool, its client's.
        summary: thoughts are shown as a summary.
    """

    id: str
    created: int
    model: str
    echo: dict[str, Any]
    store: bool
    background: bool = False
    previous: str | None = None
    conversation: str | None = None
    names: dict[str, Named] = {}
    summary: bool = False

    def body(self, status: str, output: Sequence[WireItem] = (), **fields: Any) -> Body:
        """The response object."""
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "completed_at": None,
            "status": status,
            "background": self.background,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": list(output),
            "previous_response_id": self.previous,
            "conversation": None if self.conversation is None else {"id": self.conversation},
            "service_tier": "default",
            "store": self.store,
            "usage": None,
            **self.echo,
            **fields,
        }


def usage_object(usage: Usage, hops: Sequence[Hop] = ()) -> dict[str, Any]:
    """The `usage` of a response."""
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
        "hops": {hop.kind: {"input_tokens": hop.usage.prompt, "output_tokens": hop.usage.completion} for hop in hops},
    }


def failure(error: MacaronError) -> dict[str, Any]:
    """The `error` of a response that failed. Its codes are few; clients compact their history on the first."""
    if isinstance(error, ContextOverflow):
        code = "context_length_exceeded"
    elif isinstance(error, Busy):
        code = "rate_limit_exceeded"
    else:
        code = "server_error" if error.status >= 500 else "invalid_prompt"
    return {"code": code, "message": error.message[:MAX_MESSAGE]}


class ResponseStream:
    """Writes one response: its events where it is streamed, its object in any case."""

    def __init__(self, about: About) -> None:
        self._about = about
        self._output = Output(about.id, about.names, summary=about.summary)
        self._sequence = 0

    def carry(self, sealed: str | None) -> None:
        """Have the response carry what its client keeps for us; before its first piece."""
        self._output.carry(sealed)

    def queued(self) -> list[bytes]:
        """The first events of a response that waits in the background."""
        body = self._about.body("queued")
        return self._encode([{"type": f"response.{name}", "response": body} for name in ("created", "queued")])

    def begin(self) -> list[bytes]:
        """The events before the first piece."""
        body = self._about.body("in_progress")
        names = ("in_progress",) if self._sequence else ("created", "in_progress")
        return self._encode([{"type": f"response.{name}", "response": body} for name in names])

    def chunks(self, deltas: Sequence[Delta]) -> list[bytes]:
        """The events for pieces that arrived together; neighbouring plain texts become one."""
        events: list[Event] = []
        for delta in coalesce(deltas) if len(deltas) > 1 else deltas:
            events += self._output.add(delta)
        return self._encode(events)

    def finish(self, answer: Answer, usage: dict[str, Any], completed: int) -> tuple[list[bytes], Body]:
        """The events that end the items, and the finished response object."""
        reason = _INCOMPLETE.get(answer.finish)
        status = "incomplete" if reason else "completed"
        events = self._encode(self._output.end(status))
        details = {"incomplete_details": {"reason": reason}} if reason else {"completed_at": completed}
        return events, self._about.body(status, self._output.items, usage=usage, **details)

    def whole(self, answer: Answer, usage: dict[str, Any], completed: int) -> Body:
        """The response object of an answer that was not streamed."""
        for delta in deltas_of(answer):
            self._output.add(delta)
        return self.finish(answer, usage, completed)[1]

    def failed(self, error: MacaronError) -> Body:
        """The response object of an answer that did not end, with what there is of it."""
        return self._about.body("failed", self._output.snapshot(), error=failure(error))

    def cancelled(self) -> Body:
        """The response object of an answer that was cancelled, with what there is of it."""
        return self._about.body("cancelled", self._output.snapshot())

    def terminal(self, body: Body) -> list[bytes]:
        """The last event, which says that the response is what it will always be."""
        return self._encode([{"type": f"response.{body['status']}", "response": body}])

    def _encode(self, events: Sequence[Event]) -> list[bytes]:
        return [self._event(event) for event in events]

    def _event(self, event: Event) -> bytes:
        kind = event["type"]
        data = msgspec.json.encode({"type": kind, "sequence_number": self._sequence, **event})
        self._sequence += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def error_events(error: MacaronError) -> bytes:
    """The end of a stream that broke where no response object can be told any more."""
    told = openai_error(error)["error"]
    data = msgspec.json.encode({"type": "error", "sequence_number": 0, **told, "error": told})
    return b"event: error\ndata: %b\n\n" % data + DONE
