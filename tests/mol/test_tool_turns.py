"""Tool loops, end to end: which requests continue a turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from macaron.conversation import ToolCall
from macaron.hcp import Loaded
from macaron.registry.cards import registry_from
from tests.doubles.engine_double import Call, EngineDouble, Reply, Seen
from tests.harness import serve, write_profile
from tests.mol.heart import Heart, InstantEngine, answering
from tests.mol.heart import result as result_item
from tests.mol.heart import user as user_item
from tests.mol.talk import (
    TOOLS,
    TRACE,
    Message,
    result,
    said,
    shown,
    steps,
    user,
)

ASKED = [user("what is the weather?")]
FIND_OUT = Call("weather", '{"city": "Rome", "days": [1, 2]}')


def tool_user(seen: Seen) -> Reply | str:
    """L1 calls a tool for every question and answers every result; the route is L1 once, then L3."""
    if seen.is_route:
        return "L1" if "weather" in seen.prompt else "L3"
    return "it rains" if shown(seen)[-1]["role"] == "tool" else Reply(calls=(FIND_OUT,))


def as_it_was(history: list[Message]) -> list[Message]:
    return history


def other_arguments(history: list[Message]) -> list[Message]:
    history[1]["tool_calls"][0]["function"]["arguments"] = '{"days":[1,2],\n  "city":"Rome"}'
    return history


def in_parts(history: list[Message]) -> list[Message]:
    parts = [{"type": "text", "text": "what is"}, {"type": "text", "text": "the  weather?"}]
    return [user(parts), *history[1:-1], {**history[-1], "content": [{"type": "text", "text": "rain"}]}]


def with_a_clock(history: list[Message]) -> list[Message]:
    return [{"role": "system", "content": "It is 10:32:07."}, *history]


def other_ids(history: list[Message]) -> list[Message]:
    history[1]["tool_calls"][0]["id"] = history[2]["tool_call_id"] = "call_of_the_client"
    return history


def empty_content(history: list[Message]) -> list[Message]:
    history[1]["content"] = ""
    return history


@pytest.mark.parametrize(
    "change", [as_it_was, other_arguments, in_parts, with_a_clock, other_ids, empty_content], ids=lambda f: f.__name__
)
async def test_a_tool_result_stays_with_its_specialist_however_the_history_is_written(
    tmp_path: Path, change: Callable[[list[Message]], list[Message]]
) -> None:
    async with EngineDouble(tool_user) as double, serve(write_profile(tmp_path, double.origin)) as running:
        first = await running.client.chat(ASKED, tools=TOOLS, headers=TRACE)
        history = change([*ASKED, said(first), result("call_double", "rain")])
        reply = await running.client.chat(history, tools=TOOLS, headers=TRACE)
    assert (reply.adapter, reply.headers["x-macaron-hops"], reply.text) == ("L1", "answer", "it rains")
    assert reply.headers["x-macaron-session"] == first.headers["x-macaron-session"]
    calls = [message for message in shown(double.requests[-1]) if message.get("tool_calls")]
    assert [message["tool_call_id"] for message in shown(double.requests[-1]) if message["role"] == "tool"] == [
        calls[0]["tool_calls"][0]["id"]
    ]


async def test_a_tool_result_sent_again_stays_too_and_makes_a_sibling(tmp_path: Path) -> None:
    async with EngineDouble(tool_user) as double, serve(write_profile(tmp_path, double.origin)) as running:
        first = await running.client.chat(ASKED, tools=TOOLS, headers=TRACE)
        history = [*ASKED, said(first), result("call_double", "rain")]
        for _ in range(2):
            reply = await running.client.chat(history, tools=TOOLS, headers=TRACE)
            assert (reply.adapter, reply.headers["x-macaron-hops"]) == ("L1", "answer")
        one, two, three = await steps(running, first.headers["x-macaron-session"])
    assert two.parent == three.parent == one.id
    assert two.turn == three.turn == one.turn


async def test_results_and_then_a_user_message_are_a_new_routed_turn(tmp_path: Path) -> None:
    async with EngineDouble(tool_user) as double, serve(write_profile(tmp_path, double.origin)) as running:
        first = await running.client.chat(ASKED, tools=TOOLS, headers=TRACE)
        history = [*ASKED, said(first), result("call_double", "rain"), user("draw it")]
        reply = await running.client.chat(history, tools=TOOLS, headers=TRACE)
        one, two = await steps(running, first.headers["x-macaron-session"])
    assert (reply.adapter, reply.headers["x-macaron-hops"]) == ("L3", "route,answer")
    assert (one.label, two.label, two.parent) == ("L1", "L3", one.id)
    assert two.turn != one.turn
    assert not [message for message in shown(double.requests[-1]) if message["role"] == "tool"]


async def test_some_of_the_results_continue_the_turn_and_are_passed_on_as_they_are(tmp_path: Path) -> None:
    def script(seen: Seen) -> Reply | str:
        if seen.is_route:
            return "L1"
        last = shown(seen)[-1]["role"] == "tool"
        return "half done" if last else Reply(calls=(Call("weather", id="one"), Call("weather", id="two")))

    async with EngineDouble(script) as double, serve(write_profile(tmp_path, double.origin)) as running:
        first = await running.client.chat(ASKED, tools=TOOLS)
        reply = await running.client.chat([*ASKED, said(first), result("two", "rain")], tools=TOOLS, headers=TRACE)
    assert reply.headers["x-macaron-hops"] == "answer"
    assert [call["id"] for call in shown(double.requests[-1])[1]["tool_calls"]] == ["one", "two"]
    assert [message["tool_call_id"] for message in shown(double.requests[-1]) if message["role"] == "tool"] == ["two"]


async def test_labels_that_share_an_adapter_keep_their_own_tool_turns(loaded: Loaded) -> None:
    """Two specialists on one revision differ by their prompts: the label decides, not the first with the revision."""
    registry = registry_from(loaded)
    shared = tuple(replace(item, revision="sha256:one") for item in registry.specialists)
    call = ToolCall("c", "look", "{}")
    engine = InstantEngine(lambda _: "L3", lambda _: answering(calls=[call]))
    heart = Heart(loaded, engine, replace(registry, specialists=shared))
    items = [user_item("q"), *(await heart.turn([user_item("q")])).items]
    outcome = await heart.turn([*items, result_item("c", "found")])
    assert (outcome.label, outcome.reason) == ("L3", "sticky")


async def test_a_tool_turn_of_a_specialist_that_is_gone_is_routed_as_a_turn_of_its_own(loaded: Loaded) -> None:
    engine = InstantEngine(lambda _: "L3", lambda _: answering(calls=[ToolCall("c", "look", "{}")]))
    heart = Heart(loaded, engine)
    first = await heart.turn([user_item("q")])
    registry = registry_from(loaded)
    left = tuple(item for item in registry.specialists if item.label != "L3")
    later = Heart(loaded, engine, replace(registry, specialists=left))
    await later.store.put_steps(await heart.store.session("local", first.session))
    engine.label = lambda _: "L1"
    outcome = await later.turn([user_item("q"), *first.items, result_item("c", "found")], id="second")
    one, two = await later.store.session("local", outcome.session)
    assert (outcome.label, outcome.reason) == ("L1", "routed")
    assert two.turn != one.turn
