"""Responses requests. Pure: bytes in, checked objects out. History is put in front of a request's items by the server,
which knows where it is kept.

Every public field is honoured, passed to the engine, or refused by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec import Struct

from macaron.conversation import Item, Message, Text
from macaron.errors import BadRequest
from macaron.wire.chat_options import VENDOR_OPTIONS, client_metadata, end_user, engine_options
from macaron.wire.fields import (
    array,
    boolean,
    decode_object,
    integer,
    mapping,
    number,
    one_of,
    refuse,
    refuse_rest,
    short,
    string,
)
from macaron.wire.responses_items import Reference, WireItem, input_items, neutral_items
from macaron.wire.responses_tools import Named, Tools, choice_for, read_tools

SEALED = "reasoning.encrypted_content"
INCLUDABLE = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    SEALED,
    "message.output_text.logprobs",
)
"""Those about hosted tools ask for more of items that never are in an answer of this service."""

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
SUMMARIES = ("auto", "concise", "detailed")

_REFUSED = {
    "prompt": "no prompt templates are kept here; send `instructions` and `input`",
    "context_management": "conversations are not compacted here; shorten `input`, or send `truncation: auto`",
    "moderation": "no moderation service is configured",
    "prompt_cache_options": "how long prompts stay cached is the engine's choice; `prompt_cache_key` is a hint",
    "background_options": "a background response begins as soon as there is a place for it",
    "access_programs": "there are none here",
    "image": "images are passed to the engine as they are",
}
_INERT: dict[str, tuple[Any, ...]] = {
    "service_tier": ("auto", "default"),
    "prompt_cache_retention": ("in_memory", "in-memory", "24h"),
}


class ResponsesRequest(Struct, frozen=True):
    """A request as it was sent, checked.

    Attributes:
        input: its own items; references are resolved by the server.
        names: by the engine's name of a tool, its client's.
        options: fields for the engine, under their Chat Completions names.
        store: None where the client leaves it to the service.
        previous, conversation: ids of what it continues.
        include: what more of the answer's items is wanted.
        summary: thoughts are wanted as a summary.
        truncate: the oldest items may be dropped where the context is too short.
        echo: what the response object repeats of the request.
    """

    model: str
    input: tuple[WireItem | Reference, ...]
    instructions: str | None
    tools: tuple[dict[str, Any], ...]
    names: dict[str, Named]
    options: dict[str, Any]
    echo: dict[str, Any]
    stream: bool = False
    store: bool | None = None
    background: bool = False
    previous: str | None = None
    conversation: str | None = None
    include: tuple[str, ...] = ()
    summary: bool = False
    truncate: bool = False
    user: str = ""


def responses_request(body: bytes, left_out: Collection[str] = ()) -> ResponsesRequest:
    """Read a request body.

    Args:
        left_out: kinds of hosted tools that are left out instead of refused.

    Raises:
        BadRequest: with the path of the field at fault.
    """
    fields = decode_object(body)
    take = _Taker(fields)
    model = take("model", string, None)
    if model is None:
        raise BadRequest("`model` is required.", param="model", code="missing_required_parameter")
    tools, choice = _tools(take, left_out)
    options: dict[str, Any] = {}
    echo: dict[str, Any] = {"tools": list(tools.echo)}
    echo |= _sampling(take, options)
    echo |= _text(take, options)
    reasoning, summary = _reasoning(take, options)
    parallel = take("parallel_tool_calls", boolean, None)
    if tools.functions:
        options |= {"tool_choice": choice[0]} if choice is not None else {}
        options |= {"parallel_tool_calls": parallel} if parallel is not None else {}
    include = _include(take, options, echo["top_logprobs"])
    metadata = client_metadata(fields)
    echo |= _repeated(take, fields, metadata)
    echo |= {
        "parallel_tool_calls": True if parallel is None else parallel,
        "reasoning": reasoning,
        "tool_choice": "auto" if choice is None else choice[1],
    }
    request = ResponsesRequest(
        model=model,
        input=tuple(input_items(take("input", _anything, []))),
        instructions=echo["instructions"],
        tools=tools.functions,
        names=dict(tools.names),
        options=options,
        echo=echo,
        stream=take("stream", boolean, False),
        store=take("store", boolean, None),
        background=take("background", boolean, False),
        previous=take("previous_response_id", short, None),
        conversation=take("conversation", _conversation, None),
        include=include,
        summary=summary,
        truncate=echo["truncation"] == "auto",
        user=end_user(fields, metadata),
    )
    _stream_options(take, request.stream)
    # What a client says of itself, for its vendor; nothing depends on it.
    take("client_metadata", mapping, None)
    options |= engine_options({name: take(name, _anything, None) for name in VENDOR_OPTIONS if name in fields})
    refuse_rest(fields, _INERT, _REFUSED)
    _check_state(request)
    return request


def _repeated(take: _Taker, fields: dict[str, Any], metadata: dict[str, str]) -> dict[str, Any]:
    """Fields that the response has as the request had them."""
    return {
        "instructions": take("instructions", string, None),
        "max_tool_calls": take("max_tool_calls", lambda value, path: integer(value, path, 1, 2**31), None),
        "metadata": metadata,
        "prompt_cache_key": take("prompt_cache_key", short, None),
        "safety_identifier": fields.get("safety_identifier"),
        "truncation": take("truncation", lambda value, path: one_of(value, path, ("auto", "disabled")), "disabled"),
        "user": fields.get("user"),
    }


class _Taker:
    """Takes fields out of a request, checked; a field that is null counts as one that is not there."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __call__(self, name: str, check: Callable[[Any, str], Any], default: Any) -> Any:
        value = self._fields.pop(name, None)
        return default if value is None else check(value, name)


