"""What the tests of the Responses API share."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from tests.harness import Reply
from tests.server.conftest import Stand
from tests.server.responses.public import check_event, check_response


async def create(running: Stand, *, headers: dict[str, str] | None = None, **fields: Any) -> Reply:
    """A response that is not streamed; one that succeeds has the public shape."""
    body = {"model": "test-model", **fields}
    reply = await running.client.post(body, path="/v1/responses", headers=headers)
    if reply.status == 200:
        check_response(reply.body)
    return reply


def parse(text: str) -> list[dict[str, Any]]:
    """The events of a stream; their names and their end are checked."""
    *blocks, end = text.strip().split("\n\n")
    assert end == "data: [DONE]"
    events = []
    for block in blocks:
        name, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == "event: " + events[-1]["type"]
        check_event(events[-1])
    return events


async def stream(running: Stand, *, headers: dict[str, str] | None = None, **fields: Any) -> list[dict[str, Any]]:
    """The events of a streamed response."""
    body = {"model": "test-model", "stream": True, **fields}
    async with running.client.session.post(running.url + "/v1/responses", json=body, headers=headers) as response:
        text = await response.text()
        assert response.status == 200, text
    return parse(text)


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """The types of events, of equal neighbours one: how many deltas there are is the engine's affair."""
    return [kind.removeprefix("response.") for kind, _ in groupby(event["type"] for event in events)]


async def delete(running: Stand, path: str) -> Reply:
    """A DELETE."""
    async with running.client.session.delete(running.url + path) as response:
        return Reply(response.status, dict(response.headers), await response.json())


def said(running: Stand, request: int = -1) -> list[tuple[str, Any]]:
    """Role and content of what the engine was shown, without the system messages."""
    messages = running.double.requests[request].body["messages"]
    return [(message["role"], message["content"]) for message in messages if message["role"] != "system"]
