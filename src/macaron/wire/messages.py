"""Anthropic Messages requests, as neutral items. Pure: bytes and objects in, objects out.

Every public field is honoured, passed to the engine, or refused by its name. Only where a prompt may be cached
(`cache_control`) and a client's own billing line, which its server takes out too, are left out without a word: they
change from turn to turn, and no answer depends on them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from macaron.conversation import Item, Media, Message, Part, Reasoning, Text, ToolCall, ToolResult
from macaron.errors import BadRequest
from macaron.wire.fields import (
    array,
    boolean,
    decode_object,
    kind_of,
    mapping,
    one_of,
    refuse,
    refuse_rest,
    refuse_unknown,
    required,
    string,
    take,
)
from macaron.wire.messages_options import (
    DIRECT,
    INERT,
    REFUSED,
    check_context_management,
    check_diagnostics,
    end_user,
    output_options,
    sampling_options,
    thinking_shown,
    tool_options,
)
from macaron.wire.parts import TurnParts, leading_system

BILLING_LINE = "x-anthropic-billing-header:"
UNPARSED = "unparsed_arguments"
"""The only key of an input whose arguments were no JSON object, as the model wrote them."""

FAILED = Text("The tool failed:")
"""Stands before what a tool said that failed, since engines' tool messages have no field for it."""

ROLES = ("system", "user", "assistant")
CACHED = ("type", "cache_control")


class MessagesRequest(TurnParts, frozen=True):
    """A Messages request. `thinking`: whether the client is shown the model's thoughts."""

    thinking: bool = False


def messages_request(body: bytes, *, counting: bool = False) -> MessagesRequest:
    """Read the body of a request for an answer, or for a count of its prompt's tokens.

    Raises:
        BadRequest: with the path of the field at fault.
    """
    fields = decode_object(body)
    options = sampling_options(fields, counting=counting)
    tools, choice = tool_options(fields)
    options |= choice | output_options(fields)
    check_context_management(fields)
    check_diagnostics(fields)
    user, session = end_user(fields)
    messages = array(required(fields, "messages"), "messages")
    items = [*_system(fields.pop("system", None)), *_items(messages)]
    split = leading_system(items)
    request = MessagesRequest(
        model=string(required(fields, "model"), "model"),
        system=tuple(item for item in items[:split] if isinstance(item, Message)),
        items=tuple(items[split:]),
        tools=tools,
        options=options,
        stream=not counting and take(fields, "stream", boolean, False),
        user=user,
        session=session,
        beside_results=_beside_results(messages),
        thinking=thinking_shown(fields),
    )
    fields.pop("cache_control", None)
    refuse_rest(fields, INERT, REFUSED)
    return request


def _system(value: Any) -> list[Item]:
    match value:
        case None | "":
            return []
        case str():
            return [Message("system", (Text(value),))]
        case list():
            blocks = [_text(block, f"system[{index}]") for index, block in enumerate(value)]
            parts = tuple(block for block in blocks if not block.text.startswith(BILLING_LINE))
            return [Message("system", parts)] if parts else []
        case _:
            raise BadRequest(
                f"`system` must be a string or an array of text blocks, not {kind_of(value)}.",
                param="system",
                code="invalid_type",
            )


def _items(messages: list[Any]) -> list[Item]:
    if not messages:
        raise BadRequest("`messages` must not be empty.", param="messages", code="empty_array")
    items: list[Item] = []
    last = ""
    for index, raw in enumerate(messages):
        path = f"messages[{index}]"
        message = mapping(raw, path)
        role = one_of(message.get("role"), f"{path}.role", ROLES)
        refuse_unknown(message, path, ("role", "content"))
        blocks = _blocks(message.get("content"), f"{path}.content")
        match role:
            case "assistant":
                items += _assistant(blocks)
            case "system":
                items.append(Message("system", tuple(_text(block, where) for where, block in blocks)))
            case "user":
                items += _user(blocks)
        last = last if role == "system" else role
    if last == "assistant":
        raise BadRequest(
            "`messages` ends with the assistant's words, and an answer that is begun cannot be continued here; "
            "end it with the user's.",
            param="messages",
            code="unsupported_value",
        )
    return items


def _blocks(content: Any, path: str) -> list[tuple[str, dict[str, Any]]]:
    """The blocks of a message's content, each with its path."""
    match content:
        case str():
            return [(path, {"type": "text", "text": content})]
        case list():
            return [(f"{path}[{index}]", mapping(raw, f"{path}[{index}]")) for index, raw in enumerate(content)]
        case _:
            raise BadRequest(
                f"`{path}` must be a string or an array of blocks, not {kind_of(content)}.",
                param=path,
                code="invalid_type",
            )


def _user(blocks: Sequence[tuple[str, dict[str, Any]]]) -> list[Item]:
    """Tool results, and what stands between them as messages of the user."""
    items: list[Item] = []
    said: list[Part] = []
    for path, block in blocks:
        if block.get("type") != "tool_result":
            said += _parts(block, path, ("text", "image", "document", "tool_result"))
            continue
        if said:
            items.append(Message("user", tuple(said)))
            said = []
        items.append(_tool_result(block, path))
    if said or not items:
        items.append(Message("user", tuple(said) or (Text(""),)))
    return items


