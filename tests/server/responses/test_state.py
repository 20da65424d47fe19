"""What is kept of responses, for whom, and how it is continued."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from macaron.hcp import load
from macaron.server.keys import read_keys
from tests.doubles.engine_double import Call, EngineDouble, Reply, Seen, by_words
from tests.harness import serve, write_profile
from tests.server.conftest import Standing, until
from tests.server.responses.asking import create, delete, kinds, said, stream

KEYS = "alice:alice-key-0123456789\nbob:bob-key-0123456789\n"
ALICE = {"authorization": "Bearer alice-key-0123456789"}
BOB = {"authorization": "Bearer bob-key-0123456789"}


def echo(seen: Seen) -> Reply:
    """Routes to L1 and answers with the last message's text."""
    if seen.is_route:
        return Reply("L1")
    return Reply(f"you said {seen.body['messages'][-1]['content']}")


async def test_two_continuations_of_one_response_are_two_branches(stand: Standing) -> None:
    async with stand(echo) as running:
        first = (await create(running, input="a")).body["id"]
        left = (await create(running, input="b", previous_response_id=first)).body["id"]
        right = (await create(running, input="c", previous_response_id=first)).body["id"]
        await create(running, input="d", previous_response_id=left)
        assert [content for _, content in said(running)] == ["a", "you said a", "b", "you said b", "d"]
        await create(running, input="e", previous_response_id=right)
        assert [content for _, content in said(running)] == ["a", "you said a", "c", "you said c", "e"]


async def test_continuations_of_equal_answers_hang_on_the_step_they_name(stand: Standing) -> None:
    async with stand(echo) as running:
        first = (await create(running, input="a")).body["id"]
        await create(running, input="a")
        second = (await create(running, input="b", previous_response_id=first)).body["id"]
        path = await running.service.store.path("local", second)
        assert [step.id for step in path] == [first, second]


async def test_instructions_are_not_carried_over(stand: Standing) -> None:
    async with stand(echo) as running:
        first = await create(running, input="a", instructions="be brief")
        assert first.body["instructions"] == "be brief"
        assert "be brief" in running.double.requests[-1].prompt
        second = await create(running, input="b", previous_response_id=first.body["id"])
        assert second.body["instructions"] is None
        assert "be brief" not in running.double.requests[-1].prompt


async def test_an_unknown_previous_response_is_a_clear_400(stand: Standing) -> None:
    async with stand(echo) as running:
        reply = await create(running, input="a", previous_response_id="resp_nothing")
        assert reply.status == 400
        assert reply.body["error"]["param"] == "previous_response_id"
        assert reply.body["error"]["code"] == "previous_response_not_found"
        assert running.double.requests == []


async def test_a_response_is_its_tenants_alone(stand: Standing, key_file: Callable[[str], Path]) -> None:
    keys = await asyncio.to_thread(read_keys, key_file(KEYS))
    async with stand(echo, keys=keys) as running:
        name = (await create(running, input="a", headers=ALICE)).body["id"]
        assert (await running.client.get(f"/v1/responses/{name}", headers=ALICE)).status == 200
        assert (await running.client.get(f"/v1/responses/{name}", headers=BOB)).status == 404
        assert (await running.client.get(f"/v1/responses/{name}/input_items", headers=BOB)).status == 404
        assert (await create(running, input="b", previous_response_id=name, headers=BOB)).status == 400
        cancelled = await running.client.post({}, path=f"/v1/responses/{name}/cancel", headers=BOB)
        assert cancelled.status == 404


async def test_a_response_is_continued_for_its_own_end_user_only(stand: Standing) -> None:
    async with stand(echo) as running:
        name = (await create(running, input="a", safety_identifier="u1")).body["id"]
        assert (await create(running, input="b", previous_response_id=name, safety_identifier="u2")).status == 400
        same = await create(running, input="b", previous_response_id=name)
        path = await running.service.store.path("local\x1fu1", same.body["id"])
        assert [step.id for step in path] == [name, same.body["id"]]


