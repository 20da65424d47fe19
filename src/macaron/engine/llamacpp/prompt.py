"""From chat messages to what the embedded engine is sent: text only, a system message first, calls written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from macaron.engine.base import ChatMessage
from macaron.engine.llamacpp.grammar import CALL_CLOSE, CALL_OPEN
from macaron.errors import BadRequest

# Without one, a template adds a system message of its own, which small models answer in odd ways.
DEFAULT_SYSTEM: ChatMessage = {"role": "system", "content": "You are a helpful assistant."}
LEADING = ("system", "developer")


def plain_messages(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages with `role` and text `content` only.

    Calls are written into the content here and not by the template, so that their arguments reach the model byte for
    byte as it wrote them, also where they are not JSON.

    Raises:
        BadRequest: a part is not text, or a message has no shape this engine can show.
    """
    plain = [{"role": _role(message, at), "content": _content(message, at)} for at, message in enumerate(messages)]
    return plain if plain and plain[0]["role"] in LEADING else [DEFAULT_SYSTEM, *plain]


def _role(message: ChatMessage, at: int) -> str:
    match message.get("role"):
        case "system" | "developer" | "user" | "assistant" | "tool" as role:
            return str(role)
        case other:
            raise BadRequest(
                f"Role {other!r} is not one of system, developer, user, assistant, tool.", param=f"messages.{at}.role"
            )


def _content(message: ChatMessage, at: int) -> str:
    text = _text(message.get("content"), at)
    calls = message.get("tool_calls")
    if not calls:
        return text
    return "\n".join([*([text] if text else []), *(_written(call, at) for call in calls)])


def _text(content: Any, at: int) -> str:
    match content:
        case str():
            return content
        case None:
            return ""
        case list() | tuple():
            return "\n".join(_part(part, at, place) for place, part in enumerate(content))
        case _:
            raise BadRequest(
                f"Content of type {type(content).__name__} cannot be shown to the model; send text.",
                param=f"messages.{at}.content",
            )


def _part(part: Any, at: int, place: int) -> str:
    match part:
        case str():
            return part
        case {"text": str(text), **rest} if rest.get("type", "text") in ("text", "input_text", "output_text"):
            return text
        case {"type": "refusal", "refusal": str(text)}:
            return text
        case _:
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise BadRequest(
                f"The model reads text only; a part of type {kind!r} cannot be shown to it.",
                param=f"messages.{at}.content.{place}",
                code="unsupported_content",
            )


def _written(call: Any, at: int) -> str:
    match call:
        case {"function": {"name": str(name), "arguments": str(arguments)}}:
            return f'{CALL_OPEN}{{"name": {_json(name)}, "arguments": {arguments or "{}"}}}{CALL_CLOSE}'
        case {"custom": {"name": str(name), "input": str(text)}}:
            return f'{CALL_OPEN}{{"name": {_json(name)}, "arguments": {_json(text)}}}{CALL_CLOSE}'
        case _:
            raise BadRequest(
                "A tool call has a `function` with `name` and `arguments`, both text.",
                param=f"messages.{at}.tool_calls",
            )


def pieces(messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """The prompt cut where it can be extended: the tools, which stand in its head, and then each message."""
    return [msgspec.json.encode(tools), *map(msgspec.json.encode, messages)]


def _json(text: str) -> str:
    return msgspec.json.encode(text).decode()
