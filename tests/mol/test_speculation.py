"""Answers that are started before the route is known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.engine_double import Call, EngineDouble, Reply, Seen
from tests.harness import Running, serve, write_profile
from tests.mol.talk import (
    LONG,
    TOOLS,
    TRACE,
    all_steps,
    content,
    events,
    eventually,
    is_summary,
    outputs,
    read_until,
    said,
    shown,
    user,
)

SPECULATE = "speculate = true"


class Script:
    """Holds the route until `go`; answers by the adapter that is asked. L2 is the default, so it is predicted."""

    def __init__(self, label: str, answers: Callable[[str], Reply | str] = lambda model: f"{model} says") -> None:
        self.label = label
        self.go = asyncio.Event()
        self.answers = answers

    def __call__(self, seen: Seen) -> Reply | str:
        if seen.is_route:
            return Reply(self.label, gate=self.go)
        return self.answers(seen.body["model"])


async def both(double: EngineDouble) -> tuple[Seen, Seen]:
    """The route and the speculated answer, which arrive in any order."""
    await double.arrived(2)
    route, answer = sorted(double.requests[:2], key=lambda seen: not seen.is_route)
    assert route.is_route
    assert not answer.is_route
    return route, answer


async def told(running: Running, stream: bool, begun: asyncio.Event | None = None) -> tuple[str, str, Any]:
    """Ask; returns who answered, the text and the usage. `begun` is set when the response begins."""
    if not stream:
        reply = await running.client.chat([user("hi")], headers=TRACE)
        return reply.adapter, reply.text, reply.body["usage"]
    options = {"include_usage": True}
    async with running.client.stream([user("hi")], headers=TRACE, stream_options=options) as response:
        if begun is not None:
            begun.set()
        chunks = await events(response)
        return response.headers["x-macaron-adapter"], content(chunks), chunks[-1]["usage"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_hit_gives_what_was_held_and_asks_no_second_time(tmp_path: Path, stream: bool) -> None:
    script = Script("L2", lambda model: "one two three")
    async with EngineDouble(script) as double:
        async with serve(write_profile(tmp_path, double.origin, mol=SPECULATE)) as running:
            asking = asyncio.create_task(told(running, stream, begun := asyncio.Event()))
            _, answer = await both(double)
            await asyncio.wait_for(answer.ended.wait(), 5)
            assert not asking.done()
            assert not begun.is_set()
            script.go.set()
            adapter, text, _ = await asking
            (step,) = await all_steps(running)
    assert (adapter, text) == ("L2", "one two three")
    assert len(double.requests) == 2
    assert (step.label, step.status, outputs(step)) == ("L2", "completed", "one two three")


async def test_tool_calls_are_held_too(tmp_path: Path) -> None:
    script = Script("L2", lambda model: Reply(calls=(Call("weather", '{"a":1}'),)))
    begun = asyncio.Event()

    async def ask(running: Running) -> list[Any]:
        async with running.client.stream([user("hi")], tools=TOOLS) as response:
            begun.set()
            return await events(response)

    async with EngineDouble(script) as double:
        async with serve(write_profile(tmp_path, double.origin, mol=SPECULATE)) as running:
            asking = asyncio.create_task(ask(running))
            _, answer = await both(double)
            await asyncio.wait_for(answer.ended.wait(), 5)
            assert not begun.is_set()
            script.go.set()
            deltas = [chunk["choices"][0]["delta"] for chunk in await asking]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert calls[0]["function"]["name"] == "weather"
    assert "".join(call["function"]["arguments"] for call in calls) == '{"a":1}'


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_miss_leaves_no_trace_but_the_right_answer(tmp_path: Path, ended: bool, stream: bool) -> None:
    never = asyncio.Event()

    def answers(model: str) -> Reply:
        held = model == "L2" and not ended
        return Reply(f"{model} says " + LONG, gate=never if held else None, gate_after=2)

    script = Script("L3", answers)
    async with EngineDouble(script) as double:
        async with serve(write_profile(tmp_path, double.origin, mol=SPECULATE)) as running:
            asking = asyncio.create_task(told(running, stream))
            _, lost = await both(double)
            if ended:
                await asyncio.wait_for(lost.ended.wait(), 5)
            script.go.set()
            adapter, text, usage = await asking
            await asyncio.wait_for(lost.ended.wait(), 5)
            await running.service.background.drain(5.0)
            totals = await running.service.store.totals("local")
            (step,) = await all_steps(running)
    answer = double.requests[2]
    assert lost.body["model"] == "L2"
    assert lost.outcome == ("sent" if ended else "cancelled")
    assert (adapter, answer.body["model"]) == ("L3", "L3")
    assert text == "L3 says " + LONG
    assert (step.label, [hop.kind for hop in step.hops]) == ("L3", ["route", "answer", "summary"])
    assert {hop.label for hop in step.hops[1:]} == {"L3"}
    assert set(usage["hops"]) == {"route", "answer"}
    assert totals.prompt_tokens == sum(hop.usage.prompt for hop in step.hops)
    assert [seen.body["model"] for seen in double.requests if is_summary(seen)] == ["L3"]


async def test_the_last_label_of_the_session_is_predicted(tmp_path: Path) -> None:
    script = Script("L3")
    script.go.set()
    async with EngineDouble(script) as double:
        async with serve(write_profile(tmp_path, double.origin, mol=SPECULATE)) as running:
            history = [user("hi")]
            history.append(said(await running.client.chat(history)))
            before = len(double.requests)
            reply = await running.client.chat([*history, user("go on")], headers=TRACE)
            models = sorted(seen.body["model"] for seen in double.requests[before:])
    assert reply.adapter == "L3"
    assert models == ["L0", "L3"]


@pytest.mark.parametrize("route", [Reply(status=500), Reply("?"), Reply("L1", gate=asyncio.Event())])
async def test_when_the_route_fails_the_default_specialist_keeps_its_speculated_answer(
    tmp_path: Path, route: Reply
) -> None:
    more = "[engine.timeouts]\nroute = 0.1"
    async with EngineDouble(lambda seen: route if seen.is_route else "fine") as double:
        async with serve(write_profile(tmp_path, double.origin, mol=SPECULATE, more=more)) as running:
            reply = await running.client.chat([user("hi")], headers=TRACE)
    assert (reply.status, reply.text, reply.adapter) == (200, "fine", "L2")
    assert sum(not seen.is_route for seen in double.requests) == 1


async def test_when_the_route_fails_another_prediction_loses_to_the_default(tmp_path: Path) -> None:
    script = Script("L3")
    script.go.set()
    async with EngineDouble(script) as double:
        async with serve(write_profile(tmp_path, double.origin, mol=SPECULATE)) as running:
            history = [user("hi")]
            history.append(said(await running.client.chat(history)))
            script.label = "nonsense"
            reply = await running.client.chat([*history, user("go on")], headers=TRACE)
    assert (reply.adapter, reply.text) == ("L2", "L2 says")


async def test_an_error_of_a_speculated_answer_counts_only_if_it_is_wanted(tmp_path: Path) -> None:
    script = Script("L3", lambda model: Reply(status=500) if model == "L2" else "fine")
    script.go.set()
    async with EngineDouble(script) as double:
        async with serve(write_profile(tmp_path, double.origin, mol=SPECULATE)) as running:
            lost = await running.client.chat([user("hi")], headers=TRACE)
            script.label = "L2"
            wanted = await running.client.chat([user("hello")])
    assert (lost.status, lost.text) == (200, "fine")
    assert wanted.status == 502


async def test_at_high_load_nothing_is_speculated(tmp_path: Path) -> None:
    never = asyncio.Event()

    def script(seen: Seen) -> Reply | str:
        if seen.is_route:
            return "L2"
        return Reply("done", gate=never if "hold" in seen.prompt else None)

    async with EngineDouble(script) as double:
        mol = f"{SPECULATE}\nspeculate_below = 1"
        async with serve(write_profile(tmp_path, double.origin, mol=mol)) as running:
            holding = asyncio.create_task(running.client.chat([user("hold on")]))
            await both(double)
            route, gate = Seen("", "", {}, {}), asyncio.Event()

            def second(seen: Seen) -> Reply | str:
                nonlocal route
                if seen.is_route:
                    route = seen
                    return Reply("L2", gate=gate)
                assert route.ended.is_set(), "the answer begins when the route is known"
                return "done"

            double.script = second
            asking = asyncio.create_task(running.client.chat([user("hi")]))
            await double.arrived(3)
            gate.set()
            reply = await asking
            never.set()
            await holding
    assert (reply.status, len(double.requests)) == (200, 4)


async def test_nothing_is_speculated_where_a_note_would_have_to_be_decided(tmp_path: Path) -> None:
    gate = asyncio.Event()
    gate.set()
    early: list[Seen] = []

    def script(seen: Seen) -> Reply | str:
        if seen.is_route:
            return Reply("L1", gate=gate)
        if not gate.is_set() and not is_summary(seen):
            early.append(seen)
        return "the summary" if is_summary(seen) else LONG

    async with EngineDouble(script) as double:
        mol = f'{SPECULATE}\npredictor = "default"'
        async with serve(write_profile(tmp_path, double.origin, mol=mol)) as running:
            history = [user("hi")]
            history.append(said(await running.client.chat(history)))
            await running.service.background.drain(5.0)
            gate.clear()
            count = len(double.requests)
            asking = asyncio.create_task(running.client.chat([*history, user("go on")], headers=TRACE))
            route = await double.arrived(count + 1)
            gate.set()
            reply = await asking
            assert route.is_route
            assert reply.adapter == "L1"
            assert early == []
            assert sum(not is_summary(seen) for seen in double.requests[count:]) == 2
            steps = await all_steps(running)
            assert steps[0].note is None


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_while_both_run_cancels_both(tmp_path: Path, stream: bool) -> None:
    never = asyncio.Event()
    script = Script("L2", lambda model: Reply("one two", gate=never, gate_after=2))
    async with EngineDouble(script) as double:
        async with serve(write_profile(tmp_path, double.origin, mol=SPECULATE)) as running:
            asking = asyncio.create_task(running.client.chat([user("hi")], stream=stream))
            route, answer = await both(double)
            asking.cancel()
            await asyncio.wait_for(asyncio.gather(route.ended.wait(), answer.ended.wait()), 5)
            await eventually(lambda: running.service.admission.active == 0)
            await running.service.background.drain(1.0)
            assert await all_steps(running) == []
    assert (route.outcome, answer.outcome) == ("cancelled", "cancelled")
    assert len(double.requests) == 2


async def test_a_hit_streams_on_and_is_cancelled_in_the_engine_when_its_client_leaves(tmp_path: Path) -> None:
    never = asyncio.Event()
    script = Script("L2", lambda model: Reply("one two three", gate=never, gate_after=3))
    stack = AsyncExitStack()
    async with EngineDouble(script) as double:
        async with serve(write_profile(tmp_path, double.origin, mol=SPECULATE)) as running:
            asking = asyncio.create_task(stack.enter_async_context(running.client.stream([user("hi")])))
            _, answer = await both(double)
            script.go.set()
            await read_until(await asking, " two")
            await stack.aclose()
            await asyncio.wait_for(answer.ended.wait(), 5)
            await eventually(lambda: running.service.store._nodes)  # type: ignore[attr-defined]
            (step,) = await all_steps(running)
    assert answer.outcome == "cancelled"
    assert (step.status, outputs(step)) == ("cancelled", "one two")


async def test_a_tool_turn_is_not_speculated_since_it_is_not_routed(tmp_path: Path) -> None:
    script = Script("L3", lambda model: Reply(calls=(Call("weather"),)) if model == "L3" else "no")
    script.go.set()
    async with EngineDouble(script) as double:
        async with serve(write_profile(tmp_path, double.origin, mol=SPECULATE)) as running:
            first = await running.client.chat([user("hi")], tools=TOOLS)
            count = len(double.requests)
            history = [user("hi"), said(first), {"role": "tool", "tool_call_id": "call_double", "content": "rain"}]
            await running.client.chat(history, tools=TOOLS)
    assert [seen.body["model"] for seen in double.requests[count:]] == ["L3"]
    assert shown(double.requests[-1])[-1]["content"] == "rain"