async def test_a_deleted_response_is_gone_and_what_continues_it_is_not(stand: Standing) -> None:
    async with stand(echo) as running:
        first = (await create(running, input="secret")).body["id"]
        second = (await create(running, input="b", previous_response_id=first)).body["id"]
        assert (await delete(running, f"/v1/responses/{first}")).body == {
            "id": first,
            "object": "response",
            "deleted": True,
        }
        assert (await running.client.get(f"/v1/responses/{first}")).status == 404
        assert (await delete(running, f"/v1/responses/{first}")).status == 404
        assert (await create(running, input="c", previous_response_id=first)).status == 400
        await create(running, input="c", previous_response_id=second)
        assert [content for _, content in said(running)] == ["b", "you said b", "c"]


async def test_a_response_survives_a_restart(tmp_path: Path) -> None:
    store = f"sqlite://{tmp_path / 'store.db'}"
    async with EngineDouble(echo) as double:
        loaded = await asyncio.to_thread(load, write_profile(tmp_path, double.origin))
        async with serve(loaded, store) as running:
            body = {"model": "test-model", "input": "a"}
            first = (await running.client.post(body, path="/v1/responses")).body
        async with serve(loaded, store) as running:
            assert (await running.client.get(f"/v1/responses/{first['id']}")).body == first
            body = {"model": "test-model", "input": "b", "previous_response_id": first["id"]}
            await running.client.post(body, path="/v1/responses")
        assert "you said a" in double.requests[-1].prompt


async def test_a_response_is_continued_by_another_worker(tmp_path: Path) -> None:
    store = f"sqlite://{tmp_path / 'store.db'}"
    gate = asyncio.Event()

    def script(seen: Seen) -> Reply:
        if seen.is_route:
            return Reply("L1")
        return Reply("slow answer", gate=gate) if seen.prompt.endswith("slow") else echo(seen)

    async with EngineDouble(script) as double:
        loaded = await asyncio.to_thread(load, write_profile(tmp_path, double.origin))
        async with serve(loaded, store) as one, serve(loaded, store) as other:
            body: dict[str, Any] = {"model": "test-model", "input": "slow", "background": True}
            first = (await one.client.post(body, path="/v1/responses")).body["id"]
            await double.arrived(2)
            body = {"model": "test-model", "input": "b", "previous_response_id": first}
            later = asyncio.create_task(other.client.post(body, path="/v1/responses"))
            gate.set()
            second = (await later).body["id"]
            assert "slow answer" in double.requests[-1].prompt
            path = await one.service.store.path("local", second)
            assert [step.id for step in path] == [first, second]


