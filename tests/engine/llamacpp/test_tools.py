"""Tool fields and response formats are enforced, with the real engine and its real grammars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from macaron.engine.llamacpp.engine import LlamaCppEngine
from macaron.engine.llamacpp.grammar import json_grammar
from macaron.engine.llamacpp.tools import plan_tools
from macaron.errors import BadRequest
from tests.engine.llamacpp.hops import (
    SYSTEM,
    WEATHER,
    calls_in,
    events_of,
    finish_in,
    hop,
    joined_calls,
    text_in,
    usage_in,
    user,
)

engine_test = pytest.mark.engine
LIST_FILES = {"type": "function", "function": {"name": "list_files", "parameters": {"type": "object"}}}
TOOLS = [WEATHER, LIST_FILES]
NAMED = {"type": "function", "function": {"name": "get_weather"}}


def fits_weather(arguments: str) -> bool:
    value = msgspec.json.decode(arguments)
    return (
        value["city"] in ("Paris", "Rome", "New York")
        and value["unit"] in ("celsius", "fahrenheit")
        and set(value) <= {"city", "unit", "days"}
        and isinstance(value.get("days", 0), int)
    )


# The plan


def test_free_choice_has_no_grammar() -> None:
    plan = plan_tools({"tools": TOOLS})
    assert plan.grammar is None
    assert plan.callable == {"get_weather", "list_files"}
    assert plan.shown == TOOLS


def test_choice_none_hides_the_tools() -> None:
    plan = plan_tools({"tools": TOOLS, "tool_choice": "none"})
    assert (plan.shown, plan.callable, plan.grammar) == ((), frozenset(), None)


def test_one_call_at_a_time_ends_at_the_first() -> None:
    assert plan_tools({"tools": TOOLS, "parallel_tool_calls": False}).stop == ("</tool_call>",)


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}},
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]},
    ],
)
def test_allowed_tools_narrow_what_may_be_called_but_not_what_is_shown(choice: dict[str, Any]) -> None:
    plan = plan_tools({"tools": TOOLS, "tool_choice": choice})
    assert plan.callable == {"get_weather"}
    assert plan.shown == TOOLS
    assert plan.grammar is None


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"tools": "all"}, "tools"),
        ({"tools": [LIST_FILES, {"type": "web_search"}]}, "tools.1.type"),
        ({"tools": [{"type": "function"}]}, "tools.0"),
        ({"tools": TOOLS, "tool_choice": "always"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "x", "tools": []}}, "tool_choice.mode"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
    ],
)
def test_what_cannot_be_enforced_is_refused_with_its_path(options: dict[str, Any], param: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        plan_tools(options)
    assert refusal.value.param == param


# The engine


@engine_test
async def test_required_call_is_a_call_with_arguments_after_the_schema(engine: LlamaCppEngine) -> None:
    events = await events_of(
        engine,
        hop(
            "Weather in Rome?",
            "one",
            tools=[WEATHER],
            tool_choice="required",
            parallel_tool_calls=False,
            max_tokens=120,
            temperature=1,
            seed=1,
        ),
    )
    ((name, arguments),) = joined_calls(events)
    assert name == "get_weather"
    assert fits_weather(arguments)
    assert text_in(events) == ""
    assert [finish.reason for finish in finish_in(events)] == ["tool_calls"]


@engine_test
async def test_arguments_are_streamed_in_pieces(engine: LlamaCppEngine) -> None:
    events = await events_of(engine, hop("Weather in Rome?", tools=[WEATHER], tool_choice=NAMED, max_tokens=80))
    calls = calls_in(events)
    assert len(calls) > 4
    assert calls[0].call_id
    assert calls[0].name == "get_weather"
    assert all(call.call_id is None and call.name is None for call in calls[1:])


@engine_test
async def test_named_function_is_called_once(engine: LlamaCppEngine) -> None:
    events = await events_of(engine, hop("List my files.", tools=TOOLS, tool_choice=NAMED, max_tokens=80))
    ((name, arguments),) = joined_calls(events)
    assert name == "get_weather"
    assert fits_weather(arguments)


@engine_test
async def test_required_without_parallel_calls_gives_one(engine: LlamaCppEngine) -> None:
    request = hop(
        "Call everything.", "two", tools=TOOLS, tool_choice="required", parallel_tool_calls=False, max_tokens=150
    )
    assert len(joined_calls(await events_of(engine, request))) == 1


@engine_test
async def test_second_round_of_a_tool_loop_reads_only_the_result(engine: LlamaCppEngine) -> None:
    asked = [SYSTEM, user("What is the weather in Rome?")]
    options: dict[str, Any] = {"tools": [WEATHER], "max_tokens": 80}
    events = await events_of(engine, hop(asked, "one", **options, tool_choice="required", parallel_tool_calls=False))
    first = usage_in(events)
    ((name, arguments),) = joined_calls(events)
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees"}
    more = [*asked, {"role": "assistant", "content": None, "tool_calls": [call]}, result]
    second = usage_in(await events_of(engine, hop(more, "one", **options)))
    # What the model wrote is read back byte for byte, though the grammar may have cut its last tokens another way.
    assert second.cached > first.prompt + first.completion // 2


@engine_test
async def test_call_that_is_not_json_is_still_shown(engine: LlamaCppEngine) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "not {json"}}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "bad arguments"}
    messages = [SYSTEM, user("Weather?"), {"role": "assistant", "content": "", "tool_calls": [call]}, result]
    assert finish_in(await events_of(engine, hop(messages, tools=[WEATHER], max_tokens=4)))


@engine_test
async def test_tools_are_counted(engine: LlamaCppEngine) -> None:
    options: dict[str, Any] = {"tools": TOOLS, "max_tokens": 1}
    counted = await engine.count_tokens([SYSTEM, user("Hi")], options)
    assert counted == usage_in(await events_of(engine, hop([SYSTEM, user("Hi")], **options))).prompt


async def answer_json(engine: LlamaCppEngine, response_format: Mapping[str, Any]) -> Any:
    request = hop("Describe a person.", "two", response_format=response_format, max_tokens=300, temperature=1, seed=3)
    return msgspec.json.decode(text_in(await events_of(engine, request)))


PERSON = {
    "type": "object",
    "properties": {
        "kind": {"const": "person"},
        "age": {"type": "integer"},
        "mood": {"enum": ["good", "bad", None, 3]},
        "tags": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3},
        "friend": {"anyOf": [{"$ref": "#/$defs/friend"}, {"type": "null"}]},
        "note": {"type": ["null", "boolean"]},
    },
    "required": ["kind", "age", "mood", "tags", "friend", "note"],
    "$defs": {"friend": {"type": "object", "properties": {"close": {"type": "boolean"}}, "required": ["close"]}},
}


@engine_test
async def test_json_schema_is_followed(engine: LlamaCppEngine) -> None:
    value = await answer_json(engine, {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}})
    assert list(value) == PERSON["required"]
    assert value["kind"] == "person"
    assert isinstance(value["age"], int)
    assert value["mood"] in ("good", "bad", None, 3)
    assert 2 <= len(value["tags"]) <= 3
    assert all(isinstance(tag, bool) for tag in value["tags"])
    assert value["friend"] is None or isinstance(value["friend"]["close"], bool)
    assert value["note"] in (None, True, False)


@engine_test
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}},
        {
            "type": "object",
            "properties": {'quote " \\ \n é': {"const": 'x " \\ \n 你'}},
            "required": ['quote " \\ \n é'],
        },
        {"type": "object", "additionalProperties": False},
        {"type": "array", "items": {"type": "null"}, "maxItems": 2},
        {"type": "array", "maxItems": 0},
        {"$ref": "#"},
        {
            "$ref": "#/$defs/list",
            "$defs": {"list": {"type": "array", "items": {"$ref": "#/$defs/list"}, "maxItems": 1}},
        },
        {"$ref": "#/nowhere"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}},
        {"allOf": [{"type": "string"}]},
        {"enum": []},
        {"type": []},
        {"type": "object", "properties": {f"p{number}": {"type": "null"} for number in range(2000)}},
    ],
)
async def test_grammar_of_any_schema_is_one_the_engine_accepts(engine: LlamaCppEngine, schema: dict[str, Any]) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert finish_in(await events_of(engine, hop("Hi", response_format=wanted, max_tokens=12)))


@engine_test
async def test_json_object_is_an_object(engine: LlamaCppEngine) -> None:
    request = hop("Give me JSON.", response_format={"type": "json_object"}, max_tokens=24)
    assert text_in(await events_of(engine, request)).startswith("{")


@engine_test
async def test_schema_beside_free_tools_allows_a_call_or_the_schema(engine: LlamaCppEngine) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": "done"}}}
    events = await events_of(engine, hop("Hi", "one", tools=TOOLS, response_format=wanted, max_tokens=150))
    assert text_in(events) == '"done"' or joined_calls(events)


def test_nesting_is_bounded() -> None:
    schema: dict[str, Any] = {"type": "null"}
    for _ in range(5000):
        schema = {"type": "array", "items": schema}
    assert len(json_grammar(schema)) < 5000
