"""The fields of a Chat Completions request that are not its messages: which go to the engine, which are ours, which are
refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from macaron.errors import BadRequest
from macaron.wire.fields import array, boolean, integer, mapping, number, one_of, refuse, short, string

MAX_TOOLS = 512


_Check = Callable[[Any, str], Any]


def _number(low: float, high: float) -> _Check:
    return lambda value, path: number(value, path, low, high)


def _integer(low: int, high: int) -> _Check:
    return lambda value, path: integer(value, path, low, high)


def _stop(value: Any, path: str) -> Any:
    if isinstance(value, str):
        return value
    if len(array(value, path)) > 16:
        refuse(path, value, "it may hold at most 16 strings")
    return [string(item, f"{path}[{index}]") for index, item in enumerate(value)]


def _logit_bias(value: Any, path: str) -> Any:
    for token, bias in mapping(value, path).items():
        number(bias, f"{path}.{token}", -100, 100)
    return value


def _tools(value: Any, path: str) -> Any:
    if len(array(value, path)) > MAX_TOOLS:
        raise BadRequest(f"`{path}` may hold at most {MAX_TOOLS} tools.", param=path)
    for index, raw in enumerate(value):
        where = f"{path}[{index}]"
        kind = one_of(mapping(raw, where).get("type"), f"{where}.type", ("function",))
        string(mapping(raw.get(kind), f"{where}.{kind}").get("name"), f"{where}.{kind}.name")
    return value


def _tool_choice(value: Any, path: str) -> Any:
    if isinstance(value, str):
        return one_of(value, path, ("none", "auto", "required"))
    kind = one_of(mapping(value, path).get("type"), f"{path}.type", ("function", "allowed_tools"))
    inner = mapping(value.get(kind), f"{path}.{kind}")
    if kind == "allowed_tools":
        one_of(inner.get("mode"), f"{path}.{kind}.mode", ("auto", "required"))
        array(inner.get("tools"), f"{path}.{kind}.tools")
    else:
        string(inner.get("name"), f"{path}.{kind}.name")
    return value


def _response_format(value: Any, path: str) -> Any:
    kind = one_of(mapping(value, path).get("type"), f"{path}.type", ("text", "json_object", "json_schema"))
    if kind == "json_schema":
        schema = mapping(value.get("json_schema"), f"{path}.json_schema")
        string(schema.get("name"), f"{path}.json_schema.name")
        mapping(schema.get("schema", {}), f"{path}.json_schema.schema")
    return value


def _public_checks() -> dict[str, _Check]:
    """The public fields that go to the engine."""
    return {
        "temperature": _number(0, 2),
        "top_p": _number(0, 1),
        "frequency_penalty": _number(-2, 2),
        "presence_penalty": _number(-2, 2),
        "logit_bias": _logit_bias,
        "logprobs": boolean,
        "top_logprobs": _integer(0, 20),
        "seed": _integer(-(2**63), 2**63 - 1),
        "stop": _stop,
        "max_tokens": _integer(1, 2**31),
        "max_completion_tokens": _integer(1, 2**31),
        "response_format": _response_format,
        "tools": _tools,
        "tool_choice": _tool_choice,
        "parallel_tool_calls": boolean,
        "reasoning_effort": lambda value, path: one_of(
            value, path, ("none", "minimal", "low", "medium", "high", "xhigh", "max")
        ),
    }


def _vendor_checks() -> dict[str, _Check]:
    """Fields beyond the public ones that engines of this field read; an engine refuses those it does not."""
    return {
        "top_k": _integer(-1, 2**31),
        "min_p": _number(0, 1),
        "typical_p": _number(0, 1),
        "repetition_penalty": _number(0, 10),
        "repeat_penalty": _number(0, 10),
        "repeat_last_n": _integer(-1, 2**31),
        "length_penalty": _number(-10, 10),
        "min_tokens": _integer(0, 2**31),
        "ignore_eos": boolean,
        "stop_token_ids": array,
        "bad_words": _stop,
        "include_stop_str_in_output": boolean,
        "skip_special_tokens": boolean,
        "structured_outputs": mapping,
        "regex": string,
        "ebnf": string,
        "verbosity": string,
    }


VENDOR_OPTIONS = frozenset(_vendor_checks())
"""Fields that only some engines read."""

_CHECKS = _public_checks() | _vendor_checks()


def vendor_options(fields: dict[str, Any]) -> dict[str, Any]:
    """Take the fields that only some engines read out of `fields`, checked."""
    taken = {name: fields.pop(name) for name in [name for name in fields if name in VENDOR_OPTIONS]}
    return {name: _CHECKS[name](value, name) for name, value in taken.items() if value is not None}


def engine_options(fields: dict[str, Any]) -> dict[str, Any]:
    """Take the fields that go to the engine out of `fields`, checked."""
    options = {}
    for name in [name for name in fields if name in _CHECKS]:
        value = fields.pop(name)
        if value is not None:
            options[name] = _CHECKS[name](value, name)
    _thinking(fields, options)
    if "top_logprobs" in options and not options.get("logprobs"):
        raise BadRequest("`top_logprobs` needs `logprobs: true`.", param="top_logprobs", code="invalid_value")
    if not options.get("tools"):
        options.pop("tools", None)
        choice = options.pop("tool_choice", None)
        options.pop("parallel_tool_calls", None)
        if choice not in (None, "none", "auto"):
            refuse("tool_choice", choice, "it needs `tools`")
    if "max_tokens" in options and "max_completion_tokens" in options:
        raise BadRequest("Send `max_completion_tokens` or `max_tokens`, not both.", param="max_tokens")
    return options


def _thinking(fields: dict[str, Any], options: dict[str, Any]) -> None:
    """Take `reasoning`, as some servers of this format spell it. Thoughts are shown whole, which is more than a summary
    of any kind."""
    given = fields.pop("reasoning", None)
    for name, value in {} if given is None else mapping(given, "reasoning").items():
        path = f"reasoning.{name}"
        if name == "effort" and value is not None:
            effort = _CHECKS["reasoning_effort"](value, path)
            if options.setdefault("reasoning_effort", effort) != effort:
                refuse(path, value, "`reasoning_effort` says otherwise")
        elif name == "summary" and value is not None:
            one_of(value, path, ("auto", "concise", "detailed"))
        elif value is not None:
            refuse(path, value, "only `effort` and `summary` are known here", "unknown_parameter")


def usage_wanted(fields: dict[str, Any], stream: bool) -> bool:
    """Take `stream_options`: whether the stream ends with a usage chunk."""
    value = fields.pop("stream_options", None)
    if value is None:
        return False
    if not stream:
        refuse("stream_options", value, "it needs `stream: true`")
    options = dict(mapping(value, "stream_options"))
    include = boolean(options.pop("include_usage", False), "stream_options.include_usage")
    if boolean(options.pop("include_obfuscation", False), "stream_options.include_obfuscation"):
        refuse("stream_options.include_obfuscation", True, "chunks are not padded here", "unsupported_value")
    for name, rest in options.items():
        refuse(f"stream_options.{name}", rest, "only `include_usage` is known here", "unknown_parameter")
    return include


def client_metadata(fields: dict[str, Any]) -> dict[str, str]:
    """Take `metadata`: up to 16 strings of the client's."""
    value = fields.pop("metadata", None)
    if value is None:
        return {}
    if len(mapping(value, "metadata")) > 16:
        raise BadRequest("`metadata` may hold at most 16 pairs.", param="metadata", code="invalid_value")
    return {key: short(item, f"metadata.{key}") for key, item in value.items()}


def end_user(fields: dict[str, Any], metadata: dict[str, str]) -> str:
    """Take the fields that name the end user; empty where none does."""
    given = [(name, fields.pop(name, None)) for name in ("safety_identifier", "user")]
    names = [short(value, name) for name, value in given if value is not None]
    return next((name for name in (*names, metadata.get("user_id", "")) if name), "")


INERT: dict[str, tuple[Any, ...]] = {
    "store": (False,),
    "service_tier": ("auto", "default"),
    "modalities": (["text"],),
    "prompt_cache_retention": ("in_memory", "in-memory", "24h"),
}

REFUSED = {
    "audio": "spoken answers are not made here",
    "function_call": "use `tool_choice`",
    "functions": "use `tools`",
    "moderation": "no moderation service is configured",
    "prediction": "predicted outputs are not supported",
    "prompt_cache_options": "how long prompts stay cached is the engine's choice; `prompt_cache_key` is a hint",
    "web_search_options": "no hosted web search is configured; offer a tool instead",
}
