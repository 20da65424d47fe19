"""What a client's tool fields and `response_format` mean for one hop.

llama.cpp's server enforces neither, so they become a grammar of ours; only `tool_choice: auto` leaves the model free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from macaron.engine.llamacpp.grammar import CALL_CLOSE, calls_grammar, json_grammar, schema_of_format
from macaron.errors import BadRequest

CONSUMED = ("tools", "tool_choice", "parallel_tool_calls", "response_format")
"""Option fields that a plan stands for; the engine never sees them."""


class ToolPlan(NamedTuple):
    """How the tools of a hop are shown and their calls are read.

    Attributes:
        shown: tools for the template, as the client wrote them.
        callable: names the model may call; a call of any other name is text.
        grammar: what the answer must follow, None where the model is free.
        stop: strings that end the answer besides the client's own.
    """

    shown: Sequence[Mapping[str, Any]] = ()
    callable: frozenset[str] = frozenset()
    grammar: str | None = None
    stop: tuple[str, ...] = ()


class _Choice(NamedTuple):
    mode: str
    names: frozenset[str] | None = None


def plan_tools(options: Mapping[str, Any], *, keep_shown: bool = False) -> ToolPlan:
    """The plan for these client options. `keep_shown` leaves tools in the prompt that may not be called, so that it
    goes on from one in which they might.

    Raises:
        BadRequest: a tool is not a function, or `tool_choice` or `response_format` is not understood.
    """
    tools = options.get("tools") or ()
    if not isinstance(tools, list | tuple):
        raise BadRequest("tools is a list of function tools.", param="tools")
    functions = [_function(tool, at) for at, tool in enumerate(tools)]
    wanted = _wanted_format(options.get("response_format"))
    choice = _choice(options.get("tool_choice"), functions)
    if choice.mode == "required" and not functions:
        raise BadRequest("tool_choice is `required`, but there are no tools; send some.", param="tool_choice")
    if not functions or choice.mode == "none":
        # A model that sees no tools calls none, which no grammar could promise without knowing all it may say.
        grammar = None if wanted is None else json_grammar(schema_of_format(wanted))
        return ToolPlan(tools if keep_shown else (), grammar=grammar)
    usable = [function for function in functions if choice.names is None or function["name"] in choice.names]
    single = options.get("parallel_tool_calls") is False or choice.mode == "named"
    grammar = None
    if choice.mode != "auto":
        grammar = calls_grammar(usable, single=single)
    elif wanted is not None:
        grammar = calls_grammar(usable, single=single, instead=wanted)
    stop = (CALL_CLOSE,) if single and grammar is None else ()
    return ToolPlan(tools, frozenset(function["name"] for function in usable), grammar, stop)


def _function(tool: Any, at: int) -> Mapping[str, Any]:
    match tool:
        case {"type": "function", "function": {"name": str()} as function}:
            return dict(function)
        case {"type": str(kind)} if kind != "function":
            raise BadRequest(
                f"A tool of type {kind!r} cannot be run with the embedded engine; send function tools.",
                param=f"tools.{at}.type",
            )
        case _:
            raise BadRequest('A tool is {"type": "function", "function": {"name": …}}.', param=f"tools.{at}")


def _choice(choice: Any, functions: Sequence[Mapping[str, Any]]) -> _Choice:
    match choice:
        case None:
            return _Choice("auto")
        case "none" | "auto" | "required":
            return _Choice(choice)
        case {"type": "function", "function": {"name": str(name)}} | {"type": "function", "name": str(name)}:
            return _Choice("named", _known([name], functions))
        case {"type": "allowed_tools", "allowed_tools": {"tools": list(tools), **rest}}:
            return _allowed(rest.get("mode", "auto"), tools, functions)
        case {"type": "allowed_tools", "tools": list(tools), **rest}:
            return _allowed(rest.get("mode", "auto"), tools, functions)
        case _:
            raise BadRequest(
                f"tool_choice {choice!r} is not `none`, `auto`, `required`, a function or `allowed_tools`.",
                param="tool_choice",
            )


def _allowed(mode: Any, tools: Sequence[Any], functions: Sequence[Mapping[str, Any]]) -> _Choice:
    if mode not in ("auto", "required"):
        raise BadRequest(f"Mode {mode!r} of allowed_tools is not `auto` or `required`.", param="tool_choice.mode")
    names = []
    for tool in tools:
        match tool:
            case {"function": {"name": str(name)}} | {"name": str(name)}:
                names.append(name)
            case _:
                raise BadRequest("An allowed tool is a function with a name.", param="tool_choice.tools")
    return _Choice(mode, _known(names, functions)) if names else _Choice("none")


def _known(names: Sequence[str], functions: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    offered = {function["name"] for function in functions}
    for name in names:
        if name not in offered:
            raise BadRequest(f"tool_choice names {name!r}, which is not among the tools.", param="tool_choice")
    return frozenset(names)


def _wanted_format(response_format: Any) -> Mapping[str, Any] | None:
    match response_format:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"} | {"type": "json_schema", "json_schema": {"schema": dict()}}:
            return dict(response_format)
        case _:
            raise BadRequest(
                "response_format is `text`, `json_object`, or `json_schema` with a `schema`.", param="response_format"
            )