def _tool_result(block: dict[str, Any], path: str) -> ToolResult:
    refuse_unknown(block, path, (*CACHED, "tool_use_id", "content", "is_error"))
    call_id = string(block.get("tool_use_id"), f"{path}.tool_use_id")
    content = block.get("content")
    parts: list[Part] = []
    for where, inner in _blocks("" if content is None else content, f"{path}.content"):
        parts += _parts(inner, where, ("text", "image", "document"))
    failed = block.get("is_error")
    if failed is not None and boolean(failed, f"{path}.is_error"):
        parts.insert(0, FAILED)
    return ToolResult(call_id, tuple(parts) or (Text(""),))


def _assistant(blocks: Sequence[tuple[str, dict[str, Any]]]) -> list[Item]:
    """Thoughts, then the text in one piece, then the calls: the order in which an answer's items are kept, whatever the
    order of its blocks."""
    thoughts: list[Item] = []
    calls: list[Item] = []
    texts: list[str] = []
    for where, block in blocks:
        known = ("text", "thinking", "redacted_thinking", "tool_use")
        match one_of(block.get("type"), f"{where}.type", known):
            case "text":
                texts.append(_text(block, where).text)
            case "thinking":
                refuse_unknown(block, where, (*CACHED, "thinking", "signature"))
                thoughts.append(Reasoning(string(block.get("thinking"), f"{where}.thinking")))
            case "tool_use":
                calls.append(_tool_use(block, where))
            # Redacted thoughts are another service's: hidden state that no engine here can read.
    text = "".join(texts)
    said = [Message("assistant", (Text(text),))] if text.strip() or not calls else []
    return [*thoughts, *said, *calls]


def _tool_use(block: dict[str, Any], path: str) -> ToolCall:
    refuse_unknown(block, path, (*CACHED, "id", "name", "input", "caller"))
    caller = block.get("caller")
    if caller is not None and mapping(caller, f"{path}.caller").get("type") != DIRECT:
        refuse(f"{path}.caller", caller, "only calls of the model's own are known here", "unsupported_value")
    given = mapping(block.get("input"), f"{path}.input")
    raw = given.get(UNPARSED) if len(given) == 1 else None
    arguments = raw if isinstance(raw, str) else json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    return ToolCall(string(block.get("id"), f"{path}.id"), string(block.get("name"), f"{path}.name"), arguments)


def _parts(block: dict[str, Any], path: str, known: Sequence[str]) -> list[Part]:
    match one_of(block.get("type"), f"{path}.type", known):
        case "text":
            return [_text(block, path)]
        case "image":
            return [_image(block, path)]
        case _:
            return _document(block, path)


def _text(raw: Any, path: str) -> Text:
    block = mapping(raw, path)
    one_of(block.get("type"), f"{path}.type", ("text",))
    if len(block) > 2:
        refuse_unknown(block, path, (*CACHED, "text", "citations"))
        if block.get("citations"):
            refuse(f"{path}.citations", block["citations"], "citations are not known here", "unsupported_parameter")
    return Text(string(block.get("text"), f"{path}.text"))


def _image(block: dict[str, Any], path: str) -> Media:
    refuse_unknown(block, path, (*CACHED, "source"))
    source, where = mapping(block.get("source"), f"{path}.source"), f"{path}.source"
    match one_of(source.get("type"), f"{where}.type", ("base64", "url")):
        case "base64":
            url = _data_url(source, where)
        case _:
            refuse_unknown(source, where, ("type", "url"))
            url = string(source.get("url"), f"{where}.url")
    return Media("image_url", {"type": "image_url", "image_url": {"url": url}})


def _document(block: dict[str, Any], path: str) -> list[Part]:
    """A file, or its text where the client sends that; title and context are put before it."""
    refuse_unknown(block, path, (*CACHED, "source", "title", "context", "citations"))
    citations = mapping(block.get("citations") or {}, f"{path}.citations")
    if citations.get("enabled"):
        refuse(f"{path}.citations", citations, "citations are not made here", "unsupported_parameter")
    titles = [string(block[name], f"{path}.{name}") for name in ("title", "context") if block.get(name) is not None]
    source, where = mapping(block.get("source"), f"{path}.source"), f"{path}.source"
    parts: list[Part] = []
    match one_of(source.get("type"), f"{where}.type", ("text", "base64", "content")):
        case "text":
            refuse_unknown(source, where, ("type", "media_type", "data"))
            parts.append(Text(string(source.get("data"), f"{where}.data")))
        case "base64":
            file = {"file_data": _data_url(source, where), "filename": titles[0] if titles else "document"}
            parts.append(Media("file", {"type": "file", "file": file}))
        case _:
            refuse_unknown(source, where, ("type", "content"))
            for place, inner in _blocks(source.get("content"), f"{where}.content"):
                parts += _parts(inner, place, ("text", "image"))
    return [*map(Text, titles), *parts]


def _data_url(source: dict[str, Any], path: str) -> str:
    refuse_unknown(source, path, ("type", "media_type", "data"))
    kind = string(source.get("media_type"), f"{path}.media_type")
    return f"data:{kind};base64,{string(source.get('data'), f'{path}.data')}"


def _beside_results(messages: Sequence[dict[str, Any]]) -> bool:
    """Whether the last message of the user's holds tool results."""
    content = next((message["content"] for message in reversed(messages) if message["role"] == "user"), None)
    return isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)
