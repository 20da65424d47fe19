"""Responses requests: every public field is known, and what it means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from macaron.conversation import Message, Text, ToolCall, ToolResult
from macaron.errors import BadRequest
from macaron.wire.responses import ResponsesRequest, responses_request
from macaron.wire.responses_items import neutral_items


def read(**fields: Any) -> ResponsesRequest:
    return responses_request(json.dumps({"model": "m", "input": "hi", **fields}).encode())


def refused(**fields: Any) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        read(**fields)
    return caught.value


def items_of(*items: dict[str, Any]) -> list[Any]:
    return neutral_items([item for item in read(input=list(items)).input if isinstance(item, dict)])


def test_every_public_field_of_the_official_client_is_known_here() -> None:
    codes = {name: refused(**{name: [{"no": 5}]}).code for name in ResponseCreateParamsBase.__annotations__}
    assert [name for name, code in codes.items() if code == "unknown_parameter"] == []


def test_null_is_the_same_as_leaving_a_field_out() -> None:
    nothing = dict.fromkeys(name for name in ResponseCreateParamsBase.__annotations__ if name not in ("model", "input"))
    assert read(**nothing) == read()


def test_a_string_is_a_message_of_the_users() -> None:
    (item,) = read(input="hi").input
    assert isinstance(item, dict)
    assert neutral_items([item]) == [Message("user", (Text("hi"),))]


def test_a_message_needs_no_type() -> None:
    assert items_of({"role": "assistant", "content": "a", "phase": "commentary"}) == [
        Message("assistant", (Text("a"),))
    ]


def test_calls_and_outputs_of_both_kinds_are_read() -> None:
    assert items_of(
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}", "namespace": "box"},
        {"type": "function_call_output", "call_id": "1", "output": "a"},
        {"type": "custom_tool_call", "call_id": "2", "name": "g", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "b"}]},
    ) == [
        ToolCall("1", "box__f", "{}"),
        ToolResult("1", (Text("a"),)),
        ToolCall("2", "g", '{"input":"x"}'),
        ToolResult("2", (Text("b"),)),
    ]


def test_sealed_reasoning_is_read_as_nothing() -> None:
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque"}
    assert items_of(sealed, {"role": "user", "content": "a"}) == [Message("user", (Text("a"),))]


def test_the_end_user_is_named_by_any_of_three_fields() -> None:
    assert read(safety_identifier="a", user="b").user == "a"
    assert read(user="b", metadata={"user_id": "c"}).user == "b"
    assert read(metadata={"user_id": "c"}).user == "c"


@pytest.mark.parametrize(
    "name", ["lora", "id_slot", "cache_prompt", "grammar", "chat_template", "cache_salt", "priority"]
)
def test_a_field_that_steers_the_engine_past_us_is_refused(name: str) -> None:
    assert (refused(**{name: 1}).param, refused(**{name: 1}).code) == (name, "unknown_parameter")
