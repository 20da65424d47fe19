"""Stateless clients keep their views where the store knows nothing of them: carriers, end to end."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import openai
import pytest

from macaron.hcp import Loaded, load
from macaron.server.keys import Caller, Keys
from tests.doubles.engine_double import Call, EngineDouble, Reply, Seen
from tests.harness import Running, serve, write_profile
from tests.server.conftest import Stand
from tests.server.responses.asking import create, kinds, said, stream

KEY, OTHER = b"k" * 32, b"o" * 32
LONG = "tangerine " * 400
NOTE = "[summary of L1's answer: mandarin]"
TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
Items = list[dict[str, Any]]


def script(seen: Seen) -> Reply:
    """`code` goes to L1, `plan` to L3, `ask` to L2, which calls a tool; long answers, and a summary of one word."""
    if seen.is_route:
        return Reply("L3" if "plan" in seen.prompt else "L2" if "ask" in seen.prompt else "L1")
    if "Summarise what you did." in seen.prompt:
        return Reply("mandarin")
    last = seen.body["messages"][-1]
    if last["role"] == "user" and "ask" in str(last["content"]):
        return Reply(calls=(Call("weather"),))
    return Reply(LONG, reasoning="hm" if "think" in str(last["content"]) else "")


class Replicas:
    """Services with stores of their own in front of one engine."""

    def __init__(self, loaded: Loaded, double: EngineDouble) -> None:
        self._loaded = loaded
        self.double = double

    @contextlib.asynccontextmanager
    async def fresh(self, *keys: bytes, store: str = "memory:", callers: Keys | None = None) -> AsyncGenerator[Stand]:
        """A service that knows nothing of what was said before."""
        async with serve(self._loaded, store, keys=callers, state_keys=keys or (KEY,)) as running:
            yield Stand(running, self.double)


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncGenerator[Replicas]:
    async with EngineDouble(script) as double:
        yield Replicas(await asyncio.to_thread(load, write_profile(tmp_path, double.origin)), double)


async def respond(running: Stand, items: Items, *, headers: dict[str, str] | None = None, **fields: Any) -> Items:
    """One turn with everything sent again; returns the whole conversation."""
    fields = {"store": False, "include": ["reasoning.encrypted_content"], **fields}
    reply = await create(running, input=items, headers=headers, **fields)
    assert reply.status == 200, reply.body
    await running.service.background.drain(5)
    return [*items, *reply.body["output"]]


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("store.db*"))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def carriers(items: Items) -> list[str]:
    return [item["encrypted_content"] for item in items if item.get("encrypted_content")]


def without(items: Items) -> Items:
    """A conversation of a client that keeps no reasoning."""
    return [item for item in items if item.get("type") != "reasoning"]


def counted(running: Running) -> dict[str, float]:
    return dict(running.service.metrics.tally.counter("macaron_carriers"))


async def two_turns(running: Stand) -> Items:
    """L1 answers, then L3, whose view has a note of L1's answer: it is decided."""
    items = await respond(running, [user("code pineapple")])
    items = await respond(running, [*items, user("plan clementine")])
    assert NOTE in str(said(running, -2))
    return items


