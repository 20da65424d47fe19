"""Request fields over HTTP: what the engine receives, and what never reaches it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.doubles.engine_double import EngineDouble, Reply, Seen, by_words
from tests.server.conftest import Standing

HI = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}, "strict": True}}


def answer_of(double: EngineDouble) -> Seen:
    """The answer hop of the only request."""
    return next(seen for seen in double.requests if "choice" not in seen.body.get("structured_outputs", {}))


PASSED: dict[str, Any] = {
    "temperature": 0.3,
    "top_p": 0.9,
    "frequency_penalty": 0.1,
    "presence_penalty": -0.1,
    "logit_bias": {"50256": -100},
    "logprobs": True,
    "seed": 7,
    "stop": ["END"],
    "max_tokens": 11,
    "max_completion_tokens": 12,
    "response_format": {"type": "json_object"},
    "reasoning_effort": "low",
    "top_k": 5,
    "min_p": 0.1,
    "repetition_penalty": 1.1,
    "length_penalty": 1.0,
    "min_tokens": 2,
    "ignore_eos": True,
    "stop_token_ids": [1, 2],
    "bad_words": ["x"],
    "include_stop_str_in_output": True,
    "skip_special_tokens": False,
    "structured_outputs": {"regex": "a+"},
}


@pytest.mark.parametrize("stream", [False, True])
async def test_the_engine_receives_every_field_that_is_passed(stand: Standing, stream: bool) -> None:
    fields: dict[str, Any] = {name: value for name, value in PASSED.items() if name != "max_tokens"}
    async with stand(by_words({})) as running:
        async with running.client.stream(HI, **{**fields, "stream": stream, "n": 2}) as response:
            assert response.status == 200
            await response.read()
        route, answer = running.double.requests[:2]
    assert {name: answer.body.get(name) for name in fields} == fields
    assert (answer.body["n"], answer.body["stream"]) == (2, stream)
    assert not {"temperature", "seed", "logit_bias", "n", "stop"} & {
        name for name, value in route.body.items() if value != 0
    }


async def test_max_tokens_is_the_engines_to_choose_where_the_client_is_silent(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        await running.client.chat(HI)
        answer = answer_of(running.double)
    assert not {"max_tokens", "max_completion_tokens", "temperature", "n"} & set(answer.body)


async def test_max_tokens_keeps_its_own_name(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        await running.client.chat(HI, max_tokens=9)
        answer = answer_of(running.double)
    assert (answer.body["max_tokens"], "max_completion_tokens" in answer.body) == (9, False)


@pytest.mark.parametrize(
    "choice",
    [
        "none",
        "auto",
        "required",
        {"type": "function", "function": {"name": "weather"}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOL]}},
    ],
)
async def test_tools_and_their_choice_are_passed(stand: Standing, choice: Any) -> None:
    async with stand(by_words({})) as running:
        reply = await running.client.chat(HI, tools=[TOOL], tool_choice=choice, parallel_tool_calls=False)
        answer = answer_of(running.double)
    assert reply.status == 200
    assert answer.body["tools"] == [TOOL]
    assert answer.body["tool_choice"] == choice
    assert answer.body["parallel_tool_calls"] is False


@pytest.mark.parametrize(
    "name",
    ["user", "safety_identifier", "metadata", "prompt_cache_key", "store", "service_tier", "stream_options"],
)
async def test_what_is_the_services_own_is_not_passed(stand: Standing, name: str) -> None:
    values: dict[str, Any] = {
        "metadata": {"a": "b"},
        "store": False,
        "service_tier": "auto",
        "stream_options": {"include_usage": False},
    }
    async with stand(by_words({})) as running:
        async with running.client.stream(HI, **{name: values.get(name, "x")}) as response:
            assert response.status == 200
            await response.read()
        answer = answer_of(running.double)
    if name == "stream_options":
        assert answer.body[name] == {"include_usage": True}
    else:
        assert name not in answer.body


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lora", [{"id": 0, "scale": 1.0}]),
        ("lora_request", {}),
        ("lora_path", "/etc"),
        ("id_slot", 0),
        ("cache_prompt", True),
        ("grammar", "root ::= [a-z]"),
        ("chat_template", "{{ x }}"),
        ("chat_template_kwargs", {"enable_thinking": False}),
        ("add_generation_prompt", False),
        ("continue_final_message", True),
        ("cache_salt", "other"),
        ("priority", -1),
        ("kv_transfer_params", {"a": 1}),
        ("guided_json", {}),
        ("messages_override", []),
    ],
)
async def test_a_dangerous_field_is_400_and_the_engine_is_not_asked(stand: Standing, name: str, value: Any) -> None:
    async with stand(by_words({})) as running:
        reply = await running.client.chat(HI, **{name: value})
        assert (reply.status, reply.body["error"]["param"]) == (400, name)
        assert running.double.requests == []


@pytest.mark.parametrize("name", ["typical_p", "repeat_penalty", "regex", "ebnf", "verbosity"])
async def test_a_field_this_engine_does_not_read_is_refused_by_name(stand: Standing, name: str) -> None:
    value: Any = "low" if name in ("regex", "ebnf", "verbosity") else 1
    async with stand(by_words({})) as running:
        reply = await running.client.chat(HI, **{name: value})
    assert (reply.status, reply.body["error"]["param"]) == (400, name)
    assert reply.body["error"]["code"] == "unsupported_parameter"
    assert "vllm" in reply.body["error"]["message"]


async def test_reasoning_comes_under_both_names(stand: Standing) -> None:
    async with stand(lambda seen: Reply("L1" if seen.is_route else "fine", reasoning="hm")) as running:
        reply = await running.client.chat(HI)
        async with running.client.stream(HI) as response:
            text = await response.text()
    message = reply.body["choices"][0]["message"]
    assert (message["reasoning"], message["reasoning_content"], message["content"]) == ("hm", "hm", "fine")
    assert '"reasoning_content":"hm"' in text
    assert '"reasoning":"hm"' in text


async def test_orphan_tool_results_and_unanswered_calls_are_passed_on(stand: Standing) -> None:
    call = {"id": "open", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages = [
        *HI,
        {"role": "tool", "tool_call_id": "nobody", "content": "42"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "go on"},
    ]
    async with stand(by_words({})) as running:
        reply = await running.client.chat(messages, tools=[TOOL])
        shown = answer_of(running.double).body["messages"]
    assert reply.status == 200
    assert [message["role"] for message in shown] == ["system", "user", "tool", "assistant", "user"]
    assert (shown[2]["tool_call_id"], shown[2]["content"]) == ("nobody", "42")
    assert shown[3]["tool_calls"][0]["id"] == "open"


async def test_a_name_reaches_the_engine(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        await running.client.chat([{**HI[0], "name": "bob"}])
        assert answer_of(running.double).body["messages"][-1] == {"role": "user", "content": "hi", "name": "bob"}


HOSTS = 'media_hosts = ["good.com"]'
DATA = "data:image/png;base64,iVBORw0KGgo="
PARTS: list[dict[str, Any]] = [
    {"type": "image_url", "image_url": {"url": DATA, "detail": "low"}},
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    {"type": "file", "file": {"file_data": DATA, "filename": "a.pdf"}},
    {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}},
]


@pytest.mark.parametrize("part", PARTS)
async def test_media_is_passed_as_it_was_written(stand: Standing, part: dict[str, Any]) -> None:
    async with stand(by_words({})) as running:
        reply = await running.client.chat([{"role": "user", "content": [{"type": "text", "text": "see"}, part]}])
        shown = answer_of(running.double).body["messages"][-1]["content"]
    assert reply.status == 200
    assert shown == [{"type": "text", "text": "see"}, part]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}},
        {"type": "image_url", "image_url": "https://evil.com/x.png"},
        {"type": "image_url", "image_url": DATA},
        {"type": "image_url", "image_url": {"url": DATA}, "uuid": "another's"},
        {"type": "image_url", "image_url": {"url": DATA, "path": "/etc/passwd"}},
        {"type": "image_url", "image_url": {}},
        {"type": "file", "file": {"file_id": "another's"}},
        {"type": "image", "image": {"path": "/etc/passwd"}},
        {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
        {"type": "image_url", "image_url": {"url": "/etc/passwd"}},
        {"type": "image_url", "image_url": {"url": " " + DATA}},
        {"type": "image_url", "image_url": {"url": ["http://evil.com"]}},
        {"type": "image_url", "image_url": {"url": None}},
        {"type": "image_url", "image_url": ["http://evil.com"]},
        {"type": "image_url", "image_url": None},
        {"type": "image_url", "image_url": {"url": DATA}, "video_url": {"url": "http://evil.com"}},
        {"type": "file", "file": {"file_url": "http://evil.com/a.pdf"}},
        {"type": "input_audio", "input_audio": {"data": "http://evil.com/a.wav"}},
        {"type": "image_url", "image_url": {"url": "https://good.com@evil.com/x"}},
        {"type": "image_url", "image_url": {"url": "https://good.com.evil.com/x"}},
        {"type": "image_url", "image_url": {"url": "http://good.com/x"}},
        {"type": "image_url", "image_url": {"url": "https://good.com\\@evil.com/x"}},
        {"type": "image_url", "image_url": {"url": "https://good.com:8080/x"}},
    ],
)
@pytest.mark.parametrize("role", ["user", "tool", "system"])
async def test_an_address_the_engine_would_fetch_is_refused(stand: Standing, part: dict[str, Any], role: str) -> None:
    message = {"role": role, "content": [part], **({"tool_call_id": "x"} if role == "tool" else {})}
    async with stand(by_words({}), more=HOSTS) as running:
        messages = [message, *HI] if role == "system" else [*HI, message]
        reply = await running.client.chat(messages)
        assert reply.status == 400
        assert reply.body["error"]["type"] == "invalid_request_error"
        assert running.double.requests == []


async def test_an_address_on_a_host_of_the_profile_is_passed(stand: Standing) -> None:
    part = {"type": "image_url", "image_url": {"url": "https://good.com/x.png"}}
    async with stand(by_words({}), more=HOSTS) as running:
        reply = await running.client.chat([{"role": "user", "content": [part]}])
        shown = answer_of(running.double).body["messages"][-1]["content"]
    assert (reply.status, shown) == (200, [part])
