"""Tools of the Responses API as functions, which is all that engines know, and their names restored. Pure.

A custom tool becomes a function of one string; the tools of a namespace become functions with the namespace in front.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from macaron.errors import BadRequest
from macaron.wire.chat_options import MAX_TOOLS
from macaron.wire.fields import array, boolean, mapping, one_of, refuse, short, string
from macaron.wire.responses_items import engine_name

HOSTED = (
    "web_search",
    "web_search_preview",
    "file_search",
    "computer",
    "computer_use_preview",
    "code_interpreter",
    "image_generation",
    "local_shell",
    "shell",
    "apply_patch",
    "mcp",
    "tool_search",
    "programmatic_tool_calling",
)
"""Kinds of tools that a service would have to run by itself, or whose calls have a form of their own."""

_INERT = {"defer_loading": False, "async": False, "allowed_callers": ["direct"]}


class Named(Struct, frozen=True):
    """What a tool is called by its client."""

    name: str
    kind: str = "function"
    namespace: str | None = None


class Tools(Struct, frozen=True):
    """The tools of a request.

    Attributes:
        functions: for the engine, in the Chat shape.
        names: by the engine's name, what the client calls the tool.
        echo: as the response repeats them.
    """

    functions: tuple[dict[str, Any], ...] = ()
    names: Mapping[str, Named] = {}
    echo: tuple[dict[str, Any], ...] = ()


def read_tools(value: Any, left_out: Collection[str] = (), path: str = "tools") -> Tools:
    """The tools of a request.

    Args:
        left_out: kinds that the operator has chosen to leave out instead of refusing them.

    Raises:
        BadRequest: a kind that cannot be used here, by its name, or a field at fault.
    """
    functions: list[dict[str, Any]] = []
    names: dict[str, Named] = {}
    echo = []
    for index, raw in enumerate(array(value, path)):
        where = f"{path}[{index}]"
        tool = mapping(raw, where)
        kind = tool.get("type")
        if isinstance(kind, str) and _family(kind) in left_out:
            continue
        _check_kind(kind, where)
        inner = _members(tool, where) if kind == "namespace" else [(tool, None, where)]
        for member, namespace, place in inner:
            function, named = _function(member, namespace, place)
            name = function["function"]["name"]
            if name in names:
                refuse(
                    f"{place}.name", named.name, f"two tools would be called `{name}` in the engine", "duplicate_tool"
                )
            names[name] = named
            functions.append(function)
        echo.append(_echo(tool))
    if len(functions) > MAX_TOOLS:
        raise BadRequest(f"`{path}` may hold at most {MAX_TOOLS} tools.", param=path)
    return Tools(tuple(functions), names, tuple(echo))


def _family(kind: str) -> str:
    """A kind without the date of its version: `web_search_2025_08_26` is `web_search`."""
    return kind.rstrip("0123456789_") if kind[-1:].isdigit() else kind


def _check_kind(kind: Any, where: str) -> None:
    if isinstance(kind, str) and _family(kind) in HOSTED:
        refuse(
            f"{where}.type",
            kind,
            "this service runs no hosted tools; offer a `function`, or have its operator name the kind in [service] "
            "leave_out_tools",
            "unsupported_tool",
        )
    one_of(kind, f"{where}.type", ("function", "custom", "namespace"))


def _members(tool: dict[str, Any], where: str) -> list[tuple[dict[str, Any], str, str]]:
    namespace = short(tool.get("name"), f"{where}.name")
    members = []
    for index, raw in enumerate(array(tool.get("tools"), f"{where}.tools")):
        place = f"{where}.tools[{index}]"
        one_of(mapping(raw, place).get("type"), f"{place}.type", ("function", "custom"))
        members.append((raw, namespace, place))
    return members


def _function(tool: dict[str, Any], namespace: str | None, where: str) -> tuple[dict[str, Any], Named]:
    for name, inert in _INERT.items():
        if tool.get(name) not in (None, inert):
            refuse(f"{where}.{name}", tool[name], f"only {inert!r} can be honoured here", "unsupported_value")
    named = Named(short(tool.get("name"), f"{where}.name"), tool["type"], namespace)
    body: dict[str, Any] = {"name": engine_name(namespace, named.name)}
    description = tool.get("description")
    if description is not None:
        body["description"] = string(description, f"{where}.description")
    if named.kind == "custom":
        return {"type": "function", "function": body | _custom(tool, body.get("description", ""), where)}, named
    if tool.get("parameters") is not None:
        body["parameters"] = mapping(tool["parameters"], f"{where}.parameters")
    if tool.get("strict") is not None:
        body["strict"] = boolean(tool["strict"], f"{where}.strict")
    return {"type": "function", "function": body}, named


def _custom(tool: dict[str, Any], description: str, where: str) -> dict[str, Any]:
    """A function of one string. A grammar is told to the model; no engine enforces it inside a call."""
    form = tool.get("format")
    if form is not None:
        kind = one_of(mapping(form, f"{where}.format").get("type"), f"{where}.format.type", ("text", "grammar"))
        if kind == "grammar":
            syntax = one_of(form.get("syntax"), f"{where}.format.syntax", ("lark", "regex"))
            definition = string(form.get("definition"), f"{where}.format.definition")
            description = f"{description}\n\nThe input must match this {syntax} grammar:\n{definition}".strip()
    parameters = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    return ({"description": description} if description else {}) | {"parameters": parameters}


def _echo(tool: dict[str, Any]) -> dict[str, Any]:
    if tool["type"] != "function":
        return tool
    nothing = {"description": None, "parameters": None}
    return {**nothing, **tool, "strict": bool(tool.get("strict"))}


def choice_for(value: Any, tools: Tools, path: str = "tool_choice") -> tuple[Any, Tools]:
    """A `tool_choice` in the Chat shape, and the tools that are left to choose from.

    Raises:
        BadRequest: it is not understood, or names a tool that is not there.
    """
    if isinstance(value, str):
        return one_of(value, path, ("none", "auto", "required")), tools
    choice = mapping(value, path)
    kind = choice.get("type")
    if isinstance(kind, str) and _family(kind) in HOSTED:
        refuse(f"{path}.type", kind, "this service runs no hosted tools", "unsupported_tool")
    match one_of(kind, f"{path}.type", ("function", "custom", "allowed_tools")):
        case "allowed_tools":
            return _allowed(choice, tools, path)
        case _:
            name = _find(choice, tools, path)
            return {"type": "function", "function": {"name": name}}, tools


def _allowed(choice: dict[str, Any], tools: Tools, path: str) -> tuple[Any, Tools]:
    given = choice.get("mode")
    mode = "auto" if given is None else one_of(given, f"{path}.mode", ("none", "auto", "required"))
    wanted = set()
    for index, raw in enumerate(array(choice.get("tools"), f"{path}.tools")):
        place = f"{path}.tools[{index}]"
        wanted |= _find_all(mapping(raw, place), tools, place)
    left = tuple(function for function in tools.functions if function["function"]["name"] in wanted)
    return mode, Tools(left, tools.names, tools.echo)


def _find_all(entry: dict[str, Any], tools: Tools, path: str) -> set[str]:
    if entry.get("type") == "namespace":
        return {name for name, named in tools.names.items() if named.namespace == entry.get("name")}
    return {_find(entry, tools, path)}


def _find(choice: dict[str, Any], tools: Tools, path: str) -> str:
    namespace = choice.get("namespace")
    name = short(choice.get("name"), f"{path}.name")
    wanted = engine_name(short(namespace, f"{path}.namespace") if namespace is not None else None, name)
    alike = [engine for engine, named in tools.names.items() if named.name == name and namespace is None]
    found = wanted if wanted in tools.names else next(iter(alike), None)
    return refuse(f"{path}.name", name, "it is not among the `tools`", "unknown_tool") if found is None else found