def _anything(value: Any, path: str) -> Any:
    return value


def _tools(take: _Taker, left_out: Collection[str]) -> tuple[Tools, tuple[Any, Any] | None]:
    """The tools, and the choice among them for the engine and as it was sent."""
    tools: Tools = take("tools", lambda value, path: read_tools(value, left_out, path), Tools())
    sent = take("tool_choice", _anything, None)
    if sent is None:
        return tools, None
    if not tools.functions and sent not in ("none", "auto"):
        refuse("tool_choice", sent, "it needs `tools`")
    choice, tools = choice_for(sent, tools)
    return tools, (choice, sent)


def _sampling(take: _Taker, options: dict[str, Any]) -> dict[str, Any]:
    """Put the numbers of sampling into `options`; returns them as the response repeats them."""
    bounds = {
        "temperature": (0, 2, 1.0),
        "top_p": (0, 1, 1.0),
        "presence_penalty": (-2, 2, 0.0),
        "frequency_penalty": (-2, 2, 0.0),
    }
    echo: dict[str, Any] = {}
    for name, (low, high, default) in bounds.items():
        value = take(name, _anything, None)
        if value is not None:
            number(value, name, low, high)
            options[name] = value
        echo[name] = default if value is None else value
    most = take("max_output_tokens", lambda value, path: integer(value, path, 1, 2**31), None)
    if most is not None:
        options["max_completion_tokens"] = most
    return echo | {"max_output_tokens": most}


def _text(take: _Taker, options: dict[str, Any]) -> dict[str, Any]:
    """Put `text` into `options`; returns how the response repeats it, and `top_logprobs`."""
    text: dict[str, Any] = dict(take("text", mapping, {}))
    form = text.pop("format", None)
    verbosity = text.pop("verbosity", None)
    for name, value in text.items():
        refuse(f"text.{name}", value, "only `format` and `verbosity` are known here", "unknown_parameter")
    echo: dict[str, Any] = {"format": {"type": "text"}}
    if form is not None:
        echo["format"] = _format(mapping(form, "text.format"), options)
    if verbosity is not None:
        echo["verbosity"] = one_of(verbosity, "text.verbosity", ("low", "medium", "high"))
        # The middle is what a model does by itself.
        options |= {"verbosity": verbosity} if verbosity != "medium" else {}
    top = take("top_logprobs", lambda value, path: integer(value, path, 0, 20), 0)
    return {"text": echo, "top_logprobs": top}