async def test_the_answer_has_one_reasoning_item_with_the_carrier(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        reply = await create(
            running, input="code", store=False, include=["reasoning.encrypted_content"], reasoning={"summary": "auto"}
        )
        assert [item["type"] for item in reply.body["output"]] == ["reasoning", "message"]
        assert reply.body["output"][0]["summary"] == []
        assert len(carriers(reply.body["output"])) == 1
        assert counted(running) == {"made": 1}


async def test_thoughts_carry_it_where_there_are_some(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        items = await respond(running, [user("think")])
        assert [item.get("type") for item in items[1:]] == ["reasoning", "message"]
        assert items[1]["content"] == [{"type": "reasoning_text", "text": "hm"}]
        assert carriers(items)


async def test_who_does_not_ask_gets_none(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        items = await respond(running, [user("code")], include=[])
        assert [item.get("type") for item in items[1:]] == ["message"]
        assert counted(running) == {}


@pytest.mark.parametrize("words", ["code", "think", "ask"])
async def test_a_stream_tells_of_the_same_items(replicas: Replicas, words: str) -> None:
    async with replicas.fresh() as running:
        fields: dict[str, Any] = {"store": False, "include": ["reasoning.encrypted_content"], "tools": [TOOL]}
        events = await stream(running, input=words, **fields)
        whole = (await create(running, input=words, **fields)).body["output"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == events[-1]["response"]["output"]
    assert [item["type"] for item in done] == [item["type"] for item in whole]
    assert done[0]["type"] == "reasoning"
    assert carriers(done) == [done[0]["encrypted_content"]]
    assert kinds(events)[:3] == ["created", "in_progress", "output_item.added"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


async def test_an_empty_store_restores_labels_and_summaries(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        items = await two_turns(running)
    async with replicas.fresh() as running:
        await respond(running, [*items, user("plan more")])
        shown = said(running, -2)
        assert [role for role, _ in shown] == ["user", "assistant", "user", "assistant", "user"]
        assert shown[1] == ("assistant", NOTE)
        assert shown[3] == ("assistant", LONG)
        assert counted(running) == {"opened": 1, "made": 1}


async def test_without_a_carrier_the_clipped_answers_serve(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        items = without(await two_turns(running))
    async with replicas.fresh() as running:
        await respond(running, [*items, user("plan more")])
        assert "mandarin" not in str(said(running, -2))
        assert counted(running) == {"made": 1}


async def test_the_view_goes_on_byte_for_byte(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        items = await two_turns(running)
        before = said(running, -2)
    async with replicas.fresh() as running:
        await respond(running, [*items, user("plan more")])
        assert said(running, -2)[: len(before)] == before


async def test_an_empty_store_keeps_a_tool_turn_where_it_is(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        items = await respond(running, [user("ask")], tools=[TOOL])
    call = next(item for item in items if item.get("type") == "function_call")
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny plan"}
    async with replicas.fresh() as running:
        asked = len(running.double.requests)
        items = await respond(running, [*items, result], tools=[TOOL])
        hops = running.double.requests[asked:]
        assert not any(seen.is_route for seen in hops)
        assert hops[0].body["model"] == "L2"
    # And once more, with two steps in the turn by now.
    async with replicas.fresh() as running:
        await respond(running, [*items, user("plan it")], tools=[TOOL])
        shown = said(running, -2)
        assert [role for role, _ in shown] == ["user", "assistant", "user"]
        assert shown[1][1].startswith("[summary of L2's answer: tangerine")


async def test_a_stored_session_wins(replicas: Replicas, tmp_path: Path) -> None:
    async with replicas.fresh(store=f"sqlite://{tmp_path / 'store.db'}") as running:
        items = await respond(running, [user("code pineapple")])
        await respond(running, [*items, user("plan clementine")])
        assert counted(running) == {"made": 2}


async def test_a_carrier_tells_notes_that_a_restart_has_forgotten(replicas: Replicas, tmp_path: Path) -> None:
    """Digests and labels are on the disk, notes were in memory."""
    store = f"sqlite://{tmp_path / 'store.db'}"
    async with replicas.fresh(store=store) as running:
        items = await two_turns(running)
    async with replicas.fresh(store=store) as running:
        await respond(running, [*items, user("plan more")])
        assert said(running, -2)[1] == ("assistant", NOTE)
        path = await running.service.store.path("local", items[-1]["id"].replace("msg_", "resp_")[:37])
        assert len(path) == 2


async def test_nothing_that_was_restored_reaches_the_disk(replicas: Replicas, tmp_path: Path) -> None:
    async with replicas.fresh() as running:
        items = await two_turns(running)
    async with replicas.fresh(store=f"sqlite://{tmp_path / 'store.db'}") as running:
        await respond(running, [*items, user("plan blueberry")])
        assert said(running, -2)[1] == ("assistant", NOTE)
        # The write-ahead log counts too, and closing the store would move what is in it.
        data = await asyncio.to_thread(on_disk, tmp_path)
    data += await asyncio.to_thread(on_disk, tmp_path)
    assert b"L3" in data
    words = ["pineapple", "clementine", "blueberry", "tangerine", "mandarin", carriers(items)[0]]
    assert [word for word in words if word.encode() in data] == []


async def test_replicas_take_turns(replicas: Replicas) -> None:
    """Each store has every other turn only; the carriers have all, so that every view goes on where it was."""
    async with replicas.fresh() as one, replicas.fresh() as other:
        items = await two_turns(one)
        items = await respond(other, [*items, user("code again")])
        before = said(other, -2)
        items = await respond(one, [*items, user("plan again")])
        await respond(other, [*items, user("code last")])
        shown = said(other, -2)
        assert shown[: len(before)] == before
        assert [content for role, content in shown if role == "assistant"][::2] == [LONG, LONG]
        assert counted(other) == {"opened": 2, "made": 2}


async def test_another_key_opens_nothing(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        items = await two_turns(running)
    async with replicas.fresh(OTHER) as running:
        await respond(running, [*items, user("plan more")])
        assert "mandarin" not in str(said(running, -2))
        assert counted(running) == {"unknown_key": 2, "made": 1}


async def test_keys_are_changed_without_losing_a_turn(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        items = await two_turns(running)
    async with replicas.fresh(OTHER, KEY) as running:
        items = await respond(running, [*items, user("plan more")])
        assert said(running, -2)[1] == ("assistant", NOTE)
    async with replicas.fresh(OTHER) as running:
        await respond(running, [*items, user("plan and more")])
        assert said(running, -2)[1] == ("assistant", NOTE)


async def test_a_carrier_of_another_conversation_is_refused(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        spliced = carriers(await two_turns(running))
    async with replicas.fresh() as running:
        items = without(await respond(running, [user("code grapefruit")]))
    async with replicas.fresh() as running:
        mine = [{"type": "reasoning", "summary": [], "encrypted_content": text} for text in spliced]
        await respond(running, [*items[:1], *mine, *items[1:], user("plan more")])
        assert "mandarin" not in str(said(running, -2))
        assert counted(running) == {"elsewhere": 2, "made": 1}


async def test_a_carrier_of_another_head_is_refused(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        items = await two_turns(running)
    async with replicas.fresh() as running:
        await respond(running, [*items, user("plan more")], instructions="be brief")
        assert "mandarin" not in str(said(running, -2))
        assert counted(running) == {"refused": 2, "made": 1}


async def test_a_carrier_of_another_tenant_is_refused(replicas: Replicas) -> None:
    scopes = frozenset({"chat"})
    callers = Keys({_hashed("a" * 20): Caller("a", scopes), _hashed("b" * 20): Caller("b", scopes)})
    headers = [{"Authorization": f"Bearer {name * 20}"} for name in "ab"]
    async with replicas.fresh(callers=callers) as running:
        items = await respond(running, [user("code pineapple")], headers=headers[0])
        items = await respond(running, [*items, user("plan clementine")], headers=headers[0])
        await respond(running, [*items, user("plan more")], headers=headers[1])
        assert "mandarin" not in str(said(running, -2))
        assert counted(running)["refused"] == 2


async def test_a_carrier_of_another_end_user_is_refused(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        items = await respond(running, [user("code pineapple")], safety_identifier="ann")
        items = await respond(running, [*items, user("plan clementine")], safety_identifier="ann")
        await respond(running, [*items, user("plan more")], safety_identifier="bob")
        assert counted(running)["refused"] == 2


@pytest.mark.parametrize("text", ["x", "gAAAAABo" + "A" * 400, "ü", "A" * 30_000, "\x00" * 60])
async def test_what_is_no_carrier_is_no_error(replicas: Replicas, text: str) -> None:
    async with replicas.fresh() as running:
        items = [user("code"), {"type": "reasoning", "summary": [], "encrypted_content": text}]
        await respond(running, [*items, {"role": "assistant", "content": "done"}, user("plan more")])
        assert counted(running) == {"oversized" if len(text) == 30_000 else "malformed": 1, "made": 1}


async def test_a_kept_response_may_carry_too(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        first = await create(running, input="code", include=["reasoning.encrypted_content"])
        assert carriers(first.body["output"])
        second = await create(running, input="plan", previous_response_id=first.body["id"])
        assert second.status == 200


async def test_a_service_without_keys_makes_its_own(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        items = await two_turns(running)
    async with serve(running.service.loaded) as other:
        stand = Stand(other, running.double)
        await respond(stand, [*items, user("plan more")])
        assert counted(stand) == {"unknown_key": 2, "made": 1}


def _hashed(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


async def test_a_response_in_the_background_carries_too(replicas: Replicas) -> None:
    async with replicas.fresh() as running:
        fields: dict[str, Any] = {"include": ["reasoning.encrypted_content"], "background": True}
        events = await stream(running, input="code", **fields)
        (done,) = [event["item"] for event in events if event["type"] == "response.output_item.done"][:1]
        assert carriers(events[-1]["response"]["output"]) == [done["encrypted_content"]]


async def test_a_conversation_that_was_shortened_carries_nothing(replicas: Replicas) -> None:
    """What is left of it is not what its client sends again."""
    items = [user(f"code {number}") for number in range(4)]

    def short(seen: Seen) -> Reply:
        if not seen.is_route and len(seen.body["messages"]) > 3:
            message = "This model's maximum context length is 10 tokens. However, your request has 20 input tokens."
            return Reply(status=400, error={"message": message, "code": 400, "type": "BadRequestError"})
        return script(seen)

    replicas.double.script = short
    async with replicas.fresh() as running:
        said_back = await respond(running, items, truncation="auto")
        assert carriers(said_back) == []


async def test_the_official_client_goes_on_at_another_replica(replicas: Replicas) -> None:
    context: list[Any] = [{"role": "user", "content": "ask"}]
    fields: dict[str, Any] = {"model": "test-model", "store": False, "include": ["reasoning.encrypted_content"]}
    fields["tools"] = [{**TOOL, "strict": False}]
    async with replicas.fresh() as running, official(running) as client:
        async with client.responses.stream(input=context, **fields) as events:
            first = await events.get_final_response()
        context += first.output
        (call,) = [item for item in first.output if item.type == "function_call"]
        context.append({"type": "function_call_output", "call_id": call.call_id, "output": "rain"})
    async with replicas.fresh() as running, official(running) as client:
        asked = len(running.double.requests)
        second = await client.responses.create(input=context, **fields)
        assert second.output_text == LONG
        assert [seen.body["model"] for seen in running.double.requests[asked:]][:1] == ["L2"]
        assert counted(running) == {"opened": 1, "made": 1}


def official(running: Running) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="any", max_retries=0, timeout=10)
