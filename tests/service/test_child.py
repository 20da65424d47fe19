"""The supervisor replaces the engine's child by one with other adapters."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from macaron.engine.llamacpp.launch import EngineChild
from macaron.engine.llamacpp.params import LaunchParams
from macaron.engine.llamacpp.watch import HEALTH, Probe
from macaron.server.adapters.child import Change, change_adapters
from tests.engine.llamacpp.lora_fixture import write_lora

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@contextlib.asynccontextmanager
async def supervised(weights: Path) -> AsyncGenerator[EngineChild, None]:
    child = EngineChild(LaunchParams(str(weights), 0, "", slots=2, slot_context=256, threads=1))
    await child.start()
    await child.wait_ready(60)
    keeper = asyncio.create_task(child.supervise())
    try:
        yield child
    finally:
        await child.stop()
        await keeper


async def serves(child: EngineChild) -> bool:
    return await Probe(int(child.origin.rpartition(":")[2]), child.api_key).answers(HEALTH)


async def test_a_change_is_no_death_of_the_engine(weights: Path, tmp_path: Path) -> None:
    file = str(await asyncio.to_thread(write_lora, tmp_path / "one.gguf", 1))
    async with supervised(weights) as child:
        before = child.pid
        assert await change_adapters(child, Change([], {"L4@1": file}, 3)) == ""
        assert (child.registered, child.slots, child.restarts) == ({"L4@1": file}, 3, 0)
        assert child.pid != before
        assert await serves(child)


async def test_an_adapter_that_does_not_load_leaves_the_engine_as_it_was(weights: Path, tmp_path: Path) -> None:
    good = str(await asyncio.to_thread(write_lora, tmp_path / "one.gguf", 1))
    async with supervised(weights) as child:
        assert await change_adapters(child, Change([], {"L4@1": good}, 3)) == ""
        error = await change_adapters(child, Change(["L4@1"], {"L5@1": str(tmp_path / "nothing.gguf")}, 4))
        assert "while loading" in error
        assert (child.registered, child.slots) == ({"L4@1": good}, 3)
        assert await serves(child)


async def test_what_is_kept_must_be_there(weights: Path) -> None:
    async with supervised(weights) as child:
        before = child.pid
        assert "has no L9@1" in await change_adapters(child, Change(["L9@1"], {}, 3))
        assert child.pid == before
