"""One real engine for all tests here: the smallest base there is, with three random adapters."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from macaron.engine.link import create_link
from macaron.engine.link.base import LinkFactory
from macaron.engine.llamacpp.client import ServerClient
from macaron.engine.llamacpp.config import EngineConfig
from macaron.engine.llamacpp.engine import LlamaCppEngine
from macaron.engine.llamacpp.launch import EngineChild
from macaron.engine.llamacpp.params import LaunchParams
from tests.engine.llamacpp.lora_fixture import write_lora

ADAPTERS = ("one", "two", "three")
SLOT_CONTEXT = 2048
SPECIAL_TOKENS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")


def native_link() -> LinkFactory:
    return partial(create_link, "native")


class RunningChild:
    """An engine child with an event loop of its own, so that it outlives the tests' loops."""

    def __init__(self, params: LaunchParams) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.child = EngineChild(params)

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def close(self) -> None:
        self.run(self.child.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@pytest.fixture(scope="session")
def chat_template() -> str:
    return files("macaron.profiles").joinpath("demi", "chat_template.jinja").read_text()


@pytest.fixture(scope="session")
def adapter_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    folder = tmp_path_factory.mktemp("adapters")
    return tuple(str(write_lora(folder / f"{name}.gguf", seed)) for seed, name in enumerate(ADAPTERS))


@pytest.fixture(scope="session")
def launch_params(weights: Path, chat_template: str) -> LaunchParams:
    """Of an engine without adapters, small and quick to start."""
    return LaunchParams(
        weights=str(weights), port=0, api_key="", slots=2, slot_context=512, threads=1, chat_template=chat_template
    )


@pytest.fixture(scope="session")
def running(weights: Path, chat_template: str, adapter_files: tuple[str, ...]) -> Iterator[RunningChild]:
    slots = EngineConfig("", "", ADAPTERS, (None, None, *ADAPTERS)).slots
    params = LaunchParams(
        weights=str(weights),
        port=0,
        api_key="",
        adapters=adapter_files,
        slots=slots,
        slot_context=SLOT_CONTEXT,
        threads=1,
        chat_template=chat_template,
    )
    running = RunningChild(params)
    running.run(running.child.start())
    running.run(running.child.wait_ready(30))
    yield running
    running.close()


@pytest.fixture
def config(running: RunningChild) -> EngineConfig:
    """Routes on the bare base; specialists are two prompts and three adapters, with a slot each."""
    return EngineConfig(
        origin=running.child.origin,
        api_key=running.child.api_key,
        adapters=ADAPTERS,
        specialists=(None, None, *ADAPTERS),
        slot_context=SLOT_CONTEXT,
        special_tokens=SPECIAL_TOKENS,
    )


@pytest.fixture
async def engine(config: EngineConfig) -> AsyncIterator[LlamaCppEngine]:
    engine = LlamaCppEngine(config, native_link())
    await engine.start()
    yield engine
    await engine.close()


@pytest.fixture
async def client(config: EngineConfig) -> AsyncIterator[ServerClient]:
    """The engine's server itself, past the gate."""
    headers = {"authorization": f"Bearer {config.api_key}"}
    client = ServerClient(native_link()(config.origin, headers=headers))
    yield client
    await client.close()
