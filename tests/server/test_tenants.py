"""Two tenants, and two end users of one: whatever they exchange, nothing of the one reaches the other."""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from typing import Any

import pytest

from macaron.server.keys import Caller, Keys
from tests.doubles.engine_double import Call, EngineDouble, Reply, Seen
from tests.harness import Client
from tests.server.conftest import Stand, Standing

SUMMARY = "the secret summary"
ANSWER = "word " * 400
NAMES = ("x-session-id", "session-id", "x-conversation-id")
ALL = frozenset({"chat", "trace", "pin"})
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


def key(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer key-of-{name}", "x-macaron-trace": "1"}


def keys(*names: str) -> Keys:
    return Keys({sha256(f"key-of-{name}".encode()).digest(): Caller(name, ALL) for name in names})


def summarises(seen: Seen) -> bool:
    """Whether this is a summary hop."""
    return seen.prompt.endswith("Summarise what you did.")


def script(seen: Seen) -> Reply | str:
    """Code goes to L2, everything else to L1; long answers, and a summary with a secret in it."""
    if seen.is_route:
        return "L2" if "code" in str(seen.body["messages"][-1]["content"]) else "L1"
    if summarises(seen):
        return SUMMARY
    if "rain" in seen.prompt and seen.body["messages"][-1]["role"] == "user":
        return Reply(calls=(Call("weather", '{"city":"Rome"}'),))
    return ANSWER


async def first_turn(running: Stand, headers: dict[str, str], **fields: Any) -> list[Any]:
    """A turn whose summary is being made; returns the visible history and a new question for another specialist."""
    history = [*fields.pop("system", []), {"role": "user", "content": "write code"}]
    before = len(running.double.requests)
    reply = await running.client.chat(history, headers=headers, **fields)
    await running.double.arrived(before + 3)
    assert (reply.status, reply.adapter) == (200, "L2")
    return [*history, {"role": "assistant", "content": reply.text}, {"role": "user", "content": "plan a trip"}]


async def last_prompt(double: EngineDouble, client: Client, history: list[Any], **fields: Any) -> str:
    """What the answering specialist is shown for a request."""
    before = len(double.requests)
    reply = await client.chat(history, **fields)
    assert reply.status == 200
    answers = [seen for seen in double.requests[before:] if not seen.is_route and not summarises(seen)]
    return json.dumps(answers[0].body["messages"])


async def test_the_same_client_does_get_its_summary(stand: Standing) -> None:
    async with stand(script, keys=keys("a")) as running:
        history = await first_turn(running, key("a"))
        assert SUMMARY in await last_prompt(running.double, running.client, history, headers=key("a"))


@pytest.mark.parametrize("name", ["", *NAMES])
async def test_another_tenant_with_the_same_history_and_session_gets_no_summary(stand: Standing, name: str) -> None:
    named = {name: "shared-name"} if name else {}
    async with stand(script, keys=keys("a", "b")) as running:
        history = await first_turn(running, {**key("a"), **named})
        prompt = await last_prompt(running.double, running.client, history, headers={**key("b"), **named})
    assert SUMMARY not in prompt
    assert "summary of L2" not in prompt


async def test_another_tenant_that_learnt_a_session_id_gets_nothing_with_it(stand: Standing) -> None:
    async with stand(script, keys=keys("a", "b")) as running:
        asked = [{"role": "user", "content": "write code"}]
        mine = await running.client.chat(asked, headers=key("a"))
        session = mine.headers["x-macaron-session"]
        history = [*asked, {"role": "assistant", "content": mine.text}, {"role": "user", "content": "plan a trip"}]
        await running.double.arrived(3)
        stolen = await running.client.get(f"/v1/macaron/sessions/{session}", key("b"))
        for name in NAMES:
            prompt = await last_prompt(running.double, running.client, history, headers={**key("b"), name: session})
            assert SUMMARY not in prompt
        own = await running.client.get(f"/v1/macaron/sessions/{session}", key("a"))
    assert (stolen.status, stolen.body["error"]["code"]) == (404, "session_not_found")
    assert own.status == 200
    assert [step["label"] for step in own.body["steps"]] == ["L2"]


async def test_another_tenants_label_does_not_stick(stand: Standing) -> None:
    async with stand(script, keys=keys("a", "b")) as running:
        asked = [{"role": "user", "content": "write code"}]
        await running.client.chat(asked, headers=key("a"))
        again = await running.client.chat(asked, headers=key("b"))
    assert again.headers["x-macaron-hops"] == "route,answer"
    assert again.body["metadata"]["macaron_reason"] == "routed"


async def test_another_tenants_tool_turn_is_routed_anew(stand: Standing) -> None:
    async with stand(script, keys=keys("a", "b")) as running:
        asked = [{"role": "user", "content": "will it rain?"}]
        mine = await running.client.chat(asked, headers=key("a"), tools=TOOLS)
        call = mine.body["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "sunny"}
        own = await running.client.chat([*asked, call, result], headers=key("a"), tools=TOOLS)
        others = await running.client.chat([*asked, call, result], headers=key("b"), tools=TOOLS)
    assert own.body["metadata"]["macaron_reason"] == "sticky"
    assert others.body["metadata"]["macaron_reason"] == "routed"


async def test_the_engines_cache_is_told_whose_a_request_is(stand: Standing) -> None:
    async with stand(script, keys=keys("a", "b")) as running:
        for name in "ab":
            await running.client.chat([{"role": "user", "content": "write code"}], headers=key(name))
        await running.double.arrived(6)
        salts = {seen.body["cache_salt"] for seen in running.double.requests}
    assert salts == {"a", "b"}


async def test_a_session_named_alike_by_two_tenants_is_two_sessions(stand: Standing) -> None:
    async with stand(script, keys=keys("a", "b")) as running:
        ids = []
        for name in "ab":
            headers = {**key(name), "x-session-id": "shared-name"}
            reply = await running.client.chat([{"role": "user", "content": "write code"}], headers=headers)
            ids.append(reply.headers["x-macaron-session"])
        traces = [await running.client.get("/v1/macaron/sessions/shared-name", key(name)) for name in "ab"]
    assert len(set(ids)) == 2
    assert [trace.body["session"] for trace in traces] == ids
    assert [len(trace.body["steps"]) for trace in traces] == [1, 1]


USERS = [
    ({"user": "ann"}, {"user": "ben"}),
    ({"safety_identifier": "ann"}, {"safety_identifier": "ben"}),
    ({"metadata": {"user_id": "ann"}}, {"metadata": {"user_id": "ben"}}),
    ({"user": "ann"}, {}),
    ({}, {"user": "ben"}),
    ({"user": "u" * 511 + "1"}, {"user": "u" * 511 + "2"}),
]


@pytest.mark.parametrize("name", ["", "x-session-id"])
@pytest.mark.parametrize(("ann", "ben"), USERS)
async def test_another_named_user_of_the_same_tenant_gets_nothing(
    stand: Standing, ann: dict[str, Any], ben: dict[str, Any], name: str
) -> None:
    headers = {**key("a"), **({name: "shared-name"} if name else {})}
    async with stand(script, keys=keys("a")) as running:
        history = await first_turn(running, headers, **ann)
        prompt = await last_prompt(running.double, running.client, history, headers=headers, **ben)
        again = await running.client.chat(history[:1], headers=headers, **ben)
    assert SUMMARY not in prompt
    assert "summary of L2" not in prompt
    assert again.body["metadata"]["macaron_reason"] == "routed"


async def test_a_trace_is_of_one_user_only(stand: Standing) -> None:
    async with stand(script, keys=keys("a")) as running:
        reply = await running.client.chat(
            [{"role": "user", "content": "write code"}], headers={**key("a"), "x-session-id": "s"}, user="ann"
        )
        session = reply.headers["x-macaron-session"]
        statuses = {
            query: (await running.client.get(f"/v1/macaron/sessions/{query}", key("a"))).status
            for query in (f"{session}?user=ann", "s?user=ann", session, "s", f"{session}?user=ben", "s?user=ben")
        }
    assert list(statuses.values()) == [200, 200, 404, 404, 404, 404]


async def test_unnamed_users_with_different_system_prompts_share_no_hidden_state(stand: Standing) -> None:
    ann, ben = ([{"role": "system", "content": f"You help {name}."}] for name in ("Ann", "Ben"))
    async with stand(script, keys=keys("a")) as running:
        history = await first_turn(running, key("a"), system=ann)
        own = await last_prompt(running.double, running.client, history, headers=key("a"))
        others = await last_prompt(running.double, running.client, [*ben, *history[1:]], headers=key("a"))
    assert SUMMARY in own
    assert SUMMARY not in others
    assert "You help Ann." not in others
    assert "summary of L2's answer: word word" in others


async def test_a_note_made_for_one_system_prompt_is_not_frozen_for_the_other(stand: Standing) -> None:
    ann, ben = ([{"role": "system", "content": f"You help {name}."}] for name in ("Ann", "Ben"))
    async with stand(script, keys=keys("a")) as running:
        history = await first_turn(running, key("a"), system=ann)
        others = await last_prompt(running.double, running.client, [*ben, *history[1:]], headers=key("a"))
        own = await last_prompt(running.double, running.client, history, headers=key("a"))
        others_again = await last_prompt(running.double, running.client, [*ben, *history[1:]], headers=key("a"))
    assert SUMMARY not in others
    assert SUMMARY in own
    assert SUMMARY not in others_again


async def test_reasoning_is_not_shown_to_a_user_with_another_system_prompt(stand: Standing) -> None:
    def thinking(seen: Seen) -> Reply:
        return Reply("L1") if seen.is_route else Reply("fine", reasoning="secret thoughts")

    ann, ben = ([{"role": "system", "content": f"You help {name}."}] for name in ("Ann", "Ben"))
    async with stand(thinking, keys=keys("a"), mol="reasoning_in_body = true") as running:
        asked = [{"role": "user", "content": "hi"}]
        await running.client.chat([*ann, *asked], headers=key("a"))
        history = [*asked, {"role": "assistant", "content": "fine"}, {"role": "user", "content": "and?"}]
        own = await last_prompt(running.double, running.client, [*ann, *history], headers=key("a"))
        others = await last_prompt(running.double, running.client, [*ben, *history], headers=key("a"))
    assert "secret thoughts" in own
    assert "secret thoughts" not in others


async def test_the_routers_context_of_another_system_prompt_holds_no_summary(stand: Standing) -> None:
    ann, ben = ([{"role": "system", "content": f"You help {name}."}] for name in ("Ann", "Ben"))
    async with stand(script, keys=keys("a"), mol='route_context = "labels"') as running:
        history = await first_turn(running, key("a"), system=ann)
        before = len(running.double.requests)
        await running.client.chat([*ben, *history[1:]], headers=key("a"))
        route = next(seen for seen in running.double.requests[before:] if seen.is_route)
    assert SUMMARY not in route.prompt


async def test_many_tenants_at_once_each_see_their_own(stand: Standing) -> None:
    def echo(seen: Seen) -> str:
        if seen.is_route:
            return "L1"
        return SUMMARY if summarises(seen) else f"for {seen.body['cache_salt']}"

    names = [f"t{number}" for number in range(8)]
    async with stand(echo, keys=keys(*names)) as running:
        asked = [{"role": "user", "content": "who am I?"}]
        for _ in range(3):
            replies = await asyncio.gather(*(running.client.chat(asked, headers=key(name)) for name in names))
            assert [reply.text for reply in replies] == [f"for {name}" for name in names]