async def test_with_store_false_nothing_textual_reaches_the_store(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    async with EngineDouble(by_words({}, answer="hush hush " + "very secret " * 300)) as double:
        profile = write_profile(tmp_path, double.origin, mol="summary_tokens = 8")
        async with serve(await asyncio.to_thread(load, profile), f"sqlite://{store}") as running:
            fields = {"model": "test-model", "store": False}
            ask: list[dict[str, Any]] = [{"role": "user", "content": "my password"}]
            first = await running.client.post({**fields, "input": ask}, path="/v1/responses")
            assert first.body["store"] is False
            assert (await running.client.get(f"/v1/responses/{first.body['id']}")).status == 404
            again = {**fields, "input": [*ask, *first.body["output"], {"role": "user", "content": "more password"}]}
            second = await running.client.post(again, path="/v1/responses")
            assert second.status == 200
            path = await running.service.store.path("local", second.body["id"])
            assert [step.id for step in path] == [first.body["id"], second.body["id"]]
            await running.service.background.drain(5)
            await running.service.store.ping()
        kept = b"".join(file.read_bytes() for file in await asyncio.to_thread(lambda: list(tmp_path.glob("store.db*"))))
        assert b"L1" in kept or b"L0" in kept
        for word in (b"password", b"hush", b"secret"):
            assert word not in kept


async def test_a_service_that_keeps_no_text_says_so(stand: Standing) -> None:
    async with stand(echo, more='[store]\nchat = "digests"') as running:
        assert (await create(running, input="a")).body["store"] is False
        for field in ({"store": True}, {"background": True}, {"previous_response_id": "resp_1"}):
            reply = await create(running, input="a", **field)
            assert (reply.status, reply.body["error"]["param"]) == (400, next(iter(field)))


async def test_a_full_store_refuses_before_anything_is_generated(stand: Standing) -> None:
    async with stand(echo, more="[store]\nmax_responses = 1") as running:
        assert (await create(running, input="a")).status == 200
        asked = len(running.double.requests)
        reply = await create(running, input="b")
        assert (reply.status, reply.body["error"]["code"]) == (503, "store_full")
        assert "store: false" in reply.body["error"]["message"]
        assert len(running.double.requests) == asked
        assert (await create(running, input="b", store=False)).status == 200


async def test_a_request_that_fails_takes_no_room(stand: Standing) -> None:
    def failing(seen: Seen) -> Reply:
        return Reply("L1") if seen.is_route else Reply(status=500, error={"message": "broken"})

    async with stand(failing, more="[store]\nmax_responses = 1") as running:
        for _ in range(3):
            assert (await create(running, input="a")).status == 502


async def test_a_continuation_waits_for_its_parent(stand: Standing) -> None:
    gate = asyncio.Event()

    def script(seen: Seen) -> Reply:
        if seen.is_route:
            return Reply("L1")
        return Reply("slow answer", gate=gate, gate_after=2) if "slow" in seen.prompt else Reply("quick")

    async with stand(script) as running:
        body = {"model": "test-model", "stream": True, "input": "slow"}
        async with running.client.session.post(running.url + "/v1/responses", json=body) as response:
            line = await response.content.readuntil(b"\n\n")
            name = line.split(b'"id":"')[1].split(b'"')[0].decode()
            later = asyncio.create_task(create(running, input="next", previous_response_id=name))
            await asyncio.sleep(0.1)
            assert not later.done()
            gate.set()
            await response.read()
        assert (await later).status == 200
        assert [content for _, content in said(running)] == ["slow", "slow answer", "next"]


async def test_a_client_that_leaves_keeps_what_it_was_sent(stand: Standing) -> None:
    gate = asyncio.Event()

    def script(seen: Seen) -> Reply:
        return Reply("L1") if seen.is_route else Reply("one two three", gate=gate, gate_after=3)

    async with stand(script) as running:
        body = {"model": "test-model", "stream": True, "input": "a"}
        async with running.client.session.post(running.url + "/v1/responses", json=body) as response:
            told = b""
            while b"two" not in told:
                told += await response.content.readany()
            name = told.split(b'"id":"')[1].split(b'"')[0].decode()
        found: dict[str, Any] = {}

        async def cancelled() -> bool:
            found.update((await running.client.get(f"/v1/responses/{name}")).body)
            return found.get("status") == "cancelled"

        async with asyncio.timeout(5):
            while not await cancelled():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert found["output"][0]["content"][0]["text"] == "one two"
        assert found["output"][0]["status"] == "incomplete"


async def test_an_engine_that_breaks_off_fails_the_response(stand: Standing) -> None:
    def script(seen: Seen) -> Reply:
        return Reply("L1") if seen.is_route else Reply("one two three", fault="die", fault_after=2)

    async with stand(script) as running:
        events = await stream(running, input="a")
        assert kinds(events)[-1] == "failed"
        failed = events[-1]["response"]
        assert failed["error"]["code"] == "server_error"
        assert failed["output"][0]["status"] == "incomplete"
        assert (await running.client.get(f"/v1/responses/{failed['id']}")).body == failed
        assert (await create(running, input="b", previous_response_id=failed["id"])).status == 400


async def test_input_items_are_listed_in_pages(stand: Standing) -> None:
    async with stand(echo) as running:
        items = [{"role": "user", "content": f"m{number}", "id": f"msg_{number}"} for number in range(5)]
        name = (await create(running, input=items)).body["id"]
        path = f"/v1/responses/{name}/input_items"
        newest = (await running.client.get(f"{path}?limit=2")).body
        assert [item["id"] for item in newest["data"]] == ["msg_4", "msg_3"]
        assert (newest["first_id"], newest["last_id"], newest["has_more"]) == ("msg_4", "msg_3", True)
        oldest = (await running.client.get(f"{path}?order=asc&after=msg_2")).body
        assert [item["content"][0]["text"] for item in oldest["data"]] == ["m3", "m4"]
        assert oldest["has_more"] is False
        for query in ("limit=0", "limit=x", "order=up", "after=nothing"):
            assert (await running.client.get(f"{path}?{query}")).status == 400


async def test_an_item_is_found_by_its_reference(stand: Standing) -> None:
    async with stand(echo) as running:
        first = (await create(running, input="a")).body
        reference = {"type": "item_reference", "id": first["output"][0]["id"]}
        ask = {"role": "user", "content": "b"}
        reply = await create(running, input=[{"role": "user", "content": "a"}, reference, ask])
        assert reply.status == 200
        assert [content for _, content in said(running)] == ["a", "you said a", "b"]
        unknown = await create(running, input=[{"id": "msg_unknown"}, ask])
        assert (unknown.status, unknown.body["error"]["param"]) == (404, "input[0].id")


async def test_items_that_come_back_are_known_by_what_they_say(stand: Standing) -> None:
    calls = (Call("look", '{"a": 1}', id="call_1"),)

    def script(seen: Seen) -> Reply:
        if seen.is_route:
            return Reply("L1")
        return (
            Reply("seen")
            if seen.body["messages"][-1]["role"] == "tool"
            else Reply("I look", calls=calls, reasoning="hm")
        )

    tools = [{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}]
    async with stand(script) as running:
        ask = [{"role": "user", "content": "a"}]
        first = (await create(running, input=ask, tools=tools, store=False)).body
        assert [item["type"] for item in first["output"]] == ["reasoning", "message", "function_call"]
        result = {"type": "function_call_output", "call_id": "call_1", "output": "42"}
        hops = len(running.double.requests)
        second = await create(running, input=[*ask, *first["output"], result], tools=tools, store=False)
        assert second.body["output"][0]["content"][0]["text"] == "seen"
        # The tool's result went to the specialist that called, without another route hop.
        assert len(running.double.requests) == hops + 1
        assert running.double.requests[-1].adapter == "L1"


async def test_a_response_whose_worker_is_gone_has_failed(stand: Standing) -> None:
    gate = asyncio.Event()

    def script(seen: Seen) -> Reply:
        return Reply("L1") if seen.is_route else Reply("one two", gate=gate, gate_after=1)

    async with stand(script) as running:
        created = await create(running, input="a", background=True)
        name = created.body["id"]
        await running.double.arrived(2)
        # As if its worker had been killed a while ago.
        running.service.leases.drop(("local", name))
        await running.service.store.renew_leases([("local", name)], 1.0)
        reply = await running.client.get(f"/v1/responses/{name}")
        assert (reply.body["status"], reply.body["error"]["code"]) == ("failed", "server_error")
        gate.set()
        await until(lambda: running.service.admission.active == 0)
        assert (await running.client.get(f"/v1/responses/{name}")).body == reply.body


@pytest.mark.parametrize("truncation", ["disabled", "auto"])
async def test_truncation_drops_the_oldest_items_where_that_is_wanted(stand: Standing, truncation: str) -> None:
    def script(seen: Seen) -> Reply:
        if seen.is_route:
            return Reply("L1")
        if len(seen.body["messages"]) > 4:
            message = "This model's maximum context length is 10 tokens. However, your request has 20 input tokens."
            return Reply(status=400, error={"message": message, "code": 400, "type": "BadRequestError"})
        return Reply("fits")

    async with stand(script) as running:
        items = [{"role": role, "content": f"{role} {n}"} for n in range(6) for role in ("user", "assistant")]
        reply = await create(running, input=[*items, {"role": "user", "content": "last"}], truncation=truncation)
        if truncation == "disabled":
            assert (reply.status, reply.body["error"]["code"]) == (400, "context_length_exceeded")
        else:
            assert reply.status == 200
            assert said(running)[-1] == ("user", "last")
            assert said(running)[0][0] == "user"
