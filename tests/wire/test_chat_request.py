"""Chat Completions requests: what is read, what goes to the engine, what is refused, each by its path."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from macaron.conversation import Media, Message, Reasoning, Text, ToolCall, ToolResult
from macaron.errors import BadRequest
from macaron.wire.chat import ChatRequest, chat_request
from macaron.wire.errors import MAX_MESSAGE, MAX_PARAM, openai_error

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}


def body(messages: Any = None, **fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [USER] if messages is None else messages, **fields}).encode()


def read(messages: Any = None, **fields: Any) -> ChatRequest:
    return chat_request(body(messages, **fields))


def refused(messages: Any = None, **fields: Any) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        read(messages, **fields)
    return caught.value


PASSED: dict[str, list[Any]] = {
    "temperature": [0, 0.7, 2],
    "top_p": [0, 1, 0.5],
    "frequency_penalty": [-2, 2, 0.1],
    "presence_penalty": [-2, 2, 0.1],
    "logit_bias": [{}, {"50256": -100}],
    "logprobs": [True, False],
    "seed": [0, -1, 2**63 - 1],
    "stop": ["x", ["a", "b"]],
    "max_tokens": [1, 32_000],
    "max_completion_tokens": [1, 32_000],
    "response_format": [
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}, "strict": True}},
    ],
    "reasoning_effort": ["none", "minimal", "low", "medium", "high", "xhigh"],
    "verbosity": ["low", "high"],
    "top_k": [40],
    "min_p": [0.05],
    "structured_outputs": [{"regex": "a+"}],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in PASSED.items() for value in values])
def test_a_field_of_the_engines_is_passed_as_it_was_written(name: str, value: Any) -> None:
    assert read(**{name: value}).options == {name: value}


@pytest.mark.parametrize("choice", ["none", "auto", "required", {"type": "function", "function": {"name": "weather"}}])
def test_every_form_of_tool_choice_is_passed_beside_tools(choice: Any) -> None:
    chat = read(tools=[TOOL], tool_choice=choice, parallel_tool_calls=False)
    assert chat.tools == (TOOL,)
    assert chat.options == {"tool_choice": choice, "parallel_tool_calls": False}


def test_allowed_tools_is_a_tool_choice() -> None:
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOL]}}
    assert read(tools=[TOOL], tool_choice=choice).options == {"tool_choice": choice}


def test_a_forced_tool_choice_without_tools_is_refused() -> None:
    assert refused(tool_choice="required").param == "tool_choice"


@pytest.mark.parametrize("name", [*PASSED, "tools", "tool_choice", "stream", "n", "user", "metadata", "store", "audio"])
def test_null_is_the_same_as_leaving_a_field_out(name: str) -> None:
    assert read(**{name: None}) == read()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "1"),
        ("temperature", 2.1),
        ("temperature", True),
        ("top_p", -0.1),
        ("frequency_penalty", [1]),
        ("logit_bias", [1]),
        ("logprobs", 1),
        ("seed", 1.5),
        ("seed", 10**30),
        ("stop", 3),
        ("stop", ["a"] * 17),
        ("max_tokens", 0),
        ("max_tokens", 10**40),
        ("max_completion_tokens", "8"),
        ("n", 0),
        ("n", 17),
        ("n", True),
        ("stream", "yes"),
        ("tools", {}),
        ("tools", [TOOL] * 513),
        ("parallel_tool_calls", "no"),
        ("reasoning_effort", "huge"),
        ("response_format", "json"),
        ("user", 7),
        ("user", []),
        ("user", 0),
        ("user", "u" * 513),
        ("safety_identifier", False),
        ("prompt_cache_key", 1),
        ("prompt_cache_key", "k" * 513),
        ("metadata", []),
        ("metadata", "x"),
        ("metadata", {str(number): "x" for number in range(17)}),
        ("model", 5),
        ("messages", {}),
        ("messages", "hi"),
        ("messages", []),
        ("stream_options", {"include_usage": True}),
        ("top_logprobs", 3),
    ],
)
def test_a_wrong_value_is_refused_with_the_name_of_its_field(name: str, value: Any) -> None:
    fields = {"model": "m", "messages": [USER], name: value}
    with pytest.raises(BadRequest) as caught:
        chat_request(json.dumps(fields).encode())
    assert caught.value.param == name
    assert f"`{name}`" in caught.value.message


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"stop": ["a", 1]}, "stop[1]"),
        ({"logit_bias": {"5": 101}}, "logit_bias.5"),
        ({"tools": [TOOL, {"type": "web_search"}]}, "tools[1].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tools": [TOOL], "tool_choice": "any"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function"}}, "tool_choice.function"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format.json_schema.name"),
        ({"metadata": {"user_id": 5}}, "metadata.user_id"),
        ({"metadata": {"user_id": "u" * 513}}, "metadata.user_id"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"stream": True, "stream_options": {"other": 1}}, "stream_options.other"),
        ({"stream": True, "stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
        ({"max_tokens": 5, "max_completion_tokens": 5}, "max_tokens"),
    ],
)
def test_a_wrong_value_inside_a_field_is_refused_with_its_path(fields: dict[str, Any], param: str) -> None:
    assert refused(**fields).param == param


@pytest.mark.parametrize(
    "name",
    [
        "lora",
        "lora_request",
        "lora_adapters",
        "id_slot",
        "cache_prompt",
        "grammar",
        "chat_template",
        "chat_template_kwargs",
        "add_generation_prompt",
        "continue_final_message",
        "cache_salt",
        "priority",
        "kv_transfer_params",
        "guided_choice",
        "extra_body",
        "__proto__",
    ],
)
def test_a_field_that_steers_the_engine_past_us_is_refused(name: str) -> None:
    error = refused(**{name: [{"id": 1, "scale": 1.0}]})
    assert (error.status, error.param, error.code) == (400, name, "unknown_parameter")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("audio", {"voice": "x", "format": "wav"}),
        ("function_call", "auto"),
        ("functions", [{"name": "f"}]),
        ("moderation", {"model": "omni"}),
        ("prediction", {"type": "content", "content": "x"}),
        ("prompt_cache_options", {"mode": "implicit"}),
        ("web_search_options", {}),
        ("store", True),
        ("store", 0),
        ("service_tier", "priority"),
        ("modalities", ["text", "audio"]),
        ("prompt_cache_retention", "forever"),
    ],
)
def test_a_public_field_that_cannot_be_honoured_is_refused_by_name(name: str, value: Any) -> None:
    error = refused(**{name: value})
    assert error.param == name
    assert error.code in ("unsupported_parameter", "unsupported_value")


@pytest.mark.parametrize(
    ("name", "value"),
    [("store", False), ("service_tier", "auto"), ("modalities", ["text"]), ("prompt_cache_retention", "24h")],
)
def test_a_field_that_asks_for_what_happens_anyway_is_accepted(name: str, value: Any) -> None:
    assert read(**{name: value}) == read()


def test_every_public_field_of_the_official_client_is_known_here() -> None:
    codes = {}
    for name in CompletionCreateParamsBase.__annotations__:
        fields = {"model": "m", "messages": [USER], name: [{"no": 5}]}
        with pytest.raises(BadRequest) as caught:
            chat_request(json.dumps(fields).encode())
        codes[name] = caught.value.code
    assert [name for name, code in codes.items() if code == "unknown_parameter"] == []


def test_an_effort_is_read_in_either_spelling() -> None:
    assert read(reasoning={"effort": "low", "summary": "auto"}) == read(reasoning_effort="low")
    assert refused(reasoning={"effort": "low"}, reasoning_effort="high").param == "reasoning.effort"
    assert refused(reasoning={"summary": "long"}).param == "reasoning.summary"
    assert refused(reasoning={"depth": 3}).param == "reasoning.depth"


def test_the_end_user_is_named_by_any_of_three_fields() -> None:
    assert read(safety_identifier="a", user="b").user == "a"
    assert read(user="b", metadata={"user_id": "c"}).user == "b"
    assert read(metadata={"user_id": "c"}).user == "c"
    assert read(user="").user == ""


def test_the_cache_key_is_taken_and_names_nothing() -> None:
    assert read(prompt_cache_key="k") == read()


def test_usage_is_wanted_only_where_the_stream_asks() -> None:
    assert read(stream=True, stream_options={"include_usage": True}).include_usage
    assert not read(stream=True).include_usage
    assert not read(stream=True, stream_options={"include_obfuscation": False}).include_usage


# --- messages


def test_the_leading_system_run_is_apart_from_the_items() -> None:
    chat = read([{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}, USER])
    assert [message.role for message in chat.system] == ["system", "developer"]
    assert chat.items == (Message("user", (Text("hi"),)),)


def test_a_later_system_message_is_an_item() -> None:
    chat = read([USER, {"role": "system", "content": "b"}])
    assert (chat.system, len(chat.items)) == ((), 2)


def test_a_request_of_system_messages_only_still_asks_something() -> None:
    chat = read([{"role": "system", "content": "a"}])
    assert (len(chat.system), len(chat.items)) == (0, 1)


def test_an_assistant_message_is_reasoning_text_and_calls() -> None:
    message = {"role": "assistant", "content": "so", "reasoning_content": "hm", "tool_calls": [CALL]}
    assert read([USER, message]).items[1:] == (
        Reasoning("hm"),
        Message("assistant", (Text("so"),)),
        ToolCall("c1", "weather", "{}"),
    )


@pytest.mark.parametrize("content", [None, "", " \n", []])
def test_an_empty_text_beside_calls_is_no_item(content: Any) -> None:
    if content == []:
        assert refused([USER, {"role": "assistant", "content": content, "tool_calls": [CALL]}]).code == "empty_array"
        return
    items = read([USER, {"role": "assistant", "content": content, "tool_calls": [CALL]}]).items
    assert items[1:] == (ToolCall("c1", "weather", "{}"),)


def test_an_orphan_tool_result_is_read() -> None:
    items = read([USER, {"role": "tool", "tool_call_id": "nobody", "content": "42"}]).items
    assert items[1] == ToolResult("nobody", (Text("42"),))


def test_a_custom_call_keeps_its_kind() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    assert read([USER, {"role": "assistant", "tool_calls": [call]}]).items[1] == ToolCall(
        "c", "sql", "select 1", "custom"
    )


def test_the_client_message_of_an_answer_can_be_sent_back_as_it_is() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "reasoning": "hm",
        "reasoning_content": "hm",
        "tool_calls": [{**CALL, "index": 0}],
    }
    assert read([USER, message]).items[1:] == (Reasoning("hm"), ToolCall("c1", "weather", "{}"))


def test_a_name_goes_along_with_its_message() -> None:
    item = read([{**USER, "name": "bob"}]).items[0]
    assert isinstance(item, Message)
    assert item.extra == {"name": "bob"}


def test_media_is_carried_as_it_was_written() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}}
    item = read([{"role": "user", "content": [{"type": "text", "text": "see"}, part]}]).items[0]
    assert isinstance(item, Message)
    assert item.parts == (Text("see"), Media("image_url", part))


def test_a_hint_about_caching_on_a_text_part_changes_nothing() -> None:
    part = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    assert read([{"role": "user", "content": [part]}]).items == read().items


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("hi", "messages[0]"),
        (None, "messages[0]"),
        ({}, "messages[0].role"),
        ({"role": "function", "content": "x"}, "messages[0].role"),
        ({"role": ["user"], "content": "x"}, "messages[0].role"),
        ({"role": "user"}, "messages[0].content"),
        ({"role": "user", "content": None}, "messages[0].content"),
        ({"role": "user", "content": 5}, "messages[0].content"),
        ({"role": "user", "content": []}, "messages[0].content"),
        ({"role": "user", "content": ["x"]}, "messages[0].content[0]"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content[0].text"),
        ({"role": "user", "content": [{"type": "smell", "smell": {}}]}, "messages[0].content[0].type"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "messages[0].content[0].image_url"),
        ({"role": "user", "content": [{"type": "text", "text": "x", "lora": 1}]}, "messages[0].content[0].lora"),
        ({"role": "user", "content": "x", "tool_calls": [CALL]}, "messages[0].tool_calls"),
        ({"role": "user", "content": "x", "lora": 1}, "messages[0].lora"),
        ({"role": "user", "content": "x", "name": 5}, "messages[0].name"),
        ({"role": "tool", "content": "x"}, "messages[0].tool_call_id"),
        ({"role": "tool", "tool_call_id": "a"}, "messages[0].content"),
        ({"role": "assistant", "tool_calls": {}}, "messages[0].tool_calls"),
        ({"role": "assistant", "tool_calls": [{"type": "function"}]}, "messages[0].tool_calls[0].id"),
        ({"role": "assistant", "tool_calls": [{"id": "a"}]}, "messages[0].tool_calls[0].function"),
        (
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]},
            "messages[0].tool_calls[0].function.name",
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {}}}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"role": "assistant", "tool_calls": [{**CALL, "extra": 1}]}, "messages[0].tool_calls[0].extra"),
        ({"role": "assistant", "content": "x", "audio": {"id": "a"}}, "messages[0].audio"),
        ({"role": "assistant", "content": "x", "function_call": {"name": "f"}}, "messages[0].function_call"),
        ({"role": "assistant", "content": "x", "reasoning": {"a": 1}}, "messages[0].reasoning_content"),
    ],
)
def test_a_wrong_message_is_refused_with_the_path_of_what_is_wrong(message: Any, param: str) -> None:
    assert refused([message]).param == param


# --- bytes


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b"{}x",
        b"{'a':1}",
        b'{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":NaN}',
        b'{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":1e999}',
        b'{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}',
        b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}',
        b'{"model":"m","messages":[{"role":"user","content":"\xed\xa0\x80"}]}',
        b'{"seed":' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"model":"m","messages":' + b"[" * 5000 + b"]" * 5000 + b"}",
        json.dumps({"model": "m"}).encode("utf-16"),
        b"\xef\xbb\xbf{}",
    ],
    ids=lambda data: repr(data[:40]),
)
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(BadRequest) as caught:
        chat_request(data)
    assert caught.value.code == "invalid_json"


@pytest.mark.parametrize("missing", ["model", "messages"])
def test_a_required_field_that_is_missing_is_named(missing: str) -> None:
    fields = {"model": "m", "messages": [USER]}
    del fields[missing]
    with pytest.raises(BadRequest) as caught:
        chat_request(json.dumps(fields).encode())
    assert (caught.value.param, caught.value.code) == (missing, "missing_required_parameter")


def test_of_a_repeated_key_the_last_counts() -> None:
    data = b'{"model":"first","model":"last","n":17,"n":2,"messages":[{"role":"user","content":"hi"}]}'
    chat = chat_request(data)
    assert (chat.model, chat.n) == ("last", 2)


def test_an_error_is_bounded_whatever_name_the_client_chose() -> None:
    error = openai_error(refused(**{"x" * 100_000: 1}))["error"]
    assert len(error["message"]) <= MAX_MESSAGE
    assert len(error["param"]) <= MAX_PARAM


def test_a_null_character_and_an_astral_one_are_text_like_any_other() -> None:
    text = "a\x00b\U0001f600"
    assert read([{"role": "user", "content": text}]).items == (Message("user", (Text(text),)),)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from([*PASSED, "tools", "tool_choice", "messages", "model", "n", "stream", "metadata", "user"])


@given(st.dictionaries(NAMES | st.text(max_size=8), JSON_VALUES, max_size=4), st.booleans())
def test_any_json_is_either_read_or_refused(fields: dict[str, Any], valid: bool) -> None:
    whole = {"model": "m", "messages": [USER], **fields} if valid else fields
    with contextlib.suppress(BadRequest):
        assert chat_request(json.dumps(whole).encode()).items


KEYS = st.sampled_from(["role", "content", "tool_calls", "tool_call_id", "name", "type", "text", "id", "function"])
WORDS = st.sampled_from(["user", "assistant", "tool", "system", "text", "image_url", "function", "custom", ""])
SHAPES = st.recursive(
    WORDS | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(KEYS, SHAPES, max_size=4), max_size=3))
def test_any_messages_are_either_read_or_refused(messages: list[Any]) -> None:
    with contextlib.suppress(BadRequest):
        assert len(read(messages).items) >= len(messages) - len(read(messages).system)
