"""Fixtures of the HTTP service's tests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
import uvloop
from blockbuster import blockbuster_ctx

from macaron.hcp import Loaded, load
from macaron.server.keys import Keys
from tests.doubles.engine_double import EngineDouble, Script
from tests.harness import Running, serve, with_service, write_profile


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Any]:
    """The loop that workers use, since transports differ between loops."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def _no_blocking() -> Iterator[None]:
    """A call of ours that blocks the event loop fails the test; what the libraries do themselves is theirs."""
    with blockbuster_ctx("macaron"):
        yield


class Stand(Running):
    """A running service with the engine double behind it."""

    def __init__(self, running: Running, double: EngineDouble) -> None:
        super().__init__(running.service, running.client, running.url, running.adapters)
        self.double = double

    @property
    def port(self) -> int:
        """The port the service listens on."""
        return int(self.url.rpartition(":")[2])


async def until(condition: Callable[[], bool], within: float = 5.0) -> None:
    """Wait for what the service does in its own time and tells nobody."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


class Standing(Protocol):
    """Starts a service; `service` replaces values of `[service]`, `mol` and `more` add to the profile."""

    def __call__(
        self,
        script: Script,
        *,
        keys: Keys | None = None,
        service: dict[str, Any] | None = None,
        mol: str = "",
        more: str = "",
        loopback: bool = True,
    ) -> contextlib.AbstractAsyncContextManager[Stand]: ...


@pytest.fixture
def stand(tmp_path: Path) -> Standing:
    """Starts a service in front of a scripted engine."""

    @contextlib.asynccontextmanager
    async def start(
        script: Script,
        *,
        keys: Keys | None = None,
        service: dict[str, Any] | None = None,
        mol: str = "",
        more: str = "",
        loopback: bool = True,
    ) -> AsyncGenerator[Stand, None]:
        async with EngineDouble(script) as double:
            loaded = await asyncio.to_thread(_loaded, tmp_path, double.origin, mol, more)
            loaded = with_service(loaded, **service) if service else loaded
            async with serve(loaded, keys=keys, loopback=loopback) as running:
                yield Stand(running, double)

    return start


def _loaded(folder: Path, address: str, mol: str, more: str) -> Loaded:
    return load(write_profile(folder, address, mol=mol, more=more))


@pytest.fixture
def key_file(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a key file as its owner should."""

    def write(text: str, mode: int = 0o600) -> Path:
        path = tmp_path / "keys"
        path.write_text(text)
        path.chmod(mode)
        return path

    return write
