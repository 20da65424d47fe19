"""An adapter's life in a running service: registered, proved, promoted, replaced, rolled back, removed."""

from __future__ import annotations

import asyncio
import re

from tests.doubles.engine_double import Call, Reply, Seen
from tests.server.adapters.conftest import CARD, Opening, answering_by_adapter, until


async def test_a_registered_adapter_is_loaded_under_its_revision_and_proved(desk: Opening) -> None:
    async with desk() as at:
        engine = await at.register()
        digits = at.revisions["one"].removeprefix("sha256:")
        assert engine == f"L4@{digits[:12]}"
        [(name, path)] = at.double.loads
        assert name == engine
        assert path.endswith(digits)
        entry = (await at.admin("/L4")).body
        [item] = entry["revisions"]
        assert (item["state"], entry["live"]) == ("candidate", "")
        assert item["probed"][0]["passed"]
        assert item["engine"]["effect"] > 0.5


async def test_a_candidate_is_not_routed_to(desk: Opening) -> None:
    async with desk() as at:
        await at.register()
        assert (await at.ask("L4")).adapter == "L0"


async def test_a_promoted_one_is_a_label_of_the_router_with_its_card(desk: Opening) -> None:
    async with desk() as at:
        engine = await at.live()
        answer = await at.ask("L4")
        assert (answer.adapter, answer.text) == ("L4", f"from {engine}")
        route = next(seen for seen in reversed(at.double.requests) if seen.is_route)
        assert route.body["structured_outputs"]["choice"][-1] == "L4"
        assert f"L4: {CARD['description']} Not for: {CARD['boundary']}" in route.prompt
        asked = at.double.requests[-2] if at.double.requests[-1].is_route else at.double.requests[-1]
        assert CARD["identity"] in asked.prompt


async def test_each_step_records_the_generation_and_revision_it_was_made_under(desk: Opening) -> None:
    async with desk() as at:
        await at.live()
        answer = await at.ask("L4", headers={"x-session-id": "s"})
        assert answer.body["metadata"]["macaron_revision"] == at.revisions["one"]
        trace = await at.client.get("/v1/macaron/sessions/s", {"authorization": "Bearer owner-key-0123456789"})
        assert trace.body["steps"][0]["generation"] == at.running.service.generation


async def test_a_rollback_is_in_force_with_the_next_turn(desk: Opening) -> None:
    async with desk() as at:
        await at.live()
        assert (await at.admin("/L4/rollback", {})).status == 200
        assert (await at.ask("L4")).adapter == "L0"


async def test_a_label_of_the_profile_falls_back_to_the_profiles_own_revision(desk: Opening) -> None:
    async with desk() as at:
        engine = await at.live("L1", override=True)
        assert (await at.ask("L1")).text == f"from {engine}"
        await at.admin("/L1/rollback", {})
        assert (await at.ask("L1")).text == "from L1"


async def test_another_revision_of_the_entry_specialist_routes(desk: Opening) -> None:
    async with desk() as at:
        engine = await at.live("L0", override=True)
        await at.ask("L1")
        assert [seen.adapter for seen in at.double.requests if seen.is_route][-1] == engine


async def test_a_turn_in_flight_ends_on_its_revision_which_stays_until_then(desk: Opening) -> None:
    gate = asyncio.Event()

    def script(seen: Seen) -> Reply | str:
        said = answering_by_adapter(seen)
        return (
            Reply(f"{said} to the end", gate=gate, gate_after=2)
            if "slowly" in seen.prompt and not seen.is_route
            else said
        )

    async with desk(script) as at:
        first = await at.live()
        async with at.client.stream(
            [{"role": "user", "content": "slowly please L4"}], headers={"authorization": "Bearer owner-key-0123456789"}
        ) as response:
            begun = await response.content.readuntil(b"from")
            second = await at.live(name="two")
            assert (await at.ask("L4")).text == f"from {second}"
            drained = await at.admin("/L4/drain", {"revision": at.revisions["one"]})
            assert drained.status == 200, drained.body
            refused = await at.admin("/L4/remove", {"revision": at.revisions["one"]})
            assert (refused.status, refused.body["error"]["code"]) == (409, "in_use")
            assert first in at.double.adapters
            gate.set()
            whole = (begun + await response.read()).decode()
        assert first in whole
        assert second not in whole
        await until(lambda: first not in at.double.adapters)
        assert (await at.ask("L4")).text == f"from {second}"


