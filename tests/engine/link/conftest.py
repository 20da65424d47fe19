"""Every test here runs with both links, on uvloop (what serves) and on asyncio's own loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

import pytest
import trustme
import uvloop

from macaron.engine.link import LinkKind, create_link
from macaron.engine.link.base import Limits, Link
from tests.engine.link.peers import Servers


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops of this folder."""
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


class Connect(Protocol):
    """Makes a link that the fixture closes."""

    def __call__(
        self, origin: str, limits: Limits | None = None, *, headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> Link: ...  # fmt: skip


@pytest.fixture(params=["native", "aiohttp"])
def kind(request: pytest.FixtureRequest) -> LinkKind:
    """Which implementation is tested."""
    chosen: LinkKind = request.param
    return chosen


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    """Servers that are checked and stopped after the links are closed."""
    running = Servers()
    yield running
    await running.stop()


@pytest.fixture
async def connect(kind: LinkKind, servers: Servers) -> AsyncIterator[Connect]:
    """Links of the kind under test."""
    links: list[Link] = []

    def make(
        origin: str, limits: Limits | None = None, *, headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> Link:  # fmt: skip
        link = create_link(kind, origin, headers=headers, limits=limits, tls=tls)
        links.append(link)
        return link

    yield make
    for link in links:
        await link.close()


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """A certificate authority of the tests' own."""
    return trustme.CA()
