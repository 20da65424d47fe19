"""What a client is told when the engine, the store or the service itself fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from macaron.conversation import Step
from macaron.errors import StoreError
from tests.doubles.engine_double import Reply, Script, Seen, by_words
from tests.harness import Reply as Answer
from tests.server.conftest import Stand, Standing, until

HI = [{"role": "user", "content": "hi"}]


def answering(reply: Reply) -> Script:
    """A script whose route hops are well and whose answers are not."""
    return lambda seen: Reply("L1") if seen.is_route else reply


async def ask(running: Stand, stream: bool) -> Answer:
    return await running.client.post({"model": "test-model", "messages": HI, "stream": stream})


async def events(running: Stand, **fields: Any) -> list[str]:
    """The data of the events of a streamed request."""
    async with running.client.stream(HI, **fields) as response:
        assert response.status == 200
        text = await response.text()
    return [line.removeprefix("data: ") for line in text.split("\n\n") if line.startswith("data: ")]


STATUSES = [
    (400, 400, None),
    (422, 400, None),
    (413, 400, None),
    (401, 502, "engine_access_denied"),
    (403, 502, "engine_access_denied"),
    (404, 502, "engine_not_found"),
    (429, 503, "engine_overloaded"),
    (500, 502, "engine_error"),
    (503, 503, "unavailable"),
    (504, 504, "engine_timeout"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("engine", "client", "code"), STATUSES)
async def test_an_error_before_the_first_token_has_its_status_streamed_or_not(
    stand: Standing, engine: int, client: int, code: str | None, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    reply = Reply(status=engine, error={"message": "the engine's own words"})
    async with stand(answering(reply)) as running:
        answer = await ask(running, stream)
    assert (answer.status, answer.body["error"]["code"]) == (client, code)
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.body["error"]) == {"message", "type", "param", "code"}
    told = "the engine's own words" in answer.body["error"]["message"]
    assert told == (engine not in (401, 403, 404, 429)), "what names adapters or keys is the operator's"
    assert (answer.headers["x-request-id"] in caplog.text) == (client >= 500)


async def test_the_engines_refusal_keeps_its_param_and_code(stand: Standing) -> None:
    error = {"message": "temperature is too hot", "param": "temperature", "code": "too_hot", "type": "BadRequestError"}
    async with stand(answering(Reply(status=400, error=error))) as running:
        answer = await ask(running, stream=True)
    assert answer.body["error"] == {
        "message": "temperature is too hot",
        "type": "invalid_request_error",
        "param": "temperature",
        "code": "too_hot",
    }


@pytest.mark.parametrize("stream", [False, True])
async def test_a_context_overflow_has_the_code_that_clients_compact_on(stand: Standing, stream: bool) -> None:
    error = {"message": "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."}
    async with stand(answering(Reply(status=400, error=error))) as running:
        answer = await ask(running, stream)
    assert (answer.status, answer.body["error"]["code"]) == (400, "context_length_exceeded")


async def test_an_overloaded_engine_says_when_to_try_again(stand: Standing) -> None:
    reply = Reply(status=429, error={"message": "slow down"}, headers={"retry-after": "7"})
    async with stand(answering(reply)) as running:
        answer = await ask(running, stream=False)
    assert (answer.status, answer.headers["retry-after"]) == (503, "7")


@pytest.mark.parametrize("stream", [False, True])
async def test_an_engine_that_is_down_is_a_clear_502_or_503(stand: Standing, stream: bool) -> None:
    async with stand(by_words({})) as running:
        await running.double.__aexit__()
        answer = await ask(running, stream)
    assert answer.status in (502, 503)
    assert "engine" in answer.body["error"]["message"].lower()
    assert answer.body["error"]["type"] == "server_error"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_engine_that_hangs_is_504_after_the_hops_time(stand: Standing, stream: bool) -> None:
    more = "[engine.timeouts]\nanswer = 0.3\n"
    async with stand(answering(Reply("x", fault="hang", fault_after=0)), more=more) as running:
        answer = await ask(running, stream)
        hop = running.double.requests[-1]
        async with asyncio.timeout(5):
            await hop.ended.wait()
    assert (answer.status, answer.body["error"]["code"]) == (504, "engine_timeout")
    assert hop.outcome == "cancelled"


@pytest.mark.parametrize("fault", ["die", "corrupt", "error", "hang", "no_finish"])
async def test_after_the_first_token_an_error_is_an_event_then_a_finish_then_done(stand: Standing, fault: Any) -> None:
    more = "[engine.timeouts]\nanswer = 1\nidle = 0.3\n"
    reply = Reply("one two three four", fault=fault, fault_after=3)
    async with stand(answering(reply), more=more) as running:
        data = await events(running)
    chunks = [json.loads(item) for item in data[:-1]]
    errors = [chunk["error"] for chunk in chunks if "error" in chunk]
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if "choices" in chunk)
    assert data[-1] == "[DONE]"
    assert len(errors) == 1
    assert set(errors[0]) == {"message", "type", "param", "code"}
    assert errors[0]["type"] == "server_error"
    assert chunks[-1]["choices"][0]["finish_reason"] == "error"
    assert text == ("one two three four" if fault == "no_finish" else "one two")


async def test_an_error_with_two_choices_finishes_both(stand: Standing) -> None:
    async with stand(answering(Reply("one two three", fault="die", fault_after=3))) as running:
        chunks = [json.loads(item) for item in (await events(running, n=2))[:-1]]
    finished = [choice["index"] for chunk in chunks for choice in chunk.get("choices", []) if choice["finish_reason"]]
    assert sorted(finished) == [0, 1]


async def test_a_corrupt_answer_that_is_not_streamed_is_502(stand: Standing) -> None:
    async with stand(answering(Reply("one two", fault="corrupt"))) as running:
        answer = await ask(running, stream=False)
    assert (answer.status, answer.body["error"]["type"]) == (502, "server_error")


@pytest.mark.parametrize(
    "reply", [Reply(status=500), Reply(status=401), Reply(raw=b"not json"), Reply("L9"), Reply("")]
)
async def test_a_route_that_fails_is_never_the_clients_error(stand: Standing, reply: Reply) -> None:
    async with stand(lambda seen: reply if seen.is_route else "fine") as running:
        answer = await running.client.chat(HI, headers={"x-macaron-trace": "1"})
    assert (answer.status, answer.text, answer.adapter) == (200, "fine", "L2")


async def test_an_engine_that_dies_disturbs_no_other_request(stand: Standing) -> None:
    def script(seen: Seen) -> Reply:
        if seen.is_route:
            return Reply("L1")
        return Reply("one two three", fault="die", fault_after=2) if "die" in seen.prompt else Reply("fine")

    async with stand(script) as running:
        asked = [running.client.chat([{"role": "user", "content": word}]) for word in ("die", "a", "die", "b") * 3]
        answers = await asyncio.gather(*asked)
    assert [answer.status for answer in answers] == [502, 200, 502, 200] * 3


async def test_a_store_that_fails_to_commit_is_told_before_the_finish(
    stand: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(steps: Sequence[Step]) -> None:
        raise StoreError("The disk is full.")

    async with stand(by_words({}, answer="one two")) as running:
        monkeypatch.setattr(running.service.store, "put_steps", full)
        whole = await ask(running, stream=False)
        data = await events(running)
    assert (whole.status, whole.body["error"]["code"]) == (503, "store_unavailable")
    chunks = [json.loads(item) for item in data[:-1]]
    finishes = [chunk["choices"][0]["finish_reason"] for chunk in chunks if "choices" in chunk]
    assert [finish for finish in finishes if finish] == ["error"]
    assert any("disk is full" in chunk["error"]["message"] for chunk in chunks if "error" in chunk)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_fault_of_our_own_is_500_with_the_requests_name_and_nothing_inside(
    stand: Standing, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("inner secret")

    async with stand(by_words({})) as running:
        monkeypatch.setattr(running.service.store, "locate", broken)
        monkeypatch.setattr(running.service.store, "put_steps", broken)
        history = [*HI, {"role": "assistant", "content": "x"}, *HI]
        answer = await running.client.post({"model": "test-model", "messages": history, "stream": stream})
        left = b'requests_total{endpoint="chat",status="500"} 1.0'
        await until(lambda: left in running.service.metrics.render())
    name = answer.headers["x-request-id"]
    assert (answer.status, answer.body["error"]["code"]) == (500, "internal")
    assert name in answer.body["error"]["message"]
    assert "secret" not in json.dumps(answer.body)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert name in caplog.text


async def test_a_fault_of_our_own_within_a_stream_still_ends_it(
    stand: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    async with stand(by_words({}, answer="one two")) as running:
        monkeypatch.setattr(running.service.store, "put_steps", broken)
        data = await events(running)
    assert data[-1] == "[DONE]"
    assert json.loads(data[-3])["error"]["code"] == "internal"
    assert json.loads(data[-2])["choices"][0]["finish_reason"] == "error"


async def test_a_fault_in_a_page_is_500_in_the_apis_shape(stand: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("inner secret")

    async with stand(by_words({})) as running:
        monkeypatch.setattr(running.service.store, "session", broken)
        answer = await running.client.get("/v1/macaron/sessions/x")
    assert (answer.status, answer.body["error"]["code"]) == (500, "internal")
    assert answer.headers["x-request-id"] in answer.body["error"]["message"]
    assert "secret" not in json.dumps(answer.body)


async def test_a_silent_stream_is_kept_open_by_comments(stand: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("macaron.server.stream.PING_SECONDS", 0.05)
    gate = asyncio.Event()
    async with stand(answering(Reply("one two", gate=gate, gate_after=2))) as running:
        async with running.client.stream(HI) as response:
            seen = b""
            while b"\n: ping\n" not in seen:
                seen += await asyncio.wait_for(response.content.readany(), 5)
            gate.set()
            seen += await asyncio.wait_for(response.content.read(), 5)
    assert b"id:" not in seen.replace(b'"id":', b"")
    assert seen.endswith(b"data: [DONE]\n\n")
    assert b": ping\n\n" not in seen
