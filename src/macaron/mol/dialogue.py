"""What a route hop asks about a conversation that is given as messages in the Chat Completions shape. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from macaron.conversation import Item, Message, Part, Text, ToolResult
from macaron.engine.base import ChatMessage
from macaron.mol.prompt import question_messages
from macaron.mol.route import CONTEXT_TURNS, RouteTemplate, context_lines, question, request_text


def route_messages(
    template: RouteTemplate, messages: Sequence[ChatMessage], names: Mapping[str, str], *, entry: str, context: bool
) -> list[ChatMessage]:
    """The messages of a route hop for a conversation that ends with the request.

    Args:
        names: what every label of the rows is called in this question.
        entry: the label that answered where a message says none.
        context: whether the profile shows the past.
    """
    past, request = _divided(messages)
    lines = ""
    if context:
        said = [(names[label], text) for label, text in _turns(past, entry)[-CONTEXT_TURNS:]]
        lines = context_lines(said, template.input_tokens)
    return question_messages(question(template, request_text(_items(request)), lines))


def _divided(messages: Sequence[ChatMessage]) -> tuple[Sequence[ChatMessage], Sequence[ChatMessage]]:
    """What came before the request, and the request: all that follows the last thing the model said."""
    cut = max((at + 1 for at, message in enumerate(messages) if message.get("role") == "assistant"), default=0)
    return messages[:cut], messages[cut:]


def labels_in(messages: Sequence[ChatMessage], entry: str) -> set[str]:
    """The labels that answered in a conversation."""
    return {label for label, _ in _turns(messages, entry)}


def _turns(messages: Sequence[ChatMessage], entry: str) -> list[tuple[str, str]]:
    """Label and last words of every earlier turn; the results of tools go on with a turn, words of the user do not."""
    turns: list[tuple[str, str]] = []
    asked = True
    for message in messages:
        match message.get("role"):
            case "user":
                asked = True
            case "assistant":
                said = (str(message.get("label") or entry), _plain(message.get("content")))
                turns[len(turns) if asked else -1 :] = [said]
                asked = False
    return turns


def _items(messages: Sequence[ChatMessage]) -> list[Item]:
    items: list[Item] = []
    for message in messages:
        match message.get("role"):
            case "user":
                items.append(Message("user", _parts(message.get("content"))))
            case "tool":
                items.append(ToolResult(str(message.get("tool_call_id", "")), _parts(message.get("content"))))
    return items


def _parts(content: Any) -> tuple[Part, ...]:
    """The content of a row's message, which is text or nothing."""
    return (Text(content),) if isinstance(content, str) else ()


def _plain(content: Any) -> str:
    return content if isinstance(content, str) else ""