async def test_a_tool_turn_goes_on_with_the_revision_it_began_on(desk: Opening) -> None:
    def script(seen: Seen) -> Reply | str:
        said = answering_by_adapter(seen)
        if "use a tool" in seen.prompt and not seen.is_route and "it is 7" not in seen.prompt:
            return Reply(calls=(Call("look"),))
        return said

    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    headers = {"authorization": "Bearer owner-key-0123456789", "x-macaron-trace": "1"}
    async with desk(script) as at:
        first = await at.live()
        asked = [{"role": "user", "content": "use a tool please L4"}]
        call = await at.client.chat(asked, headers=headers, tools=[tool])
        message = call.body["choices"][0]["message"]
        await at.live(name="two")
        await at.admin("/L4/drain", {"revision": at.revisions["one"]})
        await asyncio.sleep(1.2)  # more than a round, in which it must not be unloaded
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "it is 7"}
        answer = await at.client.chat([*asked, message, result], headers=headers, tools=[tool])
        assert answer.text == f"from {first}"


async def test_a_removed_label_is_gone_from_router_and_engine(desk: Opening) -> None:
    async with desk() as at:
        engine = await at.live()
        refused = await at.admin("/L4/remove", {})
        assert (refused.status, refused.body["error"]["code"]) == (409, "in_service")
        await at.admin("/L4/disable", {})
        assert (await at.ask("L4")).adapter == "L0"
        assert (await at.admin("/L4/remove", {})).status == 200
        assert (await at.admin("/L4")).status == 404
        await until(lambda: engine not in at.double.adapters)
        assert at.double.unloads == [engine]


async def test_a_disabled_label_comes_back(desk: Opening) -> None:
    async with desk() as at:
        engine = await at.live()
        await at.admin("/L4/disable", {})
        await until(lambda: engine not in at.double.adapters)
        await at.admin("/L4/enable", {})
        await at.standing("L4", engine, "ready")
        assert (await at.ask("L4")).text == f"from {engine}"


async def test_nothing_is_asked_of_an_engine_without_registered_adapters(desk: Opening) -> None:
    async with desk() as at:
        await until(lambda: at.running.adapters.follower.findings.settled)
        before = len(at.double.others)
        await asyncio.sleep(1.2)  # more than a round
        assert len(at.double.others) == before


async def test_cycles_of_loading_and_unloading_leave_nothing_behind(desk: Opening) -> None:
    async with desk() as at:
        first = await at.live()
        for _ in range(5):
            second = await at.live(name="two")
            assert (await at.ask("L4")).text == f"from {second}"
            await at.admin("/L4/rollback", {})
            assert (await at.ask("L4")).text == f"from {first}"
            await until(lambda second=second: second not in at.double.adapters)  # type: ignore[misc]
        assert at.running.service.residency.in_use() == frozenset()
        assert (len(at.double.loads), len(at.double.unloads)) == (6, 5)


async def test_no_request_fails_or_mixes_adapters_while_32_clients_stream(desk: Opening) -> None:
    """The engine answers with the adapter's name, and refuses one that it does not have."""
    done = asyncio.Event()
    said: list[tuple[str, str]] = []

    async with desk() as at:

        async def client(number: int) -> None:
            asked = [{"role": "user", "content": f"please L{number % 5}"}]
            headers = {"authorization": "Bearer owner-key-0123456789", "x-macaron-trace": "1"}
            while not done.is_set():
                async with at.client.stream(asked, headers=headers) as response:
                    assert response.status == 200, await response.text()
                    text = (await response.read()).decode()
                    words = re.findall(r'"content":"([^"]*)"', text)
                    said.append((response.headers["x-macaron-adapter"], "".join(words)))

        clients = [asyncio.create_task(client(number)) for number in range(32)]
        first = await at.live()
        await asyncio.sleep(0.1)
        second = await at.live(name="two")
        await asyncio.sleep(0.1)
        await at.admin("/L4/rollback", {})
        await asyncio.sleep(0.1)
        await at.admin("/L4/disable", {})
        await until(lambda: first not in at.double.adapters)
        assert (await at.admin("/L4/remove", {})).status == 200
        done.set()
        await asyncio.gather(*clients)
    assert {text for label, text in said if label == "L4"} == {f"from {first}", f"from {second}"}
    assert all(text == f"from {label}" for label, text in said if label != "L4")
