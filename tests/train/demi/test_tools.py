"""Our own tool rows: every call is right by its tool's schema, and what a row says hangs together."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.train.data.rows import SftRow
from macaron.train.demi.tools import own
from macaron.train.demi.tools.bank import families
from macaron.train.demi.tools.shape import compact, shorten
from macaron.train.demi.tools.spec import Tool, speak

from .building import build

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value follows the part of JSON Schema that our tools use."""
    kind = schema["type"]
    if type(value) not in _TYPES[kind]:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if kind == "array":
        return all(fits(each, schema["items"]) for each in value)
    if kind != "object":
        return True
    known = schema["properties"]
    return (
        set(value) <= set(known)
        and set(schema["required"]) <= set(value)
        and all(fits(each, known[name]) for name, each in value.items())
    )


def all_tools() -> list[Tool]:
    return [tool for tools in families().values() for tool in tools]


def calls_of(row: SftRow) -> list[tuple[str, str]]:
    return [
        (call["function"]["name"], call["function"]["arguments"])
        for message in row.messages
        for call in message.get("tool_calls", ())
    ]


@pytest.fixture(scope="module")
def rows() -> list[SftRow]:
    return build(own.rows, 700)


def test_every_call_follows_the_schema_of_a_tool_that_is_shown(rows: list[SftRow]) -> None:
    for row in rows:
        shown = {tool["function"]["name"]: tool["function"]["parameters"] for tool in row.tools}
        for name, arguments in calls_of(row):
            assert fits(json.loads(arguments), shown[name]), (row.id, name, arguments)


def test_arguments_come_in_the_schema_s_order(rows: list[SftRow]) -> None:
    for row in rows:
        orders = {tool["function"]["name"]: list(tool["function"]["parameters"]["properties"]) for tool in row.tools}
        for name, arguments in calls_of(row):
            given_order = list(json.loads(arguments))
            assert given_order == [parameter for parameter in orders[name] if parameter in given_order]


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(rows: list[SftRow]) -> None:
    assert build(own.rows, 700) == rows
    assert build(own.rows, 700, seed="b") != rows


def test_a_row_shows_two_to_six_tools_of_different_names(rows: list[SftRow]) -> None:
    for row in rows:
        names = [tool["function"]["name"] for tool in row.tools]
        assert 2 <= len(set(names)) == len(names) <= 6


def test_every_tool_is_called_by_some_row(rows: list[SftRow]) -> None:
    assert {row.group.partition(".")[2] for row in rows} == {tool.name for tool in all_tools()}
    assert len(all_tools()) >= 80


def test_the_kinds_of_rows_have_their_shares(rows: list[SftRow]) -> None:
    without_call = sum(not calls_of(row) for row in rows) / len(rows)
    parallel = sum(any(len(message.get("tool_calls", ())) == 2 for message in row.messages) for row in rows) / len(rows)
    assert 0.07 <= without_call <= 0.12
    assert 0.04 <= parallel <= 0.06


def test_an_answer_after_a_result_names_nothing_that_was_not_said_or_returned(rows: list[SftRow]) -> None:
    for row in rows:
        for before, message in zip(row.messages[1:], row.messages[2:], strict=False):
            if before["role"] != "tool":
                continue
            known = json.dumps([each for each in row.messages if each is not message])
            for word in re.findall(r"\d[\d.:-]*\d|\d", message["content"]):
                assert word in known, (row.id, message["content"])


def test_no_placeholder_is_left(rows: list[SftRow]) -> None:
    for row in rows:
        for message in row.messages:
            if message["role"] in ("user", "assistant") and message.get("content"):
                assert not set("{}[]") & set(message["content"]), message["content"]


def test_every_request_and_sentence_uses_only_what_the_tool_has() -> None:
    for tool in all_tools():
        for request in (*tool.requests, *(ask.request for ask in tool.asks)):
            speak(tool, request, Random(1))
        for ask in tool.asks:
            spoken = speak(tool, ask.request, Random(1))
            assert not set(tool.required) <= set(spoken.said), (tool.name, ask.request)


def test_what_a_sentence_tells_is_said_in_every_request_or_returned() -> None:
    for tool in all_tools():
        if tool.done is not None:
            known = dict.fromkeys([*tool.required, *tool.done.returned], "x")
            assert tool.done.sentence.format_map(known)


def test_names_are_spelt_in_several_ways(rows: list[SftRow]) -> None:
    styles = Counter(
        "dotted" if "." in name else "camel" if name != name.lower() else "snake"
        for row in rows
        for name, _ in calls_of(row)
    )
    assert min(styles[style] for style in ("dotted", "camel", "snake")) > 50


@given(st.text(max_size=200), st.integers(10, 80))
def test_a_shortened_text_is_never_much_longer_than_asked(text: str, width: int) -> None:
    assert len(shorten(text, width)) <= width + 1


def test_the_first_sentence_does_not_end_at_an_example() -> None:
    text = "The city, e.g. Rome. It must exist."
    assert shorten(text, 60) == "The city, e.g. Rome."
    assert shorten(text, 60, full=True) == text


def test_a_full_schema_tells_defaults_and_whole_descriptions() -> None:
    schema = {"type": "string", "description": "The unit. It is long.", "default": "a", "minLength": 1}
    assert compact(schema, width=40, full=True) == {
        "type": "string",
        "description": "The unit. It is long.",
        "default": "a",
    }


def test_a_compact_schema_keeps_types_values_and_required_names() -> None:
    schema = {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "enum": ["a", "b"], "description": "The unit. It is long.", "default": "a"},
            "list": {"type": "array", "items": {"type": "integer", "minimum": 3}},
        },
        "required": ["list"],
    }
    assert compact(schema, width=40) == {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "enum": ["a", "b"], "description": "The unit."},
            "list": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["list"],
    }
