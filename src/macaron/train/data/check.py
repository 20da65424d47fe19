"""What a row must be beyond the types of its fields. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import msgspec

from macaron.hcp.checks import LABEL
from macaron.train.data.rows import AnyRow, PreferenceRow, RouteRow, SftRow

MAX_ROW = 1_048_576
MAX_NAME = 256
_ROLES = ("system", "developer", "user", "assistant", "tool")
_KEYS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")

Message = Mapping[str, Any]


def row_problem(row: AnyRow) -> str:
    """The first thing that is wrong with a row, with its place; empty if nothing is."""
    return next(_problems(row), "")


def _problems(row: AnyRow) -> Iterator[str]:
    for name in ("id", "source"):
        if not 0 < len(getattr(row, name)) <= MAX_NAME:
            yield f"{name} must have 1 to {MAX_NAME} characters, it has {len(getattr(row, name))}"
    if len(row.group) > MAX_NAME:
        yield f"group must have at most {MAX_NAME} characters, it has {len(row.group)}"
    if not _LANGUAGE.fullmatch(row.language):
        yield f"language {_shown(row.language)} is not a tag such as en or zh-Hans"
    match row:
        case SftRow():
            yield from _tools(row.tools)
            yield from _conversation(row.messages, "messages", ends=("assistant",))
            if not 0 <= row.given < len(row.messages):
                yield f"given is {row.given}; at least one of the {len(row.messages)} messages is left to learn"
        case PreferenceRow():
            yield from _preference(row)
        case RouteRow():
            if not LABEL.fullmatch(row.label):
                yield f"label {_shown(row.label)} is not a label such as L2"
            yield from _conversation(row.messages, "messages", ends=("user",), labelled=True)


def _preference(row: PreferenceRow) -> Iterator[str]:
    yield from _tools(row.tools)
    yield from _conversation(row.prompt, "prompt", ends=("user", "tool"))
    known = {call["id"] for message in row.prompt for call in message.get("tool_calls") or ()}
    yield from _conversation(row.chosen, "chosen", ends=("assistant",), known=known)
    yield from _conversation(row.rejected, "rejected", ends=("assistant",), known=known)
    if row.chosen == row.rejected:
        yield "chosen and rejected are the same"


def _conversation(
    messages: Sequence[Message],
    place: str,
    *,
    ends: tuple[str, ...],
    labelled: bool = False,
    known: Set[str] = frozenset(),
) -> Iterator[str]:
    if not messages:
        yield f"{place} is empty"
        return
    calls = set(known)
    for index, message in enumerate(messages):
        at = f"{place}[{index}]"
        yield from _message(message, at, labelled)
        answered = message.get("tool_call_id")
        if message["role"] == "tool" and not (isinstance(answered, str) and answered in calls):
            yield f"{at}.tool_call_id {_shown(answered)} is no id of an earlier call"
        calls.update(call["id"] for call in message.get("tool_calls") or ())
    role = messages[-1]["role"]
    if role not in ends:
        yield f"{place} must end with a message of {' or '.join(ends)}, it ends with one of {role}"


def _message(message: Message, at: str, labelled: bool) -> Iterator[str]:
    role = message.get("role")
    if role not in _ROLES:
        yield f"{at}.role {_shown(role)} is not one of {', '.join(_ROLES)}"
    known = _KEYS | {"label"} if labelled and role == "assistant" else _KEYS
    for key in message:
        if key not in known:
            yield f"{at} has the unknown key {_shown(key)}"
    content, calls = message.get("content"), message.get("tool_calls")
    if not isinstance(content, str) and not (content is None and role == "assistant" and calls):
        yield f"{at}.content must be text, it is {_kind(content)}"
    if not isinstance(message.get("name", ""), str):
        yield f"{at}.name must be text, it is {_kind(message['name'])}"
    if "label" in message and not (isinstance(message["label"], str) and LABEL.fullmatch(message["label"])):
        yield f"{at}.label {_shown(message['label'])} is not a label such as L2"
    if calls is not None:
        yield from _calls(calls, role, at)


def _calls(calls: Any, role: Any, at: str) -> Iterator[str]:
    if role != "assistant":
        yield f"{at} has tool_calls, which only an assistant message may have"
    if not isinstance(calls, list | tuple):
        yield f"{at}.tool_calls must be a list, it is {_kind(calls)}"
        return
    for index, call in enumerate(calls):
        place = f"{at}.tool_calls[{index}]"
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or call.get("type") != "function":
            yield f'{place} must be an object with type "function" and a function'
            return
        if not _is_name(call.get("id")):
            yield f"{place}.id must be text of 1 to {MAX_NAME} characters"
        if not _is_name(function.get("name")):
            yield f"{place}.function.name must be text of 1 to {MAX_NAME} characters"
        yield from _arguments(function.get("arguments"), f"{place}.function.arguments")


def _arguments(arguments: Any, place: str) -> Iterator[str]:
    if not isinstance(arguments, str):
        yield f"{place} must be JSON text, it is {_kind(arguments)}; encode it"
        return
    try:
        decoded = msgspec.json.decode(arguments)
    except (ValueError, RecursionError) as error:
        yield f"{place} is not JSON: {error}"
        return
    if not isinstance(decoded, dict):
        yield f"{place} must hold an object, it holds {_kind(decoded)}"


def _tools(tools: Sequence[Message]) -> Iterator[str]:
    names: set[str] = set()
    for index, tool in enumerate(tools):
        function = tool.get("function")
        if tool.get("type") != "function" or not isinstance(function, Mapping) or not _is_name(function.get("name")):
            yield f'tools[{index}] must have type "function" and a function with a name'
            return
        if not isinstance(function.get("parameters", {}), Mapping):
            yield f"tools[{index}].function.parameters must be a JSON schema"
        if function["name"] in names:
            yield f"tools[{index}].function.name {_shown(function['name'])} is there twice"
        names.add(function["name"])


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME


def _kind(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "a boolean"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case Mapping():
            return "an object"
        case _:
            return "a list"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
