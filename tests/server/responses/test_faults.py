"""What a client of the Responses API is told when the engine, the store or the service itself fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from macaron.conversation import Step
from macaron.errors import StoreError
from tests.doubles.engine_double import Reply, Script, Seen, by_words
from tests.server.conftest import Standing
from tests.server.responses.asking import create, delete, kinds, parse, stream


def answering(reply: Reply) -> Script:
    """A script whose route hops are well and whose answers are not."""
    return lambda seen: Reply("L1") if seen.is_route else reply


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("engine", "client"), [(400, 400), (401, 502), (429, 503), (500, 502), (504, 504)])
async def test_an_error_before_the_first_token_has_its_status(
    stand: Standing, engine: int, client: int, streamed: bool
) -> None:
    async with stand(answering(Reply(status=engine, error={"message": "the engine's own words"}))) as running:
        reply = await create(running, input="a", stream=streamed)
        assert reply.status == client
        assert set(reply.body["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("fault", ["corrupt", "die", "error", "no_finish"])
async def test_an_answer_that_breaks_ends_in_response_failed(stand: Standing, fault: Any) -> None:
    async with stand(answering(Reply("one two three", fault=fault, fault_after=2))) as running:
        events = await stream(running, input="a")
        assert kinds(events)[-1] == "failed"
        assert "output_text.delta" in kinds(events)
        assert [event["sequence_number"] for event in events] == list(range(len(events)))


async def test_the_last_event_waits_for_the_commit(stand: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    written = asyncio.Event()
    async with stand(by_words({}, answer="one two")) as running:
        put = running.service.store.put_steps

        async def slow(steps: Sequence[Step]) -> None:
            await written.wait()
            await put(steps)

        monkeypatch.setattr(running.service.store, "put_steps", slow)
        body = {"model": "test-model", "input": "a", "stream": True}
        async with running.client.session.post(running.url + "/v1/responses", json=body) as response:
            told = b""
            while b"output_item.done" not in told:
                told += await response.content.readany()
            name = told.split(b'"id":"')[1].split(b'"')[0].decode()
            assert (await running.client.get(f"/v1/responses/{name}")).body["status"] == "in_progress"
            assert b"response.completed" not in told
            written.set()
            told += await response.content.read()
        assert kinds(parse(told.decode()))[-1] == "completed"


@pytest.mark.parametrize("method", ["put_steps", "revise_record"])
async def test_a_commit_that_fails_is_told_instead_of_the_end(
    stand: Standing, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    async def full(*_: Any, **__: Any) -> None:
        raise StoreError("The disk is full.")

    async with stand(by_words({}, answer="one two")) as running:
        monkeypatch.setattr(running.service.store, method, full)
        whole = await create(running, input="a")
        events = await stream(running, input="a")
    assert (whole.status, whole.body["error"]["code"]) == (503, "store_unavailable")
    assert kinds(events)[-1] == "failed"
    assert "completed" not in kinds(events)
    assert "disk is full" in events[-1]["response"]["error"]["message"]


async def test_a_response_deleted_while_it_is_made_ends_its_stream(stand: Standing) -> None:
    gate = asyncio.Event()
    async with stand(answering(Reply("one two", gate=gate, gate_after=2))) as running:
        body = {"model": "test-model", "input": "a", "stream": True}
        async with running.client.session.post(running.url + "/v1/responses", json=body) as response:
            told = await response.content.readuntil(b"\n\n")
            name = told.split(b'"id":"')[1].split(b'"')[0].decode()
            assert (await delete(running, f"/v1/responses/{name}")).status == 200
            told += await response.content.read()
        assert kinds(parse(told.decode()))[-1] == "failed"
        assert (await running.client.get(f"/v1/responses/{name}")).status == 404


async def test_a_fault_of_our_own_fails_the_response(stand: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stand(by_words({}, answer="one two")) as running:
        monkeypatch.setattr("macaron.server.responses.run.usage_object", lambda *_: 1 / 0)
        events = await stream(running, input="a")
        whole = await create(running, input="a")
    assert kinds(events)[-1] == "failed"
    assert "division" not in events[-1]["response"]["error"]["message"]
    assert whole.status == 500


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_script_of_thoughts_only_is_no_error(stand: Standing, streamed: bool) -> None:
    def script(seen: Seen) -> Reply:
        return Reply("L1") if seen.is_route else Reply("", reasoning="hm", finish="length")

    async with stand(script) as running:
        body = (
            (await stream(running, input="a"))[-1]["response"] if streamed else (await create(running, input="a")).body
        )
        assert [item["type"] for item in body["output"]] == ["reasoning", "message"]
        assert body["status"] == "incomplete"
