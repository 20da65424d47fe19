"""The fields of a Messages request that are not its messages: which go to the engine, which are ours, which are refused
by name.
"""

from __future__ import annotations

from typing import Any

import msgspec

from macaron.errors import BadRequest
from macaron.wire.chat_options import MAX_TOOLS
from macaron.wire.fields import (
    array,
    boolean,
    integer,
    mapping,
    number,
    one_of,
    refuse,
    refuse_unknown,
    required,
    short,
    string,
    take,
)

MAX_STOPS = 16
MAX_TOKENS = 2**31
LEAST_BUDGET = 1024
EFFORTS = ("low", "medium", "high", "xhigh", "max")
DIRECT = "direct"
TOOL_FIELDS = ("type", "name", "description", "input_schema", "strict", "cache_control", "eager_input_streaming")
"""The last two say where a prompt may be cached and how its arguments stream, which no answer depends on."""

INERT: dict[str, tuple[Any, ...]] = {
    "service_tier": ("auto", "standard_only"),
    "speed": ("standard",),
    "mcp_servers": ([],),
}

REFUSED = {
    "mcp_servers": "no hosted MCP connector is configured; offer its tools as tools of yours",
    "container": "no hosted containers are configured",
    "inference_geo": "where the model runs is the operator's choice",
}


def sampling_options(fields: dict[str, Any], *, counting: bool) -> dict[str, Any]:
    """Take the fields that say how an answer is drawn; a request that only counts has none of them."""
    if counting:
        return {}
    options: dict[str, Any] = {"max_tokens": integer(required(fields, "max_tokens"), "max_tokens", 1, MAX_TOKENS)}
    drawn = {
        "temperature": take(fields, "temperature", lambda value, path: number(value, path, 0, 1), None),
        "top_p": take(fields, "top_p", lambda value, path: number(value, path, 0, 1), None),
        "top_k": take(fields, "top_k", lambda value, path: integer(value, path, 0, MAX_TOKENS), None),
        "stop": take(fields, "stop_sequences", _stops, None),
    }
    return options | {name: value for name, value in drawn.items() if value is not None}


def _stops(value: Any, path: str) -> list[str] | None:
    if len(array(value, path)) > MAX_STOPS:
        refuse(path, value, f"it may hold at most {MAX_STOPS} strings")
    return [string(item, f"{path}[{index}]") for index, item in enumerate(value)] or None


def output_options(fields: dict[str, Any]) -> dict[str, Any]:
    """Take `output_config`, and the older place of its format: the shape of the answer, and how hard to think."""
    options: dict[str, Any] = {}
    config = _copy(fields, "output_config")
    effort = config.pop("effort", None)
    if effort is not None:
        options["reasoning_effort"] = one_of(effort, "output_config.effort", EFFORTS)
    for path, shape in (
        ("output_config.format", config.pop("format", None)),
        ("output_format", fields.pop("output_format", None)),
    ):
        if shape is not None:
            options["response_format"] = _response_format(shape, path)
    refuse_unknown(config, "output_config", ())
    return options


def _response_format(value: Any, path: str) -> dict[str, Any]:
    one_of(mapping(value, path).get("type"), f"{path}.type", ("json_schema",))
    refuse_unknown(value, path, ("type", "schema"))
    schema = mapping(value.get("schema"), f"{path}.schema")
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


def thinking_shown(fields: dict[str, Any]) -> bool:
    """Take `thinking`: whether the client is shown the model's thoughts. How long it thinks is the model's choice."""
    value = fields.pop("thinking", None)
    if value is None:
        return False
    thinking = dict(mapping(value, "thinking"))
    kind = one_of(thinking.pop("type", None), "thinking.type", ("enabled", "adaptive", "between_tools", "disabled"))
    display = thinking.pop("display", None)
    if display is not None:
        one_of(display, "thinking.display", ("summarized", "omitted"))
    if kind == "enabled":
        integer(thinking.pop("budget_tokens", None), "thinking.budget_tokens", LEAST_BUDGET, MAX_TOKENS)
    refuse_unknown(thinking, "thinking", ())
    return kind != "disabled" and display != "omitted"


