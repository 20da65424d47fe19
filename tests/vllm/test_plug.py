"""Adapters that come and go while a real vLLM serves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from macaron.hcp import load
from macaron.registry.desired import engine_name
from macaron.registry.revision import adapter_revision
from macaron.server.keys import read_keys
from tests.harness import Client, serve
from tests.mol.talk import user
from tests.vllm.server import built_models
from tests.vllm.talk import GREEDY, QUESTION, Server, pinned, profile

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(600)]

KEY = {"authorization": "Bearer owner-key-0123456789"}
PATH = "/v1/admin/adapters"
CARD = {"name": "Poet", "description": "writes poems", "identity": "You are specialist L1."}
READY_SECONDS = 120.0


@pytest.fixture
def models(weights: Path) -> Path:
    return built_models(weights)


class Desk:
    """An administrator of a service in front of vLLM."""

    def __init__(self, client: Client, vllm: Server) -> None:
        self.client = client
        self.vllm = vllm

    async def verb(self, path: str, **body: Any) -> Any:
        answer = await self.client.post(body, path=PATH + path, headers=KEY)
        assert answer.status < 300, answer.body
        return answer.body

    async def plugged(self, label: str, folder: Path) -> str:
        """Register, wait for the proof, and promote."""
        await self.verb("", label=label, folder=str(folder), **CARD)
        async with asyncio.timeout(READY_SECONDS):
            engine: dict[str, Any] = {}
            while engine.get("state") != "ready":
                assert engine.get("state") != "failed", engine
                await asyncio.sleep(0.1)
                [item] = (await self.client.get(f"{PATH}/{label}", KEY)).body["revisions"]
                engine = item["engine"] or {}
        await self.verb(f"/{label}/promote", waive_route_check="a test")
        return engine_name(label, item["revision"])

    async def ask(self, label: str) -> str:
        answer = await self.client.chat([user(QUESTION)], headers={**KEY, **pinned(label)}, **GREEDY)
        assert answer.status == 200, answer.body
        assert answer.adapter == label
        return answer.text


@contextlib.asynccontextmanager
async def desk(folder: Path, origin: str, models: Path, vllm: Server) -> AsyncGenerator[Desk, None]:
    def prepared() -> Any:
        document = profile(folder, origin)
        document.write_text(f'{document.read_text()}\n[registry]\nroots = ["{models}"]\n')
        keys = folder / "keys"
        keys.write_text("owner:owner-key-0123456789:chat,trace,pin,admin")
        keys.chmod(0o600)
        return load(document), read_keys(keys)

    loaded, keys = await asyncio.to_thread(prepared)
    async with serve(loaded, keys=keys) as running:
        yield Desk(running.client, vllm)


async def test_a_plugged_adapter_answers_as_it_does_when_vllm_is_started_with_it(
    tmp_path: Path, origin: str, models: Path, vllm: Server
) -> None:
    async with desk(tmp_path, origin, models, vllm) as at:
        others = {label: await at.ask(label) for label in ("L0", "L1")}
        done = asyncio.Event()
        said: list[tuple[str, str]] = []

        async def client(label: str) -> None:
            while not done.is_set():
                said.append((label, await at.ask(label)))

        clients = [asyncio.create_task(client(label)) for label in ("L0", "L1")]
        name = await at.plugged("L4", models / "L1")
        assert name == engine_name("L4", await asyncio.to_thread(adapter_revision, models / "L1"))
        # The same bytes and the same prompt as L1's.
        assert await at.ask("L4") == others["L1"]
        await at.verb("/L4/disable")
        async with asyncio.timeout(30):
            while name in await at.vllm.models():  # noqa: ASYNC110, it is vLLM that changes it
                await asyncio.sleep(0.1)
        await at.verb("/L4/remove")
        done.set()
        await asyncio.gather(*clients)
    assert said
    assert all(text == others[label] for label, text in said)
