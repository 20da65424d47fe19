"""Reads a stream of Messages events as a client does, and fails where their order is not the public one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}


def events_of(data: bytes) -> list[dict[str, Any]]:
    """The events; the name of each is its type."""
    events = []
    for block in data.decode().split("\n\n")[:-1]:
        name, payload = block.split("\n")
        event = json.loads(payload.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def message_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that the events amount to; `input` of a call is its text, put together."""
    queue = iter(events)
    start = next(queue)
    assert start["type"] == "message_start"
    message: dict[str, Any] = start["message"]
    assert next(queue) == {"type": "ping"}
    for event in queue:
        if event["type"] == "message_delta":
            assert next(queue) == {"type": "message_stop"}
            assert next(queue, None) is None
            return {**message, **event["delta"], "usage": event["usage"]}
        assert event["type"] == "content_block_start"
        assert event["index"] == len(message["content"])
        message["content"].append(_block(event, queue))
    raise AssertionError("the stream has no end")


def _block(start: dict[str, Any], events: Iterator[dict[str, Any]]) -> dict[str, Any]:
    block: dict[str, Any] = start["content_block"]
    kind, field = DELTAS[block["type"]]
    text = ""
    for event in events:
        assert event["index"] == start["index"]
        if event["type"] == "content_block_stop":
            assert block["type"] != "thinking" or block["signature"]
            return block | {("input" if block["type"] == "tool_use" else field): text}
        assert event["type"] == "content_block_delta"
        if event["delta"]["type"] == "signature_delta":
            block["signature"] = event["delta"]["signature"]
        else:
            assert event["delta"]["type"] == kind
            text += event["delta"][field]
    raise AssertionError("a block has no end")
