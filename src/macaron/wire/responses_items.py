"""Items of the Responses API as neutral items, and as they are kept. Pure.

An item that a client sends is kept as it came, with an id and a status, so that what is listed later is what was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from macaron.conversation import Item, Media, Message, Part, Reasoning, Text, ToolCall, ToolResult
from macaron.errors import BadRequest
from macaron.wire.fields import array, kind_of, mapping, one_of, refuse, short, string

WireItem = dict[str, Any]

MAX_ITEMS = 20_000
MAX_ID = 128
ROLES = ("user", "assistant", "system", "developer")
STATUSES = ("in_progress", "completed", "incomplete")
SEPARATOR = "__"

PREFIXES = {
    "message": "msg_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "custom_tool_call": "ctc_",
    "custom_tool_call_output": "ctco_",
    "reasoning": "rs_",
    "call": "call_",
}
"""What the ids of items of a kind begin with, and of calls."""

_COMMON = ("type", "id", "status", "created_by")
_FIELDS = {
    "message": ("role", "content", "phase"),
    "function_call": ("call_id", "name", "arguments", "namespace", "caller", "async"),
    "function_call_output": ("call_id", "output", "name", "namespace", "caller"),
    "custom_tool_call": ("call_id", "name", "input", "namespace", "caller", "async"),
    "custom_tool_call_output": ("call_id", "output", "name", "namespace", "caller"),
    "reasoning": ("summary", "content", "encrypted_content"),
}
_CACHE_MARKS = ("cache_control", "prompt_cache_breakpoint")
_TEXTS = ("input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text")


class Reference(Struct, frozen=True):
    """An `item_reference`: the item with this id, wherever it is kept."""

    id: str
    path: str


def input_items(value: Any, path: str = "input") -> list[WireItem | Reference]:
    """The items of an `input`, checked: a string is one message of the user's.

    Raises:
        BadRequest: with the path of the field at fault.
    """
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": value}]}]
    if not isinstance(value, list):
        raise BadRequest(
            f"`{path}` must be a string or an array of items, not {kind_of(value)}.", param=path, code="invalid_type"
        )
    if len(value) > MAX_ITEMS:
        raise BadRequest(f"`{path}` may hold at most {MAX_ITEMS} items.", param=path, code="array_too_long")
    return [_checked(raw, f"{path}[{index}]") for index, raw in enumerate(value)]


def _checked(raw: Any, path: str) -> WireItem | Reference:
    item = mapping(raw, path)
    kind = item.get("type")
    if kind is None:
        kind = "message" if "role" in item else "item_reference"
    if kind == "item_reference":
        return Reference(_id(item.get("id"), f"{path}.id"), path)
    if not isinstance(kind, str) or kind not in _FIELDS:
        known = ", ".join(f"`{name}`" for name in (*_FIELDS, "item_reference"))
        refuse(f"{path}.type", kind, f"items of these types can be read here: {known}", "unsupported_item")
    item = {"type": kind, **{name: inner for name, inner in item.items() if name != "type"}}
    neutral(item, path)
    return item


def neutral(item: WireItem, path: str = "item") -> Item | None:
    """A checked or kept item in neutral terms; None where nothing of it is for the model: sealed reasoning."""
    kind: str = item["type"]
    known = (*_COMMON, *_FIELDS[kind])
    for name, value in item.items():
        if name not in known and value is not None:
            refuse(f"{path}.{name}", value, f"this field is not known in a `{kind}`", "unknown_parameter")
    if item.get("status") is not None:
        one_of(item["status"], f"{path}.status", STATUSES)
    if item.get("id") is not None:
        _id(item["id"], f"{path}.id")
    return _READERS[kind](item, path)


def neutral_items(items: Sequence[WireItem]) -> list[Item]:
    """Checked or kept items in neutral terms."""
    return [item for item in map(neutral, items) if item is not None]


def sealed_in(items: Sequence[WireItem]) -> tuple[str, ...]:
    """What clients keep for us inside checked or kept items, in their order."""
    sealed = (item.get("encrypted_content") for item in items if item["type"] == "reasoning")
    return tuple(text for text in sealed if text)


def _id(value: Any, path: str) -> str:
    if len(string(value, path)) > MAX_ID:
        raise BadRequest(f"`{path}` is longer than {MAX_ID} characters.", param=path, code="string_too_long")
    return string(value, path)


def _message(item: WireItem, path: str) -> Item:
    role = one_of(item.get("role"), f"{path}.role", ROLES)
    if item.get("phase") is not None:
        one_of(item["phase"], f"{path}.phase", ("commentary", "final_answer"))
    parts = _parts(item.get("content"), f"{path}.content")
    match role:
        case "user" | "system" | "developer":
            return Message(role, parts)
        case _:
            return Message("assistant", parts)


def _function_call(item: WireItem, path: str) -> Item:
    name = _called(item, path)
    return ToolCall(
        short(item.get("call_id"), f"{path}.call_id"), name, string(item.get("arguments"), f"{path}.arguments")
    )


def _custom_call(item: WireItem, path: str) -> Item:
    name = _called(item, path)
    written = string(item.get("input"), f"{path}.input")
    return ToolCall(short(item.get("call_id"), f"{path}.call_id"), name, custom_arguments(written))


def custom_arguments(written: str) -> str:
    """A custom tool's input as the arguments of the function that stands for the tool."""
    return msgspec.json.encode({"input": written}).decode()


