"""Chat Completions answers: whole ones, and streams of chunks. Pure: neutral events in, bytes out.

`usage` counts the answer hop in the public fields; `usage.hops` says what each hop before the terminal event cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from macaron.conversation import Answer, CallDelta, Delta, Finish, Hop, ToolCall, Usage
from macaron.errors import MacaronError
from macaron.wire.errors import openai_error
from macaron.wire.sse import DONE, event

Metadata = Mapping[str, str] | None


def usage_object(usage: Usage, hops: Sequence[Hop] = ()) -> dict[str, Any]:
    """The `usage` of an answer."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        "hops": {
            hop.kind: {"prompt_tokens": hop.usage.prompt, "completion_tokens": hop.usage.completion} for hop in hops
        },
    }


def completion(
    response_id: str,
    created: int,
    model: str,
    answers: Sequence[Answer],
    usage: dict[str, Any],
    metadata: Metadata = None,
) -> bytes:
    """A `chat.completion` object."""
    body: dict[str, Any] = {
        "id": response_id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [_choice(answer) for answer in answers],
        "usage": usage,
    }
    if metadata is not None:
        body["metadata"] = metadata
    return msgspec.json.encode(body)


def _choice(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text if answer.text or not (answer.calls or answer.refusal) else None,
        "refusal": answer.refusal or None,
    }
    if answer.reasoning:
        message["reasoning_content"] = message["reasoning"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [_call(call) for call in answer.calls]
    return {
        "index": answer.choice,
        "message": message,
        "logprobs": answer.logprobs,
        "finish_reason": answer.finish,
    }


def _call(call: ToolCall) -> dict[str, Any]:
    body = {"name": call.name, ("input" if call.kind == "custom" else "arguments"): call.arguments}
    return {"id": call.call_id, "type": call.kind, call.kind: body}


class ChatStream:
    """Writes the chunks of one streamed answer.

    The constant part of a chunk is rendered once, since a chunk costs little else.
    """

    def __init__(
        self, response_id: str, created: int, model: str, *, include_usage: bool = False, metadata: Metadata = None
    ) -> None:
        head = {"id": response_id, "object": "chat.completion.chunk", "created": created, "model": model}
        if metadata is not None:
            head["metadata"] = metadata
        self._head = b"data: " + msgspec.json.encode(head)[:-1]
        self._tail = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._include_usage = include_usage
        # By choice that has begun: a chunk with nothing but text is three pieces put together, in half the time.
        self._before_text: dict[int, bytes] = {}
        self._after_text = b'},"logprobs":null,"finish_reason":null}]' + self._tail

    def chunks(self, deltas: Sequence[Delta]) -> bytes:
        """The chunks for deltas that arrived together; neighbouring plain texts of one choice become one chunk."""
        if len(deltas) == 1:
            return self._chunk(deltas[0])
        return b"".join(self._chunk(delta) for delta in coalesce(deltas))

    def finish(self, finishes: Sequence[Finish], usage: dict[str, Any]) -> bytes:
        """The terminal chunks, the usage chunk where the client wants it, and the end of the stream."""
        parts = [
            self._begin(item.choice) + self._choice(item.choice, b"{}", b"null", msgspec.json.encode(item.reason))
            for item in finishes
        ]
        if self._include_usage:
            parts.append(self._head + b',"choices":[],"usage":' + msgspec.json.encode(usage) + b"}\n\n")
        return b"".join((*parts, DONE))

    def error(self, error: MacaronError) -> bytes:
        """An error event, and after it a finish, because some clients read on for ever without one."""
        choices = sorted(self._before_text) or [0]
        finishes = b"".join(self._choice(choice, b"{}", b"null", b'"error"') for choice in choices)
        return event(msgspec.json.encode(openai_error(error))) + finishes + DONE

    def _chunk(self, delta: Delta) -> bytes:
        before = self._before_text.get(delta.choice)
        if before is not None and delta.logprobs is None and _plain(delta):
            return before + msgspec.json.encode(delta.text) + self._after_text
        logprobs = b"null" if delta.logprobs is None else msgspec.json.encode(delta.logprobs)
        return self._begin(delta.choice) + self._choice(delta.choice, _delta(delta), logprobs, b"null")

    def _begin(self, choice: int) -> bytes:
        """The chunk that a choice begins with, nothing where it has begun."""
        if choice in self._before_text:
            return b""
        self._before_text[choice] = b'%b,"choices":[{"index":%d,"delta":{"content":' % (self._head, choice)
        return self._choice(choice, b'{"role":"assistant","content":""}', b"null", b"null")

    def _choice(self, choice: int, delta: bytes, logprobs: bytes, finish: bytes) -> bytes:
        return b'%b,"choices":[{"index":%d,"delta":%b,"logprobs":%b,"finish_reason":%b}]%b' % (
            self._head,
            choice,
            delta,
            logprobs,
            finish,
            self._tail,
        )


def coalesce(deltas: Sequence[Delta]) -> list[Delta]:
    """Join neighbouring deltas of one choice that carry nothing but text."""
    joined: list[Delta] = []
    for delta in deltas:
        last = joined[-1] if joined else None
        if last is not None and last.choice == delta.choice and _plain(last) and _plain(delta):
            joined[-1] = Delta(delta.choice, last.text + delta.text)
        else:
            joined.append(delta)
    return joined


def _plain(delta: Delta) -> bool:
    return not (delta.reasoning or delta.refusal or delta.calls or delta.logprobs)


def _delta(delta: Delta) -> bytes:
    if _plain(delta):
        return b'{"content":%b}' % msgspec.json.encode(delta.text)
    body: dict[str, Any] = {}
    if delta.text:
        body["content"] = delta.text
    if delta.reasoning:
        body["reasoning_content"] = body["reasoning"] = delta.reasoning
    if delta.refusal:
        body["refusal"] = delta.refusal
    if delta.calls:
        body["tool_calls"] = [_call_delta(call) for call in delta.calls]
    return msgspec.json.encode(body)


def _call_delta(call: CallDelta) -> dict[str, Any]:
    function: dict[str, Any] = {"arguments": call.arguments}
    body: dict[str, Any] = {"index": call.index, "function": function}
    if call.name is not None:
        function["name"] = call.name
    if call.call_id is not None:
        body |= {"id": call.call_id, "type": "function"}
    return body
