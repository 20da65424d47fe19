"""`POST /v1/messages` over real HTTP, in front of an engine double."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from macaron.conversation import Step
from macaron.errors import StoreError
from tests.doubles.engine_double import Call, Reply, Seen, by_words
from tests.harness import Reply as Answer
from tests.server.conftest import Stand, Standing, until
from tests.server.raw import request, wire
from tests.wire.messages_events import events_of, message_of

PATH = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
HI = [{"role": "user", "content": "hi"}]
TRACE = {"x-macaron-trace": "1"}
SESSION = "x-macaron-session"
WEATHER = {"name": "weather", "input_schema": {"type": "object"}}


def body_of(messages: Any = HI, **fields: Any) -> dict[str, Any]:
    return {"model": "test-model", "max_tokens": 64, "messages": messages, **fields}


async def ask(running: Stand, messages: Any = HI, *, headers: dict[str, str] | None = None, **fields: Any) -> Answer:
    return await running.client.post(body_of(messages, **fields), path=PATH + "?beta=true", headers=headers)


async def streamed(running: Stand, messages: Any = HI, **fields: Any) -> list[dict[str, Any]]:
    body = body_of(messages, stream=True, **fields)
    async with running.client.session.post(running.url + PATH, json=body) as response:
        assert response.status == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        return events_of(await response.read())


def answered(content: Any) -> list[dict[str, Any]]:
    return [*HI, {"role": "assistant", "content": content}, {"role": "user", "content": "and?"}]


async def test_the_events_of_a_stream_come_in_the_public_order(stand: Standing) -> None:
    reply = Reply("one two", calls=(Call("weather", '{"city": "Rome"}', "c1"),), reasoning="hm hm")
    async with stand(lambda seen: Reply("L1") if seen.is_route else reply) as running:
        message = message_of(await streamed(running, tools=[WEATHER], thinking={"type": "adaptive"}))
    assert message["content"] == [
        {"type": "thinking", "thinking": "hm hm", "signature": "unsigned"},
        {"type": "text", "text": "one two"},
        {"type": "tool_use", "id": "c1", "name": "weather", "input": '{"city": "Rome"}'},
    ]
    assert message["stop_reason"] == "tool_use"
    assert message["usage"]["output_tokens"] == 4
    assert set(message["usage"]["hops"]) == {"route", "answer"}
    assert message["model"] == "test-model"


async def test_the_stop_reason_comes_only_after_the_commit(stand: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(steps: Sequence[Step]) -> None:
        raise StoreError("The disk is full.")

    async with stand(by_words({}, answer="one two")) as running:
        monkeypatch.setattr(running.service.store, "put_steps", full)
        whole = await ask(running)
        events = await streamed(running)
    assert (whole.status, whole.body["error"]["type"]) == (503, "overloaded_error")
    assert [event["type"] for event in events[-2:]] == ["content_block_delta", "error"]
    assert "disk is full" in events[-1]["error"]["message"]


async def test_an_engine_that_dies_within_a_stream_is_an_error_event(stand: Standing) -> None:
    broken = Reply("one two three", fault="die", fault_after=3)
    async with stand(lambda seen: Reply("L1") if seen.is_route else broken) as running:
        events = await streamed(running)
    assert events[0]["type"] == "message_start"
    assert events[-1]["type"] == "error"
    assert events[-1]["error"]["type"] == "api_error"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_ends_the_engines_work(stand: Standing, stream: bool) -> None:
    script = lambda seen: Reply("L0") if seen.is_route else Reply("never", fault="hang", fault_after=0)  # noqa: E731
    async with stand(script) as running:
        async with wire(running.port) as connection:
            await connection.send(request("POST", PATH, body=json.dumps(body_of(stream=stream)).encode()))
            hop = await running.double.arrived(2)
        async with asyncio.timeout(5):
            await hop.ended.wait()
        assert hop.outcome == "cancelled"
        left = b'requests_total{endpoint="messages",status="499"} 1.0'
        await until(lambda: left in running.service.metrics.render())


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_before_the_first_token_has_its_status_streamed_or_not(stand: Standing, stream: bool) -> None:
    overflow = Reply(status=400, error={"message": "too long", "code": "context_length_exceeded"})
    async with stand(lambda seen: Reply("L1") if seen.is_route else overflow) as running:
        reply = await ask(running, stream=stream)
    assert reply.status == 400
    assert reply.body["type"] == "error"
    assert reply.body["error"]["type"] == "invalid_request_error"
    assert reply.body["error"]["message"].startswith("prompt is too long: ")


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "kind"),
    [
        ("GET", PATH, {}, 405, "invalid_request_error"),
        ("GET", COUNT, {}, 405, "invalid_request_error"),
        ("POST", PATH, {"host": "evil.com"}, 403, "permission_error"),
        ("POST", PATH, {"content-type": "text/plain"}, 400, "invalid_request_error"),
        ("POST", "/v1/messages/batches", {}, 404, "not_found_error"),
        ("POST", "/v1/nowhere", {"anthropic-version": "2023-06-01"}, 404, "not_found_error"),
    ],
)
async def test_every_error_has_the_shape_its_client_knows(
    stand: Standing, method: str, path: str, headers: dict[str, str], status: int, kind: str
) -> None:
    async with stand(by_words({})) as running, wire(running.port) as connection:
        await connection.send(request(method, path, headers, json.dumps(body_of()).encode()))
        answer = await connection.answer()
    assert (answer.status, answer.error["type"]) == (status, kind)
    assert answer.headers["request-id"] == answer.headers["x-request-id"]


async def test_who_looks_whether_anybody_is_there_gets_an_empty_answer(stand: Standing) -> None:
    async with stand(by_words({})) as running, running.client.session.head(running.url + "/") as response:
        assert response.status == 200
        assert await response.read() == b""


@pytest.mark.parametrize(
    ("named", "headers"),
    [
        ({}, {"X-Claude-Code-Session-Id": "s1"}),
        ({"metadata": {"user_id": '{"session_id":"s1"}'}}, {}),
        ({}, {"x-session-id": "s1"}),
    ],
)
async def test_a_session_is_named_by_header_or_in_the_metadata(
    stand: Standing, named: dict[str, Any], headers: dict[str, str]
) -> None:
    async with stand(by_words({})) as running:
        reply = await ask(running, headers={**TRACE, **headers}, **named)
        trace = await running.client.get("/v1/macaron/sessions/s1")
    assert trace.body["session"] == reply.headers[SESSION]
    assert trace.body["steps"][0]["id"] == reply.body["id"]


async def test_a_conversation_goes_on_across_the_two_formats(stand: Standing) -> None:
    async with stand(by_words({}, answer="fine, thanks")) as running:
        first = await ask(running, headers=TRACE, system="Be brief.")
        history = answered(first.body["content"][0]["text"])
        chat = await running.client.chat([{"role": "system", "content": "Be brief."}, *history], headers=TRACE)
        longer = [*answered(first.body["content"]), {"role": "assistant", "content": chat.text}, *HI]
        third = await ask(running, longer, headers=TRACE, system=[{"type": "text", "text": "Be brief."}])
        steps = await running.client.get(f"/v1/macaron/sessions/{first.headers[SESSION]}")
    assert first.headers[SESSION] == chat.headers[SESSION] == third.headers[SESSION]
    assert [step["parent"] for step in steps.body["steps"]] == [None, first.body["id"], chat.body["id"]]


@pytest.mark.parametrize("arguments", ["", "{}", '{"days": 1.0}', "{not json", "[1]"])
async def test_a_tool_result_finds_its_call_however_the_arguments_were_written(stand: Standing, arguments: str) -> None:
    def script(seen: Seen) -> Reply:
        if seen.is_route:
            return Reply("L1")
        last = seen.body["messages"][-1]["role"]
        return Reply("it rains") if last == "tool" else Reply(calls=(Call("weather", arguments, "c1"),))

    async with stand(script) as running:
        first = await ask(running, tools=[WEATHER])
        content = json.loads(json.dumps(first.body["content"]).replace("1.0", "1"))
        result = {"type": "tool_result", "tool_use_id": "c1", "content": "rain"}
        history = [*HI, {"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
        second = await ask(running, history, headers=TRACE, tools=[WEATHER])
        kept = running.double.requests[-1].body["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert second.headers["x-macaron-hops"] == "answer"
    assert second.body["content"] == [{"type": "text", "text": "it rains"}]
    assert kept == arguments


async def test_the_words_beside_a_result_do_not_route_it_and_later_words_do(stand: Standing) -> None:
    script = by_words({}, answer="fine")
    calling = Reply(calls=(Call("weather", "{}", "c1"),))
    async with stand(script) as running:
        running.double.script = lambda seen: Reply("L1") if seen.is_route else calling
        first = await ask(running, tools=[WEATHER])
        running.double.script = script
        called = [*HI, {"role": "assistant", "content": first.body["content"]}]
        result = {"type": "tool_result", "tool_use_id": "c1", "content": "rain"}
        hurry = {"type": "text", "text": "hurry"}
        beside = [*called, {"role": "user", "content": [result, hurry]}]
        later = [*called, {"role": "user", "content": [result]}, {"role": "user", "content": [hurry]}]
        hops = [
            (await ask(running, messages, headers=TRACE, tools=[WEATHER])).headers["x-macaron-hops"]
            for messages in (beside, later)
        ]
    assert hops == ["answer", "route,answer"]


async def test_images_are_refused_where_the_engine_may_not_fetch_them(stand: Standing) -> None:
    image = {"type": "image", "source": {"type": "url", "url": "http://169.254.169.254/"}}
    async with stand(by_words({})) as running:
        reply = await ask(running, [{"role": "user", "content": [image]}])
    assert (reply.status, running.double.requests) == (400, [])


async def test_a_count_is_what_the_prompt_then_takes(stand: Standing) -> None:
    async with stand(by_words({}, default="L0")) as running:
        fields: dict[str, Any] = {"tools": [WEATHER], "system": "Be brief."}
        counted = await running.client.post({"model": "test-model", "messages": HI, **fields}, path=COUNT)
        reply = await ask(running, **fields)
    assert counted.body == {"input_tokens": reply.body["usage"]["input_tokens"]}


async def test_who_cannot_count_says_so(stand: Standing) -> None:
    async with stand(by_words({})) as running:
        running.double.tokenizes = False
        refused = await running.client.post({"model": "test-model", "messages": HI}, path=COUNT)
        unknown = await running.client.post({"model": "other", "messages": HI}, path=COUNT)
    assert (refused.status, refused.body["error"]["type"]) == (501, "api_error")
    assert "cannot count" in refused.body["error"]["message"]
    assert (unknown.status, unknown.body["error"]["type"]) == (404, "not_found_error")


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(
    ["user", "assistant", "system", "text", "tool_use", "tool_result", "image", "document", "base64", "auto", "any"]
)  # fmt: skip
KEYS = st.sampled_from(
    [
        "role",
        "content",
        "type",
        "text",
        "source",
        "data",
        "media_type",
        "id",
        "name",
        "input",
        "tool_use_id",
        "is_error",
    ]
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system"]), "content": VALUES}), max_size=3
)
FIELDS = ("system", "tools", "tool_choice", "thinking", "metadata", "output_config", "context_management", "stream")
REQUESTS = st.fixed_dictionaries(
    {"model": st.just("test-model"), "max_tokens": st.just(8), "messages": MESSAGES.map(lambda said: [*said, *HI])},
    optional=dict.fromkeys(FIELDS, VALUES),
)


async def test_any_json_is_answered_without_a_5xx(stand: Standing) -> None:
    bodies: list[Any] = []

    @settings(max_examples=100, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(REQUESTS | VALUES)
    def collect(value: Any) -> None:
        bodies.append(value)

    await asyncio.to_thread(collect)
    async with stand(by_words({}, answer="ok")) as running:
        statuses = set()
        for body in bodies:
            data = request("POST", PATH, body=json.dumps(body).encode())
            async with wire(running.port) as connection:
                await connection.send(data)
                statuses.add((await connection.answer()).status)
    assert statuses == {200, 400}
