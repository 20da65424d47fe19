"""Fields of a Responses request: honoured, passed on, or refused by their name."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.doubles.engine_double import Reply, Seen, by_words
from tests.server.conftest import Standing
from tests.server.responses.asking import create, kinds, stream

IMAGE = "data:image/png;base64," + base64.b64encode(b"image").decode()


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"temperature": 0.5, "top_p": 0.25}, {"temperature": 0.5, "top_p": 0.25}),
        ({"presence_penalty": 1, "frequency_penalty": -1}, {"presence_penalty": 1, "frequency_penalty": -1}),
        ({"max_output_tokens": 32}, {"max_completion_tokens": 32}),
        ({"reasoning": {"effort": "high"}}, {"reasoning_effort": "high"}),
        ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": True}),
        ({"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"top_k": 5}, {"top_k": 5}),
    ],
)
async def test_a_field_reaches_the_engine(stand: Standing, fields: dict[str, Any], sent: dict[str, Any]) -> None:
    async with stand(by_words({})) as running:
        reply = await create(running, input="a", **fields)
        assert reply.status == 200, reply.body
        body = running.double.requests[-1].body
        assert {name: body.get(name) for name in sent} == sent


async def test_the_response_repeats_what_was_asked(stand: Standing) -> None:
    fields: dict[str, Any] = {
        "instructions": "be brief",
        "metadata": {"a": "b"},
        "max_output_tokens": 100,
        "max_tool_calls": 3,
        "temperature": 0.5,
        "top_p": 0.5,
        "truncation": "auto",
        "parallel_tool_calls": False,
        "prompt_cache_key": "key",
        "safety_identifier": "someone",
        "reasoning": {"effort": "low", "summary": "auto"},
    }
    async with stand(by_words({})) as running:
        reply = await create(running, input="a", service_tier="auto", **fields)
        assert {name: reply.body[name] for name in fields} == fields
        assert (reply.body["service_tier"], reply.body["store"], reply.body["background"]) == ("default", True, False)


async def test_what_is_left_out_has_the_public_defaults(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        body = (await create(running, input="a")).body
        assert {
            name: body[name]
            for name in ("temperature", "top_p", "truncation", "tool_choice", "tools", "metadata", "top_logprobs")
        } == {
            "temperature": 1.0,
            "top_p": 1.0,
            "truncation": "disabled",
            "tool_choice": "auto",
            "tools": [],
            "metadata": {},
            "top_logprobs": 0,
        }


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_tool_calls": -1}, "max_tool_calls"),
        ({"truncation": "some"}, "truncation"),
        ({"service_tier": "flex"}, "service_tier"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"include": ["everything"]}, "include[0]"),
        ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
        ({"reasoning": {"summary": "long"}}, "reasoning.summary"),
        ({"reasoning": {"depth": 3}}, "reasoning.depth"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
        ({"text": {"size": 3}}, "text.size"),
        ({"tool_choice": "required"}, "tool_choice"),
        (
            {"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "function", "name": "g"}},
            "tool_choice.name",
        ),
        ({"tools": [{"type": "function", "name": "f"}] * 2}, "tools[1].name"),
        ({"tools": [{"type": "function", "name": "f", "defer_loading": True}]}, "tools[0].defer_loading"),
        ({"metadata": {"a": 3}}, "metadata.a"),
        ({"stream_options": {"include_obfuscation": True}}, "stream_options"),
        ({"stream": True, "stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
        ({"conversation": 3}, "conversation"),
        ({"context_management": [{"type": "compaction"}]}, "context_management"),
        ({"lora": "x"}, "lora"),
        ({"cache_salt": "x"}, "cache_salt"),
        ({"messages": []}, "messages"),
        ({"input": 3}, "input"),
        ({"input": []}, "input"),
        ({"input": [3]}, "input[0]"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": "x", "colour": "red"}]}, "input[0].colour"),
        ({"input": [{"role": "user", "content": [{"type": "input_video"}]}]}, "input[0].content[0].type"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
            "input[0].content[0].file_id",
        ),
        ({"input": [{"type": "web_search_call", "id": "ws"}]}, "input[0].type"),
        ({"input": [{"type": "compaction", "encrypted_content": "x"}]}, "input[0].type"),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "f"}]}, "input[0].arguments"),
        ({"input": [{"type": "function_call_output", "call_id": "c"}]}, "input[0].output"),
        ({"input": [{"type": "item_reference"}]}, "input[0].id"),
        ({"input": [{"type": "reasoning", "summary": "x"}]}, "input[0].summary"),
    ],
)
async def test_a_bad_field_is_refused_by_its_path(stand: Standing, fields: dict[str, Any], param: str) -> None:
    async with stand(by_words({})) as running:
        reply = await create(running, **{"input": "a", **fields})
        assert (reply.status, reply.body["error"]["param"]) == (400, param)
        assert running.double.requests == []


async def test_a_model_that_is_not_served_is_404_streamed_or_not(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        for streamed in (False, True):
            body = {"model": "other", "input": "a", "stream": streamed}
            reply = await running.client.post(body, path="/v1/responses")
            assert (reply.status, reply.body["error"]["code"]) == (404, "model_not_found")
        reply = await running.client.post({"input": "a"}, path="/v1/responses")
        assert (reply.status, reply.body["error"]["param"]) == (400, "model")


async def test_images_and_files_reach_an_engine_that_takes_them(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        parts = [
            {"type": "input_text", "text": "what is this"},
            {"type": "input_image", "image_url": IMAGE, "detail": "low"},
            {"type": "input_file", "file_data": IMAGE, "filename": "a.png"},
        ]
        reply = await create(running, input=[{"role": "user", "content": parts}])
        assert reply.status == 200, reply.body
        assert running.double.requests[-1].body["messages"][-1]["content"] == [
            {"type": "text", "text": "what is this"},
            {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}},
            {"type": "file", "file": {"file_data": IMAGE, "filename": "a.png"}},
        ]
        foreign = {"type": "input_image", "image_url": "http://127.0.0.1/x.png"}
        refused = await create(running, input=[{"role": "user", "content": [foreign]}])
        assert (refused.status, refused.body["error"]["code"]) == (400, "url_not_allowed")


async def test_an_answer_that_is_cut_by_its_limit_is_incomplete(stand: Standing) -> None:
    def script(seen: Seen) -> Reply:
        return Reply("L1") if seen.is_route else Reply("one two", finish="length")

    async with stand(script) as running:
        whole = (await create(running, input="a")).body
        events = await stream(running, input="a")
        assert kinds(events)[-1] == "incomplete"
        for body in (whole, events[-1]["response"]):
            assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
            assert (body["completed_at"], body["output"][0]["status"]) == (None, "incomplete")


async def test_usage_says_what_was_spent_with_the_hops(stand: Standing) -> None:
    async with stand(by_words({}, answer="one two")) as running:
        usage = (await create(running, input="a")).body["usage"]
        assert usage["output_tokens"] == 2
        assert usage["total_tokens"] == usage["input_tokens"] + 2
        assert set(usage["hops"]) == {"route", "answer"}


async def test_logprobs_come_with_the_text(stand: Standing) -> None:
    async with stand(by_words({}, answer="one two")) as running:
        events = await stream(running, input="a", include=["message.output_text.logprobs"], top_logprobs=2)
        part = events[-1]["response"]["output"][0]["content"][0]
        assert [entry["token"] for entry in part["logprobs"]] == ["one", " two"]
        assert len(part["logprobs"][0]["top_logprobs"]) == 2


async def test_a_trace_names_the_specialist(stand: Standing) -> None:
    async with stand(by_words({}, default="L1")) as running:
        reply = await create(running, input="a", headers={"x-macaron-trace": "1"})
        assert reply.adapter == "L1"
        assert "x-macaron-adapter" not in (await create(running, input="a")).headers


async def test_compaction_is_not_offered(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        reply = await running.client.post({"model": "test-model"}, path="/v1/responses/compact")
        assert reply.status == 404
