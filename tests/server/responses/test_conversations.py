"""The Conversations API, and responses in a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from macaron.server.keys import read_keys
from tests.doubles.engine_double import Reply, Seen
from tests.harness import Reply as Answer
from tests.server.conftest import Stand, Standing
from tests.server.responses.asking import create, delete, said

PATH = "/v1/conversations"


def echo(seen: Seen) -> Reply:
    return Reply("L1" if seen.is_route else f"you said {seen.body['messages'][-1]['content']}")


async def make(running: Stand, **fields: Any) -> dict[str, Any]:
    reply = await running.client.post(fields, path=PATH)
    assert reply.status == 200, reply.body
    body: dict[str, Any] = reply.body
    return body


async def items(running: Stand, name: str, query: str = "order=asc") -> Answer:
    return await running.client.get(f"{PATH}/{name}/items?{query}")


def user(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **fields}


async def test_it_is_created_changed_and_deleted(stand: Standing) -> None:
    async with stand(echo) as running:
        made = await make(running, metadata={"topic": "a"})
        assert (made["object"], made["metadata"]) == ("conversation", {"topic": "a"})
        path = f"{PATH}/{made['id']}"
        assert (await running.client.get(path)).body == made
        changed = await running.client.post({"metadata": {"topic": "b"}}, path=path)
        assert changed.body == {**made, "metadata": {"topic": "b"}}
        assert (await running.client.get(path)).body == changed.body
        gone = await delete(running, path)
        assert gone.body == {"id": made["id"], "object": "conversation.deleted", "deleted": True}
        assert (await running.client.get(path)).status == 404


async def test_items_are_added_read_and_deleted(stand: Standing) -> None:
    async with stand(echo) as running:
        name = (await make(running, items=[user("a", id="msg_a")]))["id"]
        added = await running.client.post({"items": [user("b"), user("c")]}, path=f"{PATH}/{name}/items")
        assert [item["content"][0]["text"] for item in added.body["data"]] == ["b", "c"]
        listed = (await items(running, name)).body
        assert [item["content"][0]["text"] for item in listed["data"]] == ["a", "b", "c"]
        one = f"{PATH}/{name}/items/msg_a"
        assert (await running.client.get(one)).body == listed["data"][0]
        assert (await delete(running, one)).body["id"] == name
        assert (await running.client.get(one)).status == 404
        assert (await delete(running, one)).status == 404


async def test_items_are_listed_in_pages(stand: Standing) -> None:
    async with stand(echo) as running:
        name = (await make(running, items=[user(f"m{n}", id=f"msg_{n}") for n in range(5)]))["id"]
        first = (await items(running, name, "limit=3")).body
        assert [item["id"] for item in first["data"]] == ["msg_4", "msg_3", "msg_2"]
        assert first["has_more"] is True
        rest = (await items(running, name, f"limit=3&after={first['last_id']}")).body
        assert [item["id"] for item in rest["data"]] == ["msg_1", "msg_0"]
        assert rest["has_more"] is False
        assert (await items(running, name, "after=msg_0")).body["data"] == []
        assert (await items(running, name, "after=nothing")).status == 400


async def test_responses_go_on_in_it(stand: Standing) -> None:
    async with stand(echo) as running:
        name = (await make(running))["id"]
        first = await create(running, input="a", conversation=name)
        assert first.body["conversation"] == {"id": name}
        await create(running, input="b", conversation={"id": name})
        assert said(running) == [("user", "a"), ("assistant", "you said a"), ("user", "b")]
        listed = (await items(running, name)).body["data"]
        assert [(item["role"], item["content"][0]["text"]) for item in listed] == [
            ("user", "a"),
            ("assistant", "you said a"),
            ("user", "b"),
            ("assistant", "you said b"),
        ]
        assert listed[1]["id"] == first.body["output"][0]["id"]


async def test_deleted_items_are_not_shown_again(stand: Standing) -> None:
    async with stand(echo) as running:
        name = (await make(running))["id"]
        await create(running, input="a", conversation=name)
        for item in (await items(running, name)).body["data"]:
            await delete(running, f"{PATH}/{name}/items/{item['id']}")
        await create(running, input="b", conversation=name)
        assert said(running) == [("user", "b")]


async def test_a_response_that_failed_adds_nothing(stand: Standing) -> None:
    def script(seen: Seen) -> Reply:
        return Reply("L1") if seen.is_route else Reply(status=500, error={"message": "broken"})

    async with stand(script) as running:
        name = (await make(running))["id"]
        assert (await create(running, input="a", conversation=name)).status == 502
        assert (await items(running, name)).body["data"] == []


async def test_a_response_in_a_conversation_is_continued_there(stand: Standing) -> None:
    async with stand(echo) as running:
        name = (await make(running))["id"]
        response = (await create(running, input="a", conversation=name)).body["id"]
        reply = await create(running, input="b", previous_response_id=response)
        assert (reply.status, reply.body["error"]["code"]) == (400, "response_in_conversation")
        assert name in reply.body["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"conversation": "conv_unknown"}, "conversation"),
        ({"conversation": {"id": 3}}, "conversation.id"),
        ({"conversation": "conv_a", "previous_response_id": "resp_a"}, "previous_response_id"),
        ({"conversation": "conv_a", "store": False}, "store"),
    ],
)
async def test_what_cannot_be_continued_is_refused(stand: Standing, fields: dict[str, Any], param: str) -> None:
    async with stand(echo) as running:
        reply = await create(running, input="a", **fields)
        assert reply.status in (400, 404)
        assert reply.body["error"]["param"] == param


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"items": [user("x")] * 21}, "items"),
        ({"items": [{"type": "item_reference", "id": "msg_1"}]}, "items[0]"),
        ({"items": [{"type": "web_search_call"}]}, "items[0].type"),
        ({"items": "x"}, "items"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"name": "x"}, "name"),
    ],
)
async def test_a_bad_conversation_is_refused_by_its_field(stand: Standing, body: dict[str, Any], param: str) -> None:
    async with stand(echo) as running:
        reply = await running.client.post(body, path=PATH)
        assert (reply.status, reply.body["error"]["param"]) == (400, param)


async def test_it_is_its_tenants_alone(stand: Standing, key_file: Callable[[str], Path]) -> None:
    text = "alice:alice-key-0123456789\nbob:bob-key-0123456789\n"
    keys = await asyncio.to_thread(read_keys, key_file(text))
    alice, bob = ({"authorization": f"Bearer {name}-key-0123456789"} for name in ("alice", "bob"))
    async with stand(echo, keys=keys) as running:
        name = (await running.client.post({}, path=PATH, headers=alice)).body["id"]
        assert (await running.client.get(f"{PATH}/{name}", headers=alice)).status == 200
        assert (await running.client.get(f"{PATH}/{name}", headers=bob)).status == 404
        assert (await running.client.get(f"{PATH}/{name}/items", headers=bob)).status == 404
        assert (await create(running, input="a", conversation=name, headers=bob)).status == 404
        assert (await running.client.get(f"{PATH}/{name}")).status == 401
