"""What tests say to a running service, and how they read what it says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import aiohttp

from macaron.conversation import Message as ItemMessage
from macaron.conversation import Step, ToolCall, text_of
from tests.doubles.engine_double import Seen
from tests.harness import Reply, Running

TRACE = {"x-macaron-trace": "1"}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
LONG = "word " * 400
INSTRUCTION = "Summarise what you did."
Message = dict[str, Any]


def user(content: Any) -> Message:
    return {"role": "user", "content": content}


def said(reply: Reply | str) -> Message:
    """The assistant's message, as a client puts it into its history."""
    if isinstance(reply, str):
        return {"role": "assistant", "content": reply}
    message: Message = reply.body["choices"][0]["message"]
    return message


def result(call_id: str, content: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def is_summary(seen: Seen) -> bool:
    return not seen.is_route and seen.prompt.endswith(INSTRUCTION)


def shown(seen: Seen) -> list[Message]:
    """The messages of a hop after its system message."""
    messages: list[Message] = seen.body["messages"]
    return messages[1:] if messages[0]["role"] == "system" else messages


async def events(response: aiohttp.ClientResponse) -> list[Any]:
    """All events of a stream, decoded, without the `[DONE]`, which has to be there."""
    lines = [line for line in (await response.text()).split("\n\n") if line.startswith("data: ")]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


async def read_until(response: aiohttp.ClientResponse, text: str) -> str:
    """What has come of a stream up to and with a text."""
    got = b""
    async with asyncio.timeout(5):
        while text.encode() not in got:
            chunk = await response.content.readany()
            assert chunk, f"the stream ended before {text!r}"
            got += chunk
    return got.decode()


def content(chunks: list[Any], choice: int = 0) -> str:
    """The text of one choice of a stream."""
    choices = [item for chunk in chunks for item in chunk.get("choices", ()) if item["index"] == choice]
    return "".join(item["delta"].get("content") or "" for item in choices)


async def steps(running: Running, session: str) -> tuple[Step, ...]:
    """The steps of a session, oldest first."""
    return await running.service.store.session("local", session)


async def all_steps(running: Running) -> list[Step]:
    """All steps of a store in memory, oldest first."""
    return [node.step for node in running.service.store._nodes.values()]  # type: ignore[attr-defined]


async def eventually(condition: Callable[[], Any], within: float = 5.0) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110, it is the service that changes it
            await asyncio.sleep(0.005)


def outputs(step: Step) -> str:
    """The text and calls of a step, for comparison."""
    items = step.outputs or ()
    texts = [text_of(item.parts) for item in items if isinstance(item, ItemMessage)]
    return " ".join([*texts, *(f"{item.name}({item.arguments})" for item in items if isinstance(item, ToolCall))])
