"""Responses in the background: polled, cancelled, and their events resumed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from macaron.hcp import load
from tests.doubles.engine_double import EngineDouble, Reply, Script, Seen
from tests.harness import Running, serve, write_profile
from tests.server.conftest import Standing, until
from tests.server.responses.asking import create, delete, kinds, parse, stream


def gated(gate: asyncio.Event, after: int = 0) -> Script:
    """Routes to L1 and answers `one two three`, which waits for a gate."""

    def script(seen: Seen) -> Reply:
        return Reply("L1") if seen.is_route else Reply("one two three", gate=gate, gate_after=after)

    return script


async def finished(running: Running, name: str) -> dict[str, Any]:
    """A response once it is no longer being made."""
    async with asyncio.timeout(5):
        while True:
            body: dict[str, Any] = (await running.client.get(f"/v1/responses/{name}")).body
            if body["status"] not in ("queued", "in_progress"):
                return body
            await asyncio.sleep(0.01)


async def resumed(running: Running, name: str, after: int) -> list[dict[str, Any]]:
    """The events after a sequence number."""
    url = f"{running.url}/v1/responses/{name}?stream=true&starting_after={after}"
    async with running.client.session.get(url) as response:
        assert response.status == 200
        return parse(await response.text())


async def test_it_is_polled(stand: Standing) -> None:
    gate = asyncio.Event()
    async with stand(gated(gate)) as running:
        created = (await create(running, input="a", background=True)).body
        assert (created["status"], created["background"], created["output"]) == ("queued", True, [])
        await running.double.arrived(2)
        assert (await running.client.get(f"/v1/responses/{created['id']}")).body["status"] == "in_progress"
        gate.set()
        body = await finished(running, created["id"])
        assert body["status"] == "completed"
        assert body["output"][0]["content"][0]["text"] == "one two three"


async def test_its_stream_has_all_events_and_is_resumed_from_any_place(stand: Standing) -> None:
    gate = asyncio.Event()
    gate.set()
    async with stand(gated(gate)) as running:
        events = await stream(running, input="a", background=True)
        assert kinds(events)[:3] == ["created", "queued", "in_progress"]
        assert kinds(events)[-1] == "completed"
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        name = events[0]["response"]["id"]
        for place in range(-1, len(events)):
            assert await resumed(running, name, place) == events[place + 1 :]


async def test_a_stream_is_resumed_while_it_goes_on(stand: Standing) -> None:
    gate = asyncio.Event()
    async with stand(gated(gate, 2)) as running:
        body = {"model": "test-model", "input": "a", "background": True, "stream": True}
        async with running.client.session.post(running.url + "/v1/responses", json=body) as response:
            told = b""
            while b"one" not in told:
                told += await response.content.readany()
        # The client has left, and the response goes on.
        name = told.split(b'"id":"')[1].split(b'"')[0].decode()
        following = asyncio.create_task(resumed(running, name, 3))
        gate.set()
        events = await following
        assert events[0]["sequence_number"] == 4
        assert kinds(events)[-1] == "completed"
        assert events[-1]["response"]["output"][0]["content"][0]["text"] == "one two three"


async def test_a_stream_is_resumed_by_another_worker(tmp_path: Path) -> None:
    gate = asyncio.Event()
    store = f"sqlite://{tmp_path / 'store.db'}"
    async with EngineDouble(gated(gate, 2)) as double:
        loaded = await asyncio.to_thread(load, write_profile(tmp_path, double.origin))
        async with serve(loaded, store) as one, serve(loaded, store) as other:
            body = {"model": "test-model", "input": "a", "background": True, "stream": True}
            async with one.client.session.post(one.url + "/v1/responses", json=body) as response:
                told = b""
                while b"one" not in told:
                    told += await response.content.readany()
            name = told.split(b'"id":"')[1].split(b'"')[0].decode()
            following = asyncio.create_task(resumed(other, name, -1))
            gate.set()
            events = await following
            assert [event["sequence_number"] for event in events] == list(range(len(events)))
            assert kinds(events)[-1] == "completed"


async def test_cancelling_stops_the_engine(stand: Standing) -> None:
    gate = asyncio.Event()
    async with stand(gated(gate, 2)) as running:
        name = (await create(running, input="a", background=True)).body["id"]
        seen = await running.double.arrived(2)
        reply = await running.client.post({}, path=f"/v1/responses/{name}/cancel")
        assert (reply.status, reply.body["status"]) == (200, "cancelled")
        async with asyncio.timeout(5):
            await seen.ended.wait()
        assert seen.outcome == "cancelled"
        await until(lambda: running.service.admission.active == 0)
        assert (await running.client.get(f"/v1/responses/{name}")).body == reply.body
        again = await running.client.post({}, path=f"/v1/responses/{name}/cancel")
        assert again.body == reply.body


async def test_cancelling_reaches_the_worker_that_makes_the_response(tmp_path: Path) -> None:
    gate = asyncio.Event()
    store = f"sqlite://{tmp_path / 'store.db'}"
    async with EngineDouble(gated(gate, 2)) as double:
        loaded = await asyncio.to_thread(load, write_profile(tmp_path, double.origin))
        async with serve(loaded, store) as one, serve(loaded, store) as other:
            body = {"model": "test-model", "input": "a", "background": True, "stream": True}
            async with one.client.session.post(one.url + "/v1/responses", json=body) as response:
                told = await response.content.readuntil(b"\n\n")
                name = told.split(b'"id":"')[1].split(b'"')[0].decode()
                seen = await double.arrived(2)
                assert (await other.client.post({}, path=f"/v1/responses/{name}/cancel")).status == 200
                async with asyncio.timeout(5):
                    await seen.ended.wait()
                    await response.read()
            assert seen.outcome == "cancelled"


async def test_deleting_stops_it(stand: Standing) -> None:
    gate = asyncio.Event()
    async with stand(gated(gate, 2)) as running:
        name = (await create(running, input="a", background=True)).body["id"]
        seen = await running.double.arrived(2)
        assert (await delete(running, f"/v1/responses/{name}")).status == 200
        async with asyncio.timeout(5):
            await seen.ended.wait()
        assert seen.outcome == "cancelled"
        assert (await running.client.get(f"/v1/responses/{name}")).status == 404


async def test_an_error_of_the_engine_is_the_responses(stand: Standing) -> None:
    def script(seen: Seen) -> Reply:
        return Reply("L1") if seen.is_route else Reply(status=500, error={"message": "broken"})

    async with stand(script) as running:
        name = (await create(running, input="a", background=True)).body["id"]
        body = await finished(running, name)
        assert (body["status"], body["error"]["code"]) == ("failed", "server_error")


async def test_what_was_not_made_in_the_background_is_neither_cancelled_nor_streamed_again(stand: Standing) -> None:
    async with stand(lambda seen: Reply("L1")) as running:
        name = (await create(running, input="a")).body["id"]
        finished = await running.client.post({}, path=f"/v1/responses/{name}/cancel")
        assert finished.body["status"] == "completed"
        refused = await running.client.get(f"/v1/responses/{name}?stream=true")
        assert (refused.status, refused.body["error"]["param"]) == (400, "stream")


async def test_the_end_of_the_service_fails_what_it_cuts_off(tmp_path: Path) -> None:
    store = f"sqlite://{tmp_path / 'store.db'}"
    async with EngineDouble(gated(asyncio.Event(), 2)) as double:
        loaded = await asyncio.to_thread(load, write_profile(tmp_path, double.origin))
        async with serve(loaded, store) as running:
            body = {"model": "test-model", "input": "a", "background": True}
            name = (await running.client.post(body, path="/v1/responses")).body["id"]
            await double.arrived(2)
        async with serve(loaded, store) as running:
            body = (await running.client.get(f"/v1/responses/{name}")).body
            assert body["status"] == "failed"
            assert "stopped" in body["error"]["message"]


async def test_it_needs_to_be_kept(stand: Standing) -> None:
    async with stand(lambda seen: Reply("L1")) as running:
        reply = await create(running, input="a", background=True, store=False)
        assert (reply.status, reply.body["error"]["param"]) == (400, "background")
