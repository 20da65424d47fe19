"""Messages requests as neutral items."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.conversation import Item, Media, Message, Reasoning, Text, ToolCall, ToolResult
from macaron.errors import BadRequest
from macaron.mol.identity import chain, head_digest
from macaron.wire.chat import chat_request
from macaron.wire.messages import MessagesRequest, messages_request

HI = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL = {"name": "weather", "description": "The weather.", "input_schema": SCHEMA}
CACHED = {"cache_control": {"type": "ephemeral"}}
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}


def read(messages: Any = HI, *, counting: bool = False, **fields: Any) -> MessagesRequest:
    body = {"model": "m", "max_tokens": 8, "messages": messages, **fields}
    return messages_request(json.dumps(body).encode(), counting=counting)


def refused(messages: Any = HI, **fields: Any) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        read(messages, **fields)
    return caught.value


def user(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(blocks)}]


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def use(call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "weather", "input": {"city": "Rome"}, **more}


def result(call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, **more}


# --- messages


def test_a_string_is_one_text() -> None:
    request = read()
    assert request.items == (Message("user", (Text("hi"),)),)
    assert (request.model, request.system, request.stream, request.options) == ("m", (), False, {"max_tokens": 8})


@pytest.mark.parametrize("system", ["Be brief.", [text("Be brief.")], [text("Be brief.", **CACHED)]])
def test_the_system_prompt_is_the_leading_run(system: Any) -> None:
    assert read(system=system).system == (Message("system", (Text("Be brief."),)),)


@pytest.mark.parametrize("system", [None, "", []])
def test_an_empty_system_prompt_is_none(system: Any) -> None:
    assert read(system=system).system == ()


def test_the_clients_billing_line_and_cache_marks_are_no_part_of_the_head() -> None:
    def head(session: str, **mark: Any) -> str:
        system = [text(f"x-anthropic-billing-header: cc_version=2.1; s={session};"), text("Be brief.", **mark)]
        request = read(system=system, tools=[{**TOOL, **mark}])
        return head_digest(request.system, request.tools)

    assert head("a") == head("b", **CACHED)


def test_system_messages_stand_where_they_are() -> None:
    request = read([{"role": "system", "content": "one"}, *HI, {"role": "system", "content": "two"}], system="zero")
    assert [message.parts for message in request.system] == [(Text("zero"),), (Text("one"),)]
    assert [item.role for item in request.items if isinstance(item, Message)] == ["user", "system"]


def test_thoughts_text_and_calls_of_an_answer() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "unsigned"},
        {"type": "redacted_thinking", "data": "AAAA"},
        text("Let me look"),
        use(caller={"type": "direct"}),
        text("."),
    ]
    items = read([*HI, {"role": "assistant", "content": content}, *user(result(content="rain"))]).items
    assert items[1:] == (
        Reasoning("hm"),
        Message("assistant", (Text("Let me look."),)),
        ToolCall("c1", "weather", '{"city":"Rome"}'),
        ToolResult("c1", (Text("rain"),)),
    )


@pytest.mark.parametrize("content", ["", []])
def test_an_empty_answer_is_an_empty_message(content: Any) -> None:
    assert read([*HI, {"role": "assistant", "content": content}, *HI]).items[1] == Message("assistant", (Text(""),))


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        ({}, (Text(""),)),
        ({"content": None}, (Text(""),)),
        ({"content": "rain"}, (Text("rain"),)),
        ({"content": [text("rain"), text("wind")]}, (Text("rain"), Text("wind"))),
        ({"content": "rain", "is_error": False, **CACHED}, (Text("rain"),)),
        ({"content": "no net", "is_error": True}, (Text("The tool failed:"), Text("no net"))),
    ],
)
def test_tool_results(more: dict[str, Any], parts: tuple[Text, ...]) -> None:
    calls = [*HI, {"role": "assistant", "content": [use()]}]
    assert read([*calls, *user(result(**more))]).items[2] == ToolResult("c1", parts)


def test_words_beside_results_are_the_same_turn_and_later_ones_are_not() -> None:
    calls = [*HI, {"role": "assistant", "content": [use()]}]
    beside = read([*calls, *user(result(content="rain"), text("hurry"))])
    assert [type(item) for item in beside.items[2:]] == [ToolResult, Message]
    assert beside.beside_results
    assert read([*calls, *user(result(), text("hurry")), {"role": "system", "content": "note"}]).beside_results
    assert not read([*calls, *user(result(content="rain")), *HI]).beside_results
    assert not read().beside_results


def test_images_are_carried_as_engines_read_them() -> None:
    request = read(user({"type": "image", "source": PNG}, {"type": "image", "source": {"type": "url", "url": "x"}}))
    (message,) = request.items
    assert isinstance(message, Message)
    urls = [part.raw["image_url"]["url"] for part in message.parts if isinstance(part, Media)]
    assert urls == ["data:image/png;base64,iVBORw0=", "x"]


def test_documents_are_text_or_a_file() -> None:
    plain = {"type": "text", "media_type": "text/plain", "data": "words"}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}
    made = {"type": "content", "content": [text("inner"), {"type": "image", "source": PNG}]}
    blocks = ({"type": "document", "source": source, "title": "A title"} for source in (plain, pdf, made))
    (message,) = read(user(*blocks)).items
    assert isinstance(message, Message)
    shown = [part.text if isinstance(part, Text) else part.kind for part in message.parts]
    assert shown == ["A title", "words", "A title", "file", "A title", "inner", "image_url"]


def test_an_answer_that_is_begun_is_not_continued() -> None:
    error = refused([*HI, {"role": "assistant", "content": "The answer is"}])
    assert (error.param, error.code) == ("messages", "unsupported_value")


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([], "messages"),
        ("hi", "messages"),
        ([1], "messages[0]"),
        ([{"role": "tool", "content": "x"}], "messages[0].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": "x", "name": "n"}], "messages[0].name"),
        (user({"type": "video"}), "messages[0].content[0].type"),
        (user(text("x", extra=1)), "messages[0].content[0].extra"),
        (user({"type": "text"}), "messages[0].content[0].text"),
        (user({"type": "text", "text": "x", "citations": [{}]}), "messages[0].content[0].citations"),
        (user({"type": "image", "source": {"type": "file", "file_id": "f"}}), "messages[0].content[0].source.type"),
        (user({"type": "tool_result"}), "messages[0].content[0].tool_use_id"),
        (user(result(content=[{"type": "tool_reference"}])), "messages[0].content[0].content[0].type"),
        (user(result(is_error="yes")), "messages[0].content[0].is_error"),
        ([*HI, {"role": "assistant", "content": [use(input="x")]}, *HI], "messages[1].content[0].input"),
        ([*HI, {"role": "assistant", "content": [use(caller={"type": "code"})]}], "messages[1].content[0].caller"),
        ([*HI, {"role": "assistant", "content": [{"type": "server_tool_use"}]}], "messages[1].content[0].type"),
    ],
)
def test_a_message_that_cannot_be_read_is_refused_by_its_path(messages: Any, param: str) -> None:
    assert refused(messages).param == param


# --- tools


def test_tools_are_carried_in_one_shape_for_all_formats() -> None:
    (tool,) = read(tools=[{**TOOL, "type": "custom", "strict": True, "eager_input_streaming": True}]).tools
    function = {"name": "weather", "description": "The weather.", "parameters": SCHEMA, "strict": True}
    assert tool == {"type": "function", "function": function}


@pytest.mark.parametrize(
    ("choice", "options"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        (
            {"type": "tool", "name": "weather"},
            {"tool_choice": {"type": "function", "function": {"name": "weather"}}},
        ),
        (
            {"type": "auto", "disable_parallel_tool_use": True},
            {"tool_choice": "auto", "parallel_tool_calls": False},
        ),
        ({"type": "any", "disable_parallel_tool_use": False}, {"tool_choice": "required"}),
        (None, {}),
    ],
)
def test_tool_choices(choice: Any, options: dict[str, Any]) -> None:
    assert read(tools=[TOOL], tool_choice=choice).options == {"max_tokens": 8, **options}


def test_a_choice_without_tools_asks_for_nothing_or_is_refused() -> None:
    assert read(tool_choice={"type": "auto", "disable_parallel_tool_use": True}).options == {"max_tokens": 8}
    assert refused(tool_choice={"type": "any"}).param == "tool_choice"


@pytest.mark.parametrize(
    "kind", ["web_search_20250305", "bash_20250124", "text_editor_20250728", "code_execution_20250825", "mcp_toolset"]
)
def test_hosted_tools_are_refused_by_name(kind: str) -> None:
    error = refused(tools=[TOOL, {"type": kind, "name": "x"}])
    assert (error.param, error.code) == ("tools[1].type", "unsupported_tool")
    assert kind in error.message


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"name": None}, "tools[0].name"),
        ({"input_schema": None}, "tools[0].input_schema"),
        ({"defer_loading": True}, "tools[0].defer_loading"),
        ({"allowed_callers": ["code_execution_20250825"]}, "tools[0].allowed_callers"),
        ({"input_examples": [{}]}, "tools[0].input_examples"),
        ({"extra": 1}, "tools[0].extra"),
    ],
)
def test_what_a_tool_asks_beyond_its_schema_is_refused(change: dict[str, Any], param: str) -> None:
    assert refused(tools=[{**TOOL, **change}]).param == param


# --- other fields


def test_what_goes_to_the_engine() -> None:
    options = read(temperature=0.5, top_p=0.9, top_k=4, stop_sequences=["END"]).options
    assert options == {"max_tokens": 8, "temperature": 0.5, "top_p": 0.9, "top_k": 4, "stop": ["END"]}


@pytest.mark.parametrize("place", [{"output_config": {"format": {}}}, {"output_format": {}}])
def test_the_shape_of_the_answer(place: dict[str, Any]) -> None:
    asked = json.loads(json.dumps(place).replace("{}", json.dumps({"type": "json_schema", "schema": SCHEMA})))
    shape = read(**asked).options["response_format"]
    assert shape["json_schema"]["schema"] == SCHEMA


def test_effort_goes_to_the_engine() -> None:
    assert read(output_config={"effort": "low"}).options["reasoning_effort"] == "low"


@pytest.mark.parametrize(
    ("thinking", "shown"),
    [
        (None, False),
        ({"type": "disabled"}, False),
        ({"type": "adaptive"}, True),
        ({"type": "between_tools"}, True),
        ({"type": "enabled", "budget_tokens": 2048}, True),
        ({"type": "adaptive", "display": "omitted"}, False),
        ({"type": "adaptive", "display": "summarized"}, True),
    ],
)
def test_whether_thoughts_are_shown(thinking: Any, shown: bool) -> None:
    assert read(thinking=thinking).thinking is shown


@pytest.mark.parametrize(
    ("given", "user_name", "session"),
    [
        (None, "", ""),
        ("u1", "u1", ""),
        ('{"device_id":"d","account_uuid":"","session_id":"s1"}', '{"device_id":"d"}', "s1"),
        ('{"session_id":"s1"}', "", "s1"),
        ('{"session_id":7}', '{"session_id":7}', ""),
        ("{no json", "{no json", ""),
    ],
)
def test_the_end_user_and_the_session(given: Any, user_name: str, session: str) -> None:
    request = read(metadata={"user_id": given})
    assert (request.user, request.session) == (user_name, session)
    assert read(metadata={"user_id": given}, user_profile_id="p").user == "p"


@pytest.mark.parametrize(
    "fields",
    [
        {"service_tier": "auto"},
        {"speed": "standard"},
        {"mcp_servers": []},
        {"container": None},
        {"cache_control": {"type": "ephemeral"}},
        {"diagnostics": {"previous_message_id": "msg_1"}},
        {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
    ],
)
def test_what_asks_for_nothing_is_accepted(fields: dict[str, Any]) -> None:
    assert read(**fields).options == {"max_tokens": 8}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"model": None}, "model"),
        ({"temperature": 1.5}, "temperature"),
        ({"stop_sequences": "END"}, "stop_sequences"),
        ({"stream": "yes"}, "stream"),
        ({"system": 7}, "system"),
        ({"system": [{"type": "image"}]}, "system[0].type"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "often"}}, "thinking.type"),
        ({"output_config": {"effort": "huge"}}, "output_config.effort"),
        ({"output_config": {"task_budget": {}}}, "output_config.task_budget"),
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "context_management.edits[0].type"),
        ({"metadata": {"other": "x"}}, "metadata.other"),
        ({"metadata": {"user_id": "x" * 513}}, "metadata.user_id"),
        ({"mcp_servers": [{"url": "x"}]}, "mcp_servers"),
        ({"container": "c"}, "container"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"lora": []}, "lora"),
        ({"chat_template_kwargs": {}}, "chat_template_kwargs"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    assert refused(**fields).param == param


def test_a_count_needs_no_room_for_an_answer() -> None:
    assert read(counting=True, max_tokens=None).options == {}


# --- the same conversation in both formats

WORDS = st.text(min_size=1)


@given(st.lists(st.tuples(WORDS, WORDS, st.dictionaries(WORDS, WORDS, max_size=2)), max_size=3), WORDS, WORDS)
def test_the_same_history_has_the_same_digests_in_chat_and_messages(
    turns: list[tuple[str, str, dict[str, str]]], system: str, last: str
) -> None:
    chat: list[dict[str, Any]] = [{"role": "system", "content": system}]
    messages: list[dict[str, Any]] = []
    for place, (asked, said, arguments) in enumerate(turns):
        function = {"name": "weather", "arguments": json.dumps(arguments)}
        call = {"id": f"c{place}", "type": "function", "function": function}
        chat += [
            {"role": "user", "content": asked},
            {"role": "assistant", "content": said, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{place}", "content": said},
        ]
        messages += [
            *user(text(asked)),
            {"role": "assistant", "content": [text(said), use(f"c{place}", input=arguments)]},
            *user(result(f"c{place}", content=[text(said)])),
        ]
    described = {"name": "weather", "description": "The weather.", "parameters": SCHEMA}
    theirs = chat_request(
        json.dumps(
            {
                "model": "m",
                "messages": [*chat, {"role": "user", "content": last}],
                "tools": [{"type": "function", "function": described}],
            }
        ).encode()
    )
    ours = read([*messages, *user(text(last))], system=system, tools=[TOOL])
    assert chain(_visible(ours.items)) == chain(_visible(theirs.items))
    assert head_digest(ours.system, ours.tools) == head_digest(theirs.system, theirs.tools)


def _visible(items: tuple[Item, ...]) -> list[Item]:
    return [item for item in items if not isinstance(item, Reasoning)]
