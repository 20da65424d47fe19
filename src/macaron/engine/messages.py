"""Items as the messages engines read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from macaron.conversation import Item, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, text_of
from macaron.engine.base import ChatMessage


def messages_from_items(items: Sequence[Item], *, reasoning: bool = False) -> list[ChatMessage]:
    """The messages of one block of items; what the model said in one go becomes one message.

    Items of unknown kind cannot be shown to an engine of this dialect and are left out of the prompt.
    """
    messages: list[ChatMessage] = []
    for item in items:
        match item:
            case Message(role, parts, extra):
                # Templates know no developers: unless one has a branch for them, their words would vanish.
                said_by = "system" if role == "developer" else role
                messages.append({"role": said_by, "content": _content(parts), **extra})
            case ToolResult(call_id, parts):
                messages.append({"role": "tool", "tool_call_id": call_id, "content": _content(parts)})
            case ToolCall():
                _assistant(messages).setdefault("tool_calls", []).append(_call(item))
            case Reasoning(text):
                if reasoning:
                    messages.append({"role": "assistant", "content": None, "reasoning_content": text})
            case Opaque():
                pass
    return _join_reasoning(messages) if reasoning else messages


def _assistant(messages: list[ChatMessage]) -> ChatMessage:
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    return messages[-1]


def _join_reasoning(messages: list[ChatMessage]) -> list[ChatMessage]:
    joined: list[ChatMessage] = []
    for message in messages:
        last = joined[-1] if joined else None
        if last and message["role"] == last["role"] == "assistant" and _only_reasoning(last):
            thoughts = [last["reasoning_content"], message.get("reasoning_content")]
            joined[-1] = {**message, "reasoning_content": "\n".join(filter(None, thoughts))}
        else:
            joined.append(message)
    return joined


def _only_reasoning(message: ChatMessage) -> bool:
    return message.get("content") is None and "reasoning_content" in message and "tool_calls" not in message


def _content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    if any(isinstance(part, Media) for part in parts):
        return [{"type": "text", "text": part.text} if isinstance(part, Text) else part.raw for part in parts]
    return text_of(parts)


def _call(call: ToolCall) -> dict[str, Any]:
    body = {"name": call.name, ("input" if call.kind == "custom" else "arguments"): call.arguments}
    return {"id": call.call_id, "type": call.kind, call.kind: body}
