"""The whole service in front of a real vLLM."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from macaron.conversation import Step
from tests.harness import Running, serve
from tests.mol.talk import TRACE, all_steps, content, events, read_until, result, said, user
from tests.vllm.server import ADAPTERS
from tests.vllm.talk import CITY, GREEDY, NAMED, QUESTION, TOOLS, Server, head, pinned, profile

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(600)]

# Runs until it is stopped: some 20 seconds.
ENDLESS: dict[str, Any] = {"max_tokens": 400, "ignore_eos": True}


def route_outcome(step: Step) -> str:
    """How the route hop of a step ended."""
    (hop,) = (hop for hop in step.hops if hop.kind == "route")
    return hop.outcome


async def idle(vllm: Server, within: float = 10.0) -> None:
    """Wait until nothing runs in vLLM."""
    async with asyncio.timeout(within):
        while await vllm.running():  # noqa: ASYNC110, it is vLLM that changes it
            await asyncio.sleep(0.05)


async def test_a_chat_is_routed_and_answered(tmp_path: Path, origin: str) -> None:
    async with serve(profile(tmp_path, origin)) as running:
        reply = await running.client.chat([user(QUESTION)], headers=TRACE, **GREEDY)
        (step,) = await all_steps(running)
    assert reply.status == 200
    assert reply.adapter in ADAPTERS
    assert reply.text.strip()
    assert (step.label, route_outcome(step), step.hops[-1].outcome) == (reply.adapter, "ok", "ok")
    assert reply.body["usage"]["completion_tokens"] > 0


async def test_a_streamed_chat_says_the_same(tmp_path: Path, origin: str) -> None:
    async with serve(profile(tmp_path, origin)) as running:
        whole = await running.client.chat([user(QUESTION)], headers=TRACE, **GREEDY)
        options = {"include_usage": True}
        async with running.client.stream([user(QUESTION)], headers=TRACE, stream_options=options, **GREEDY) as stream:
            chunks = await events(stream)
    assert content(chunks) == whole.text
    assert stream.headers["x-macaron-adapter"] == whole.adapter
    assert len(chunks) > 3
    assert chunks[-1]["usage"]["completion_tokens"] == whole.body["usage"]["completion_tokens"]


async def test_every_specialist_answers_on_its_own_adapter(tmp_path: Path, origin: str, vllm: Server) -> None:
    models = {"L0": "L0", "L1": "L1", "Base": "base"}
    async with serve(profile(tmp_path, origin, labels=tuple(models))) as running:
        for label in models:
            reply = await running.client.chat([user(QUESTION)], headers=pinned(label), **GREEDY)
            direct = {model: await vllm.text(model, head(label, user(QUESTION))) for model in models.values()}
            assert reply.text == direct[models[label]]
            assert list(direct.values()).count(reply.text) == 1, direct


@pytest.mark.parametrize("stream", [True, False])
async def test_a_tool_result_stays_on_the_adapter_that_called(tmp_path: Path, origin: str, stream: bool) -> None:
    asked = user("What is the weather in Paris?")
    fields: dict[str, Any] = {"tools": TOOLS, "tool_choice": NAMED, "temperature": 0, "max_tokens": 80}
    async with serve(profile(tmp_path, origin)) as running:
        if stream:
            async with running.client.stream([asked], headers=pinned("L1"), **fields) as response:
                message = assembled(await events(response))
        else:
            message = said(await running.client.chat([asked], headers=pinned("L1"), **fields))
        (call,) = message["tool_calls"]
        history = [asked, message, result(call["id"], "Sunny, 20 degrees.")]
        reply = await running.client.chat(history, headers=TRACE, tools=TOOLS, **GREEDY)
    assert call["function"]["name"] == "get_weather"
    assert set(json.loads(call["function"]["arguments"])) == {"city"}
    assert (reply.status, reply.adapter, reply.headers["x-macaron-hops"]) == (200, "L1", "answer")


def assembled(chunks: list[Any]) -> dict[str, Any]:
    """The message with one call that a client puts together from a stream."""
    pieces = [call for chunk in chunks for choice in chunk["choices"] for call in choice["delta"].get("tool_calls", ())]
    name = "".join(piece["function"].get("name") or "" for piece in pieces)
    arguments = "".join(piece["function"].get("arguments") or "" for piece in pieces)
    call = {"id": pieces[0]["id"], "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@pytest.mark.parametrize("stream", [True, False])
async def test_two_choices_with_logprobs(tmp_path: Path, origin: str, stream: bool) -> None:
    fields: dict[str, Any] = {"n": 2, "max_tokens": 4, "ignore_eos": True, "logprobs": True, "top_logprobs": 2}
    async with serve(profile(tmp_path, origin)) as running:
        if stream:
            async with running.client.stream([user(QUESTION)], headers=pinned("L1"), **fields) as response:
                pieces = [choice for chunk in await events(response) for choice in chunk["choices"]]
        else:
            reply = await running.client.chat([user(QUESTION)], headers=pinned("L1"), **fields)
            pieces = reply.body["choices"]
        steps = await all_steps(running)
    for index in range(2):
        mine = [piece for piece in pieces if piece["index"] == index]
        tokens = [token for piece in mine if piece.get("logprobs") for token in piece["logprobs"]["content"]]
        assert [piece["finish_reason"] for piece in mine if piece["finish_reason"]] == ["length"]
        assert len(tokens) == 4
        assert all(len(token["top_logprobs"]) >= 2 and token["logprob"] <= 0 for token in tokens)
    assert len(steps) == 2


async def test_an_answer_keeps_to_its_schema(tmp_path: Path, origin: str) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "place", "strict": True, "schema": CITY}}
    async with serve(profile(tmp_path, origin)) as running:
        reply = await running.client.chat(
            [user(QUESTION)], headers=pinned("L0"), response_format=form, temperature=0, max_tokens=60
        )
    assert set(json.loads(reply.text)) == {"city"}


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
async def test_more_room_than_the_context_has_is_clamped(tmp_path: Path, origin: str, field: str) -> None:
    async with serve(profile(tmp_path, origin)) as running:
        reply = await running.client.chat(
            [user(QUESTION)], headers=pinned("L1"), temperature=0, stop=["."], **{field: 32_000}
        )
    assert reply.status == 200
    assert reply.body["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("fields", [{}, {"max_tokens": 8}, {"stream": True}])
async def test_a_conversation_longer_than_the_context_is_refused(
    tmp_path: Path, origin: str, fields: dict[str, Any]
) -> None:
    async with serve(profile(tmp_path, origin)) as running:
        reply = await running.client.chat([user("word " * 3000)], headers=pinned("L1"), **fields)
    assert reply.status == 400
    error = reply.body["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", "messages")


async def test_an_adapter_that_vllm_does_not_know_is_named(tmp_path: Path, origin: str) -> None:
    async with serve(profile(tmp_path, origin, labels=("L0", "L7"))) as running:
        reply = await running.client.chat([user(QUESTION)], headers=pinned("L7"), **GREEDY)
    assert reply.status == 502
    assert reply.body["error"]["code"] == "engine_not_found"
    assert "`L7` does not exist" in reply.body["error"]["message"]


async def test_a_client_that_leaves_a_stream_frees_the_engine(tmp_path: Path, origin: str, vllm: Server) -> None:
    finished = await vllm.finished()
    async with serve(profile(tmp_path, origin)) as running:
        async with running.client.stream([user(QUESTION)], headers=pinned("L1"), **ENDLESS) as response:
            await read_until(response, '"content"')
            assert await vllm.running() == 1
        await idle(vllm)
    assert await vllm.finished() == finished


async def test_a_client_that_leaves_without_a_stream_frees_the_engine(
    tmp_path: Path, origin: str, vllm: Server
) -> None:
    finished = await vllm.finished()
    async with serve(profile(tmp_path, origin)) as running:
        asking = asyncio.create_task(running.client.chat([user(QUESTION)], headers=pinned("L1"), **ENDLESS))
        async with asyncio.timeout(20):
            while not await vllm.running():  # noqa: ASYNC110, it is vLLM that changes it
                await asyncio.sleep(0.05)
        asking.cancel()
        await idle(vllm)
    assert await vllm.finished() == finished


async def test_a_turn_is_summarised_on_the_adapter_that_answered(tmp_path: Path, origin: str) -> None:
    async with serve(profile(tmp_path, origin, summary="eager", mol="summary_tokens = 2")) as running:
        await running.client.chat([user(QUESTION)], headers=pinned("L1"), stop=["."], **{**GREEDY, "max_tokens": 24})
        async with asyncio.timeout(20):
            while not (await all_steps(running))[0].summary:  # noqa: ASYNC110, the service writes it
                await asyncio.sleep(0.05)
        hops = await counted(running, "macaron_hops_total")
    assert hops == {"L1 answer ok": 1, "L1 summary ok": 1}


async def routed_label(folder: Path, origin: str) -> str:
    """The label that vLLM gives the question."""
    async with serve(profile(folder, origin)) as running:
        return (await running.client.chat([user(QUESTION)], headers=TRACE, max_tokens=1)).adapter


async def test_a_speculated_answer_serves_a_conversation_of_two_turns(tmp_path: Path, origin: str) -> None:
    label = await routed_label(tmp_path, origin)
    async with serve(profile(tmp_path, origin, default=label, mol="speculate = true")) as running:
        first = await running.client.chat([user(QUESTION)], headers=TRACE, **GREEDY)
        history = [user(QUESTION), said(first), user("And of Spain?")]
        second = await running.client.chat(history, headers=TRACE, **GREEDY)
        outcomes = await counted(running, "macaron_speculation_total")
        steps = await all_steps(running)
    assert (first.status, second.status, first.adapter) == (200, 200, label)
    assert outcomes.get("hit", 0) >= 1
    assert sum(outcomes.values()) == 2
    assert [step.parent for step in steps] == [None, steps[0].id]


async def test_a_lost_speculation_is_cancelled_in_the_engine(tmp_path: Path, origin: str, vllm: Server) -> None:
    label = await routed_label(tmp_path, origin)
    (other,) = set(ADAPTERS) - {label}
    finished = await vllm.finished()
    async with serve(profile(tmp_path, origin, default=other, mol="speculate = true")) as running:
        reply = await running.client.chat([user(QUESTION)], headers=TRACE, **{**ENDLESS, "max_tokens": 24})
        outcomes = await counted(running, "macaron_speculation_total")
        (step,) = await all_steps(running)
        await idle(vllm)
    assert (reply.status, reply.adapter, step.label) == (200, label, label)
    assert outcomes == {"miss": 1}
    # The route and the answer; the speculated one would have been the third.
    assert await vllm.finished() == finished + 2


async def counted(running: Running, name: str) -> dict[str, float]:
    """A counter of the service by the values of its labels."""
    async with running.client.session.get(f"{running.url}/metrics") as response:
        lines = (await response.text()).splitlines()
    found = [line for line in lines if line.startswith(f"{name}{{")]
    return {" ".join(line.split('"')[1::2]): float(line.rsplit(" ", 1)[1]) for line in found}
