"""What these tests say to vLLM and to the service in front of it, and how they read the answers."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import aiohttp

from macaron.conversation import Delta, Usage
from macaron.engine.base import ChatMessage, HopRequest
from macaron.engine.vllm import VllmEngine
from tests.harness import write_profile

SPECIAL = ("<|im_start|>", "<|im_end|>")
CONTROL_IDS = (1, 2)
"""`<|im_start|>` and `<|im_end|>` in this tokenizer."""
QUESTION = "What is the capital of France?"
GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 8}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}},
    "required": ["city"],
    "additionalProperties": False,
}
# Without `strict` this vLLM does not constrain a call, not even one that it was told to make.
TOOLS = [{"type": "function", "function": {"name": "get_weather", "strict": True, "parameters": CITY}}]
NAMED = {"type": "function", "function": {"name": "get_weather"}}


def pinned(label: str) -> dict[str, str]:
    """Headers that choose a specialist and ask who answered."""
    return {"x-macaron-adapter": label, "x-macaron-trace": "1"}


def profile(
    folder: Path,
    origin: str,
    *,
    labels: tuple[str, ...] = ("L0", "L1"),
    default: str = "",
    summary: str = "off",
    mol: str = "",
) -> Path:
    """A profile of two adapters; a label `Base` is a specialist on the bare base."""
    # Without summaries what runs in the engine is what a test asked for.
    document = write_profile(
        folder, origin, labels=labels, mol=f'summary = "{summary}"\n{mol}', more='base_model = "base"'
    )
    text = document.read_text().replace('engine_name = "Base"\n', "")
    if default:
        text = re.sub(r'(?m)^default = ".*"$', f'default = "{default}"', text)
    document.write_text(text)
    return document


def head(label: str, *said: ChatMessage) -> list[ChatMessage]:
    """The messages that a specialist of `profile` is shown."""
    return [{"role": "system", "content": f"You are specialist {label}."}, *said]


def hop(adapter: str | None, messages: Sequence[ChatMessage], *, tenant: str = "", **options: Any) -> HopRequest:
    """A greedy answer hop that is not streamed."""
    return HopRequest("answer", adapter, messages, {**GREEDY, **options}, stream=False, tenant=tenant, timeout=60.0)


class Answered(NamedTuple):
    """An answer; `logprobs` are those of its tokens, where they were asked for."""

    text: str
    usage: Usage
    logprobs: tuple[float, ...] = ()

    def near(self, other: Answered, within: float = 0.01) -> bool:
        """Whether it is the same answer of the same model, but for rounding."""
        pairs = zip(self.logprobs, other.logprobs, strict=False)
        return self.text == other.text and all(abs(mine - theirs) <= within for mine, theirs in pairs)


async def answered(engine: VllmEngine, asked: HopRequest) -> Answered:
    """The answer to a hop."""
    text, usage, logprobs = "", Usage(), []
    async for batch in engine.answer(asked):
        for event in batch:
            match event:
                case Delta():
                    text += event.text
                    logprobs += [token["logprob"] for token in (event.logprobs or {}).get("content") or ()]
                case Usage():
                    usage = event
    return Answered(text, usage, tuple(logprobs))


class Server:
    """vLLM itself, spoken to past the service."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    @classmethod
    @contextlib.asynccontextmanager
    async def at(cls, origin: str) -> AsyncGenerator[Self, None]:
        """The server at an origin, until the block ends."""
        async with aiohttp.ClientSession(origin) as session:
            yield cls(session)

    async def text(self, model: str, messages: Sequence[ChatMessage]) -> str:
        """Its greedy answer, with nothing of it taken from a cache of ours."""
        body = {"model": model, "messages": messages, "cache_salt": "the test's own", **GREEDY}
        async with self._session.post("/v1/chat/completions", json=body) as reply:
            content: str = (await reply.json())["choices"][0]["message"]["content"]
            return content

    async def tokens(self, messages: Sequence[ChatMessage]) -> list[int]:
        """The prompt that the template makes of messages."""
        async with self._session.post("/tokenize", json={"model": "base", "messages": messages}) as reply:
            tokens: list[int] = (await reply.json())["tokens"]
            return tokens

    async def fields(self) -> set[str]:
        """The fields of a chat request that it reads; it ignores others without a word."""
        async with self._session.get("/openapi.json") as reply:
            schemas = (await reply.json())["components"]["schemas"]
        return set(schemas["ChatCompletionRequest"]["properties"])

    async def models(self) -> set[str]:
        """The base and the adapters that it lists."""
        async with self._session.get("/v1/models") as reply:
            return {card["id"] for card in (await reply.json())["data"]}

    async def running(self) -> float:
        """Requests that it works on or holds in its queue."""
        return await self._metric("num_requests_running") + await self._metric("num_requests_waiting")

    async def finished(self) -> float:
        """Requests that it answered to their end, since it was started. It counts none whose client left."""
        return await self._metric("request_success_total")

    async def _metric(self, name: str) -> float:
        async with self._session.get("/metrics") as reply:
            lines = (await reply.text()).splitlines()
        values = [float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"vllm:{name}{{")]
        assert values, f"vLLM has no metric {name}"
        return sum(values)