def engine_name(namespace: str | None, name: str) -> str:
    """The name under which the engine knows a tool."""
    if not namespace:
        return name
    return namespace + name if namespace.endswith(SEPARATOR) else namespace + SEPARATOR + name


def _called(item: WireItem, path: str) -> str:
    _direct(item, path)
    namespace = item.get("namespace")
    if namespace is not None:
        short(namespace, f"{path}.namespace")
    return engine_name(namespace, short(item.get("name"), f"{path}.name"))


def _direct(item: WireItem, path: str) -> None:
    caller = item.get("caller")
    if caller is not None and mapping(caller, f"{path}.caller").get("type") != "direct":
        refuse(f"{path}.caller", caller, "only calls by the model itself, `direct`, are made here", "unsupported_value")


def _output(item: WireItem, path: str) -> Item:
    _direct(item, path)
    parts = _parts(item.get("output"), f"{path}.output")
    return ToolResult(short(item.get("call_id"), f"{path}.call_id"), parts)


def _reasoning(item: WireItem, path: str) -> Item | None:
    texts: list[str] = []
    # The thoughts themselves where they are there, else their summary.
    for name in ("content", "summary"):
        parts = item.get(name)
        parts = [] if parts is None else array(parts, f"{path}.{name}")
        read = [_part(raw, f"{path}.{name}[{index}]") for index, raw in enumerate(parts)]
        texts = texts or [part.text for part in read if isinstance(part, Text)]
    if item.get("encrypted_content") is not None:
        string(item["encrypted_content"], f"{path}.encrypted_content")
    text = "\n".join(texts)
    return Reasoning(text) if text else None


def _parts(content: Any, path: str) -> tuple[Part, ...]:
    match content:
        case str():
            return (Text(content),)
        case list():
            parts = tuple(_part(raw, f"{path}[{index}]") for index, raw in enumerate(content))
            return parts or (Text(""),)
        case _:
            raise BadRequest(
                f"`{path}` must be a string or an array of parts, not {kind_of(content)}.",
                param=path,
                code="invalid_type",
            )