def tool_options(fields: dict[str, Any]) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """Take `tools` and `tool_choice`; the tools come back in the Chat Completions shape."""
    raw: list[Any] = take(fields, "tools", array, [])
    if len(raw) > MAX_TOOLS:
        raise BadRequest(f"`tools` may hold at most {MAX_TOOLS} tools.", param="tools")
    tools = tuple(_tool(tool, f"tools[{index}]") for index, tool in enumerate(raw))
    given = fields.pop("tool_choice", None)
    options = {} if given is None else _tool_choice(given)
    if tools:
        return tools, options
    if options.get("tool_choice") not in (None, "none", "auto"):
        refuse("tool_choice", given, "it needs `tools`")
    return (), {}


def _tool(raw: Any, path: str) -> dict[str, Any]:
    tool = mapping(raw, path)
    kind = tool.get("type")
    if kind not in (None, "custom"):
        remedy = "only tools that you describe yourself, with `input_schema`, are taken; this kind is not configured"
        refuse(f"{path}.type", kind, remedy, "unsupported_tool")
    known = {name: value for name, value in tool.items() if not _is_usual(name, value)}
    refuse_unknown(known, path, TOOL_FIELDS)
    function: dict[str, Any] = {"name": string(tool.get("name"), f"{path}.name")}
    if tool.get("description") is not None:
        function["description"] = string(tool["description"], f"{path}.description")
    function["parameters"] = mapping(tool.get("input_schema"), f"{path}.input_schema")
    if tool.get("strict") is not None:
        function["strict"] = boolean(tool["strict"], f"{path}.strict")
    return {"type": "function", "function": function}


def _is_usual(name: str, value: Any) -> bool:
    """Whether a field of a tool asks for nothing beyond what happens anyway."""
    return (name, value) in (("defer_loading", False), ("allowed_callers", [DIRECT]), ("input_examples", []))


def _tool_choice(value: Any) -> dict[str, Any]:
    choice = dict(mapping(value, "tool_choice"))
    kind = one_of(choice.pop("type", None), "tool_choice.type", ("auto", "any", "tool", "none"))
    options: dict[str, Any] = {}
    if kind == "tool":
        name = string(choice.pop("name", None), "tool_choice.name")
        options["tool_choice"] = {"type": "function", "function": {"name": name}}
    else:
        options["tool_choice"] = {"auto": "auto", "any": "required", "none": "none"}[kind]
    single = choice.pop("disable_parallel_tool_use", None)
    if single is not None and boolean(single, "tool_choice.disable_parallel_tool_use"):
        options["parallel_tool_calls"] = False
    refuse_unknown(choice, "tool_choice", ())
    return options


def check_context_management(fields: dict[str, Any]) -> None:
    """Take `context_management`. Whether earlier thoughts are shown to the model again is the profile's choice, so that
    an edit that clears them asks for nothing; one that would change what was said is refused."""
    management = _copy(fields, "context_management")
    edits: list[Any] = take(management, "edits", array, [])
    for index, edit in enumerate(edits):
        path = f"context_management.edits[{index}]"
        kind = string(mapping(edit, path).get("type"), f"{path}.type")
        if not kind.startswith("clear_thinking_"):
            refuse(f"{path}.type", kind, "only earlier thinking can be cleared here", "unsupported_value")
    refuse_unknown(management, "context_management", ())


def _copy(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """Take an object out of `fields`, empty where there is none."""
    value = fields.pop(name, None)
    return {} if value is None else dict(mapping(value, name))


def check_diagnostics(fields: dict[str, Any]) -> None:
    """Take `diagnostics`, a wish to be told why a prompt was not cached; there is nothing to tell where it was."""
    refuse_unknown(_copy(fields, "diagnostics"), "diagnostics", ("previous_message_id",))


def end_user(fields: dict[str, Any]) -> tuple[str, str]:
    """Take `user_profile_id` and `metadata`: the end user and the name of the session, empty where there is none."""
    profile = take(fields, "user_profile_id", short, "")
    user, session = _described(fields)
    return profile or user, session


def _described(fields: dict[str, Any]) -> tuple[str, str]:
    """`metadata.user_id` is a string, or a JSON object in one: then `session_id` in it names the session and the rest
    the user, so that one user's sessions are found by each other."""
    metadata = _copy(fields, "metadata")
    refuse_unknown(metadata, "metadata", ("user_id",))
    given = metadata.get("user_id")
    user = "" if given is None else short(given, "metadata.user_id")
    if not user.startswith("{"):
        return user, ""
    try:
        described = msgspec.json.decode(user)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return user, ""
    session = described.pop("session_id", None)
    if session is not None and not isinstance(session, str):
        return user, ""
    named = {name: value for name, value in described.items() if value}
    return (msgspec.json.encode(named, order="deterministic").decode() if named else ""), session or ""
