"""How a tool row is put together: compact tools, calls with their arguments in the schema's order, and messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

_FIRST_SENTENCE = re.compile(r"\A(.{8,}?(?<!e\.g)(?<!i\.e)[.!?])(?:\s|\Z)", re.DOTALL)


class ToolUse(NamedTuple):
    """One call that is right: the function's name and its arguments by parameter."""

    name: str
    arguments: Mapping[str, Any]


def function_tool(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A function tool in the Chat Completions shape."""
    function = {"name": name, "description": description, "parameters": dict(parameters)}
    return {"type": "function", "function": function}


def user(content: str) -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def calls(uses: Sequence[ToolUse], tools: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """An assistant message of calls; each one's arguments are JSON text in its tool's order of properties."""
    orders = {tool["function"]["name"]: list(tool["function"]["parameters"].get("properties", ())) for tool in tools}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{at}",
                "type": "function",
                "function": {"name": use.name, "arguments": _in_order(use.arguments, orders[use.name])},
            }
            for at, use in enumerate(uses)
        ],
    }


def result(content: Any, at: int = 0) -> dict[str, Any]:
    """What a tool returned for the call at this place, as compact JSON."""
    return {"role": "tool", "tool_call_id": f"call_{at}", "content": json.dumps(content, ensure_ascii=False)}


def compact(schema: Mapping[str, Any], *, width: int, full: bool = False) -> dict[str, Any]:
    """A JSON schema with what a call needs: types, values and descriptions of at most about `width` characters.

    Args:
        full: whether descriptions go on after their first sentence, and the values of what is left out are told.
    """
    wanted = ("type", "enum", "default") if full else ("type", "enum")
    kept = {key: schema[key] for key in wanted if key in schema}
    if isinstance(description := schema.get("description"), str) and width:
        kept["description"] = shorten(description, width, full=full)
    if "properties" in schema:
        kept["properties"] = {
            name: compact(each, width=width, full=full) for name, each in schema["properties"].items()
        }
        kept["required"] = list(schema.get("required", ()))
    if "items" in schema:
        kept["items"] = compact(schema["items"], width=width, full=full)
    return kept


def shorten(text: str, width: int, *, full: bool = False) -> str:
    """The first sentence of `text`, or all of it, or its first words where that is longer than `width` characters."""
    first = None if full else _FIRST_SENTENCE.match(text)
    sentence = " ".join((first[1] if first else text).split())
    if len(sentence) <= width:
        return sentence
    return sentence[: max(sentence.rfind(" ", 0, width), 1)].rstrip(",;:(. ") + "."


def _in_order(arguments: Mapping[str, Any], order: Sequence[str]) -> str:
    known = sorted(arguments, key=lambda name: order.index(name) if name in order else len(order))
    return json.dumps({name: arguments[name] for name in known}, ensure_ascii=False)