def _format(form: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    match kind := one_of(form.get("type"), "text.format.type", ("text", "json_object", "json_schema")):
        case "text":
            return {"type": kind}
        case "json_object":
            options["response_format"] = {"type": kind}
            return {"type": kind}
    schema: dict[str, Any] = {
        "name": short(form.get("name"), "text.format.name"),
        "schema": mapping(form.get("schema"), "text.format.schema"),
    }
    if form.get("description") is not None:
        schema["description"] = string(form["description"], "text.format.description")
    strict = form.get("strict")
    if strict is not None:
        schema |= {"strict": boolean(strict, "text.format.strict")}
    options["response_format"] = {"type": kind, "json_schema": schema}
    return {"type": kind, "description": None, **schema, "strict": bool(strict)}


def _reasoning(take: _Taker, options: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Put the effort into `options`; returns how the response repeats it, and whether a summary is wanted."""
    given = dict(take("reasoning", mapping, {}))
    effort, summary = given.pop("effort", None), given.pop("summary", None)
    older = given.pop("generate_summary", None)
    summary = older if summary is None else summary
    if effort is not None:
        options["reasoning_effort"] = one_of(effort, "reasoning.effort", EFFORTS)
    if summary is not None:
        one_of(summary, "reasoning.summary", SUMMARIES)
    for name, value in given.items():
        if value is not None and (name, value) not in (("context", "auto"), ("mode", "standard")):
            refuse(f"reasoning.{name}", value, "only `effort` and `summary` are known here", "unknown_parameter")
    return {"effort": effort, "summary": summary}, summary is not None


def _include(take: _Taker, options: dict[str, Any], top_logprobs: int) -> tuple[str, ...]:
    given = take("include", array, [])
    include = tuple(one_of(value, f"include[{index}]", INCLUDABLE) for index, value in enumerate(given))
    if "message.output_text.logprobs" in include or top_logprobs:
        options["logprobs"] = True
        options |= {"top_logprobs": top_logprobs} if top_logprobs else {}
    return include


def _conversation(value: Any, path: str) -> str:
    if isinstance(value, str):
        return short(value, path)
    return short(mapping(value, path).get("id"), f"{path}.id")


def _stream_options(take: _Taker, stream: bool) -> None:
    value = take("stream_options", _anything, None)
    if value is None:
        return
    if not stream:
        refuse("stream_options", value, "it needs `stream: true`")
    for name, rest in mapping(value, "stream_options").items():
        if name != "include_obfuscation":
            refuse(f"stream_options.{name}", rest, "only `include_obfuscation` is known", "unknown_parameter")
        if rest is not None and boolean(rest, f"stream_options.{name}"):
            refuse(f"stream_options.{name}", rest, "events are not padded here", "unsupported_value")


def _check_state(request: ResponsesRequest) -> None:
    if request.previous is not None and request.conversation is not None:
        refuse("previous_response_id", request.previous, "send it or `conversation`, not both", "invalid_value")
    if request.background and request.store is False:
        refuse("background", True, "it needs `store: true`, since it is asked for later", "invalid_value")
    if request.conversation is not None and request.store is False:
        refuse("store", False, "a response in a `conversation` is kept with it", "invalid_value")


def leading_system(instructions: str | None, items: Sequence[Item]) -> tuple[tuple[Message, ...], tuple[Item, ...]]:
    """The system run that items begin with, instructions first, and the other items.

    Where there is nothing else, the last one is left to be answered.
    """
    first = (Message("system", (Text(instructions),)),) if instructions else ()
    end = 0
    for item in items[:-1]:
        if not (isinstance(item, Message) and item.role in ("system", "developer")):
            break
        end += 1
    return (*first, *(item for item in items[:end] if isinstance(item, Message))), tuple(items[end:])


def conversation_items(items: Sequence[WireItem], instructions: str | None) -> list[Item]:
    """The items of a whole conversation in neutral terms.

    Raises:
        BadRequest: there is nothing to answer.
    """
    found = neutral_items(items)
    if not found and not instructions:
        raise BadRequest("`input` holds nothing to answer; send a message.", param="input", code="empty_input")
    # Instructions alone are to be answered, as a system message alone is.
    return found or [Message("user", (Text(""),))]
