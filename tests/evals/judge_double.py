"""A judge double: an OpenAI-compatible endpoint on the loopback that replies what a test wants.

It stands for a strong model, which cannot run here. It shows what the judge's client does with each kind of reply, and
says nothing about how well a model judges.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import web


class Said(NamedTuple):
    """A reply: the message's text as a completion, or, with `body`, exactly these bytes."""

    text: str = ""
    status: int = 200
    body: bytes | None = None


Script = Callable[[dict[str, Any]], Said]
"""From the request's body to the reply."""

GOOD = '{"score": 4, "reason": "It says what is open."}'


class JudgeDouble:
    """What the judge was asked, and the script that answers. Set `hang` to make it silent."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.hang = False
        self.url = ""
        self.asked = asyncio.Event()
        self._released = asyncio.Event()

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append(await request.json())
        self.keys.append(request.headers.get("authorization", ""))
        self.asked.set()
        if self.hang:
            await self._released.wait()
        said = self.script(self.requests[-1])
        if said.body is not None:
            return web.Response(status=said.status, body=said.body)
        completion = {
            "model": "double-1",
            "system_fingerprint": "fp_7",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": said.text}, "finish_reason": "stop"}],
        }
        return web.Response(status=said.status, text=json.dumps(completion), content_type="application/json")

    def release(self) -> None:
        self._released.set()


@asynccontextmanager
async def judge_double(script: Script) -> AsyncIterator[JudgeDouble]:
    """A double that listens until the block ends."""
    double = JudgeDouble(script)
    app = web.Application(client_max_size=4 << 20)
    app.router.add_post("/v1/chat/completions", double.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    double.url = f"http://{host}:{port}/v1"
    try:
        yield double
    finally:
        double.release()
        await runner.cleanup()
