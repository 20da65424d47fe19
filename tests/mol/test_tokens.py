"""The law of growing views on token ids, through the demi profile's template in the real engine."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from macaron.engine.llamacpp.launch import EngineChild
from macaron.engine.llamacpp.params import LaunchParams
from macaron.engine.llamacpp.prompt import plain_messages
from macaron.hcp import Loaded
from tests.mol.test_laws import LABELS, Move, Walk

pytestmark = pytest.mark.engine
MOVES = 25


class Server:
    """What the engine's server does before it generates."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def tokens(self, messages: list[dict[str, Any]]) -> list[int]:
        """The prompt of some messages, before the beginning of the answer, as token ids."""
        body = {"messages": plain_messages(messages), "add_generation_prompt": False}
        prompt = (await self._post("/apply-template", body))["prompt"]
        asked = {"content": prompt, "add_special": True, "parse_special": True}
        tokens: list[int] = (await self._post("/tokenize", asked))["tokens"]
        return tokens

    async def _post(self, path: str, body: Any) -> Any:
        async with self._session.post(path, json=body) as response:
            assert response.status == 200, await response.text()
            return await response.json()


@pytest.fixture
async def server(weights: Path) -> AsyncIterator[Server]:
    template = files("macaron.profiles").joinpath("demi", "chat_template.jinja").read_text()
    child = EngineChild(
        LaunchParams(str(weights), port=0, api_key="", slots=1, slot_context=256, threads=1, chat_template=template)
    )
    await child.start()
    try:
        await child.wait_ready(30)
        headers = {"authorization": f"Bearer {child.api_key}"}
        async with aiohttp.ClientSession(child.origin, headers=headers) as session:
            yield Server(session)
    finally:
        await child.stop()


def moves(seed: int) -> list[Move]:
    """A walk that mostly goes on from where it stands."""
    choice = random.Random(seed)
    kinds: list[Any] = ["text", "long", "calls", "reasoned"]
    asks: list[Any] = ["results", "some", "both", "user"]
    return [
        Move(
            place if choice.random() < 0.8 else choice.randrange(place + 1),
            choice.choice(LABELS[:3]),
            choice.choice(kinds),
            choice.choice(asks),
            choice.random() < 0.1,
        )
        for place in range(MOVES)
    ]


@pytest.mark.parametrize("seed", range(2))
async def test_the_tokens_of_a_view_begin_those_of_its_successor(loaded: Loaded, server: Server, seed: int) -> None:
    walk = Walk(loaded)
    compared = 0
    for move in moves(seed):
        before = walk.histories[move.place % len(walk.histories)]
        await walk.move(move)
        label = walk.histories[-1].label
        if (earlier := before.shown.get((label, ""))) is not None:
            later = await server.tokens(walk.histories[-1].shown[label, ""])
            shorter = await server.tokens(earlier)
            assert later[: len(shorter)] == shorter
            assert len(later) > len(shorter)
            compared += 1
    assert compared > MOVES // 4
