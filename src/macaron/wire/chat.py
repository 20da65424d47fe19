"""Chat Completions requests, as neutral items. Pure: bytes and objects in, objects out.

Every public field is honoured, passed to the engine, or refused by its name.
"""

from __future__ import annotations

from typing import Any

from macaron.conversation import Item, Media, Message, Part, Reasoning, Text, ToolCall, ToolResult
from macaron.errors import BadRequest
from macaron.wire.chat_options import INERT, REFUSED, client_metadata, end_user, engine_options, usage_wanted
from macaron.wire.fields import (
    array,
    boolean,
    decode_object,
    integer,
    kind_of,
    mapping,
    one_of,
    refuse,
    refuse_rest,
    refuse_unknown,
    required,
    short,
    string,
    take,
)
from macaron.wire.parts import MEDIA_FIELDS, TurnParts, leading_system

MAX_CHOICES = 16
CALL_FIELDS = ("id", "type", "function", "custom", "index")
"""`index` is left over in calls that a client put together from a stream."""

TEXT_FIELDS = ("type", "text", "refusal", "cache_control", "prompt_cache_breakpoint")
"""The last two say where a prompt may be cached, which no answer depends on."""

ROLES = ("system", "developer", "user", "assistant", "tool")


class ChatRequest(TurnParts, frozen=True):
    """A Chat Completions request. `include_usage`: whether a stream ends with a usage chunk."""

    include_usage: bool = False


def chat_request(body: bytes) -> ChatRequest:
    """Read a request body.

    Raises:
        BadRequest: with the path of the field at fault.
    """
    fields = decode_object(body)
    stream = take(fields, "stream", boolean, False)
    options = engine_options(fields)
    messages = required(fields, "messages")
    items = _items(array(messages, "messages"))
    split = leading_system(items)
    tools = options.pop("tools", ())
    metadata = client_metadata(fields)
    request = ChatRequest(
        model=string(required(fields, "model"), "model"),
        system=tuple(item for item in items[:split] if isinstance(item, Message)),
        items=tuple(items[split:]),
        tools=tuple(tools),
        options=options,
        stream=stream,
        include_usage=usage_wanted(fields, stream),
        n=take(fields, "n", lambda value, path: integer(value, path, 1, MAX_CHOICES), 1),
        user=end_user(fields, metadata),
    )
    # A hint for whoever spreads requests over engines; here a prompt's prefix is found without it.
    take(fields, "prompt_cache_key", short, "")
    refuse_rest(fields, INERT, REFUSED)
    return request


def _items(messages: list[Any]) -> list[Item]:
    if not messages:
        raise BadRequest("`messages` must not be empty.", param="messages", code="empty_array")
    items: list[Item] = []
    for index, raw in enumerate(messages):
        path = f"messages[{index}]"
        message = dict(mapping(raw, path))
        role = one_of(message.pop("role", None), f"{path}.role", ROLES)
        match role:
            case "assistant":
                items += _assistant(message, path)
            case "tool":
                call_id = string(message.pop("tool_call_id", None), f"{path}.tool_call_id")
                items.append(ToolResult(call_id, _parts(message.pop("content", None), f"{path}.content")))
            case "system" | "developer" | "user":
                content = message.pop("content", None)
                items.append(Message(role, _parts(content, f"{path}.content"), _name(message, path)))
        _refuse_message_rest(message, path)
    return items


def _assistant(message: dict[str, Any], path: str) -> list[Item]:
    """Reasoning, text and calls of one assistant message; an empty text beside calls is no item of its own."""
    items: list[Item] = []
    reasoning = message.pop("reasoning_content", None)
    reasoning = message.pop("reasoning", None) or reasoning
    if reasoning:
        items.append(Reasoning(string(reasoning, f"{path}.reasoning_content")))
    extra = _name(message, path)
    refusal = message.pop("refusal", None)
    content = message.pop("content", None)
    parts = () if content is None else _parts(content, f"{path}.content")
    if refusal:
        parts = (*parts, Text(string(refusal, f"{path}.refusal")))
    calls = message.pop("tool_calls", None)
    calls = [] if calls is None else array(calls, f"{path}.tool_calls")
    if not calls or any(not isinstance(part, Text) or part.text.strip() for part in parts):
        items.append(Message("assistant", parts or (Text(""),), extra))
    items += [_call(raw, f"{path}.tool_calls[{index}]") for index, raw in enumerate(calls)]
    for name in ("annotations", "audio", "function_call"):
        if not message.get(name):
            message.pop(name, None)
    return items


def _call(raw: Any, path: str) -> Item:
    call = mapping(raw, path)
    if len(call) > 3:
        refuse_unknown(call, path, CALL_FIELDS)
    call_id = string(call.get("id"), f"{path}.id")
    match one_of(call.get("type", "function"), f"{path}.type", ("function", "custom")):
        case "custom":
            custom = mapping(call.get("custom"), f"{path}.custom")
            return ToolCall(
                call_id,
                string(custom.get("name"), f"{path}.custom.name"),
                string(custom.get("input"), f"{path}.custom.input"),
                "custom",
            )
        case _:
            function = mapping(call.get("function"), f"{path}.function")
            name = string(function.get("name"), f"{path}.function.name")
            arguments = function.get("arguments")
            return ToolCall(call_id, name, "" if arguments is None else string(arguments, f"{path}.function.arguments"))


def _parts(content: Any, path: str) -> tuple[Part, ...]:
    match content:
        case str():
            return (Text(content),)
        case list() if content:
            return tuple(_part(raw, f"{path}[{index}]") for index, raw in enumerate(content))
        case list():
            raise BadRequest(f"`{path}` must not be an empty array.", param=path, code="empty_array")
        case _:
            raise BadRequest(
                f"`{path}` must be a string or an array of parts, not {kind_of(content)}.",
                param=path,
                code="invalid_type",
            )


def _part(raw: Any, path: str) -> Part:
    part = mapping(raw, path)
    match kind := one_of(part.get("type"), f"{path}.type", ("text", "refusal", *MEDIA_FIELDS)):
        case "text" | "refusal":
            if len(part) > 2:
                refuse_unknown(part, path, TEXT_FIELDS)
            return Text(string(part.get(kind), f"{path}.{kind}"))
        case _:
            return _media(kind, part, path)


def _media(kind: str, part: dict[str, Any], path: str) -> Media:
    refuse_unknown(part, path, ("type", kind))
    inner, fields = mapping(part.get(kind), f"{path}.{kind}"), MEDIA_FIELDS[kind]
    refuse_unknown(inner, f"{path}.{kind}", fields)
    string(inner.get(fields[0]), f"{path}.{kind}.{fields[0]}")
    for name, value in inner.items():
        string(value, f"{path}.{kind}.{name}")
    return Media(kind, part)


def _name(message: dict[str, Any], path: str) -> dict[str, Any]:
    name = message.pop("name", None)
    return {} if name is None else {"name": string(name, f"{path}.name")}


def _refuse_message_rest(message: dict[str, Any], path: str) -> None:
    for name, value in message.items():
        if name == "annotations" or value is None:
            continue
        refuse(f"{path}.{name}", value, "this field is not known in a message of this role", "unknown_parameter")