def _part(raw: Any, path: str) -> Part:
    part = mapping(raw, path)
    match kind := one_of(part.get("type"), f"{path}.type", (*_TEXTS, "input_image", "input_file", "input_audio")):
        case "input_image":
            return _image(part, path)
        case "input_file":
            return _file(part, path)
        case "input_audio":
            _only(part, path, ("input_audio",))
            inner = mapping(part.get("input_audio"), f"{path}.input_audio")
            fields = {name: string(inner.get(name), f"{path}.input_audio.{name}") for name in ("data", "format")}
            return Media(kind, {"type": kind, kind: fields})
        case _:
            field = "refusal" if kind == "refusal" else "text"
            _only(part, path, (field, "annotations", "logprobs"))
            return Text(string(part.get(field), f"{path}.{field}"))


def _image(part: dict[str, Any], path: str) -> Media:
    _only(part, path, ("image_url", "detail", "file_id"))
    _no_uploads(part, path)
    inner = {"url": string(part.get("image_url"), f"{path}.image_url")}
    if part.get("detail") is not None:
        inner["detail"] = one_of(part["detail"], f"{path}.detail", ("auto", "low", "high", "original"))
    return Media("image_url", {"type": "image_url", "image_url": inner})


def _file(part: dict[str, Any], path: str) -> Media:
    _only(part, path, ("file_data", "file_url", "filename", "detail", "file_id"))
    _no_uploads(part, path)
    if part.get("file_data") is not None and part.get("file_url") is not None:
        refuse(f"{path}.file_url", part["file_url"], "send it or `file_data`, not both")
    field = "file_url" if part.get("file_url") is not None else "file_data"
    inner = {"file_data": string(part.get(field), f"{path}.{field}")}
    if part.get("filename") is not None:
        inner["filename"] = string(part["filename"], f"{path}.filename")
    return Media("file", {"type": "file", "file": inner})


def _no_uploads(part: dict[str, Any], path: str) -> None:
    if part.get("file_id") is not None:
        refuse(
            f"{path}.file_id", part["file_id"], "no files are kept here; send the content itself", "unsupported_value"
        )


def _only(part: dict[str, Any], path: str, known: Sequence[str]) -> None:
    for name, value in part.items():
        if name not in known and name not in ("type", *_CACHE_MARKS) and value is not None:
            refuse(f"{path}.{name}", value, "this field is not known here", "unknown_parameter")


_READERS: Mapping[str, Callable[[WireItem, str], Item | None]] = {
    "message": _message,
    "function_call": _function_call,
    "function_call_output": _output,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _output,
    "reasoning": _reasoning,
}


def kept(item: WireItem, item_id: str) -> WireItem:
    """An item as it is listed later: with an id, its own where it has one, a status, and its content as parts."""
    item = {**item, "id": item.get("id") or item_id, "status": item.get("status") or "completed"}
    if item["type"] == "message":
        item["content"] = _listed(item["content"], "output_text" if item["role"] == "assistant" else "input_text")
    if item["type"] == "reasoning":
        item["summary"] = item.get("summary") or []
    return {name: value for name, value in item.items() if value is not None}


def _listed(content: Any, kind: str) -> list[dict[str, Any]]:
    parts = [{"type": kind, "text": content}] if isinstance(content, str) else content
    return [_full(part) for part in parts]


def _full(part: dict[str, Any]) -> dict[str, Any]:
    match part["type"]:
        case "output_text":
            return {**part, "annotations": part.get("annotations") or [], "logprobs": part.get("logprobs") or []}
        case "input_image":
            return {**part, "detail": part.get("detail") or "auto"}
        case _:
            return part


def item_id(kind: str, response_id: str, index: int) -> str:
    """The id of a response's item. It says whose it is, so that a reference is found without an index.

    Args:
        index: its place; input items and output items have different ones.
    """
    return f"{PREFIXES[kind]}{response_id.partition('_')[2]}{index:04x}"


def owner_of(item: str) -> str | None:
    """The id of the response whose item has this id; None where it cannot be one of ours."""
    digits = item.partition("_")[2]
    return "resp_" + digits[:32] if len(digits) == 36 else None
