"""Anthropic Messages answers: whole ones. Pure: neutral answers in, bytes out.

`usage` counts the answer hop in the public fields, cached tokens apart; `usage.hops` says what each hop before the
terminal event cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from macaron.conversation import Answer, Hop, ToolCall, Usage
from macaron.wire.messages import UNPARSED

SIGNATURE = "unsigned"
"""Stands where clients expect a signature of thoughts, which is not looked at when they come back."""

STOP_REASONS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def usage_object(usage: Usage, hops: Sequence[Hop] = ()) -> dict[str, Any]:
    """The `usage` of an answer."""
    cached = min(usage.cached, usage.prompt)
    return {
        "input_tokens": usage.prompt - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.completion,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "hops": {hop.kind: {"input_tokens": hop.usage.prompt, "output_tokens": hop.usage.completion} for hop in hops},
    }


def stop_reason(answer: Answer) -> str:
    """Why an answer ended. Engines do not say which of the stop sequences was met, so that is the end of the turn."""
    if answer.refusal:
        return "refusal"
    if answer.calls and answer.finish == "stop":
        return "tool_use"
    return STOP_REASONS.get(answer.finish, "end_turn")


def message_start(message_id: str, model: str) -> dict[str, Any]:
    """A message that has not begun; how long its prompt was is known at its end."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {name: count for name, count in usage_object(Usage()).items() if name != "hops"},
    }


def message(message_id: str, model: str, answer: Answer, usage: dict[str, Any], *, thinking: bool) -> bytes:
    """A `message` object; `thinking` says whether the client is shown the thoughts."""
    body = message_start(message_id, model)
    body["content"] = _content(answer, thinking)
    body["stop_reason"] = stop_reason(answer)
    body["usage"] = usage
    return msgspec.json.encode(body)


def call_input(arguments: str) -> msgspec.Raw:
    """The `input` of a call: its arguments as the model wrote them, if they are an object."""
    text = arguments.strip() or "{}"
    if is_object(text):
        return msgspec.Raw(text.encode())
    return msgspec.Raw(msgspec.json.encode({UNPARSED: arguments}))


def is_object(arguments: str) -> bool:
    """Whether the text is a JSON object."""
    try:
        return isinstance(msgspec.json.decode(arguments), dict)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False


def _content(answer: Answer, thinking: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if thinking and answer.reasoning:
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": SIGNATURE})
    text = answer.text + answer.refusal
    if text:
        blocks.append({"type": "text", "text": text})
    return [*blocks, *map(_tool_use, answer.calls)]


def _tool_use(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.call_id, "name": call.name, "input": call_input(call.arguments)}
