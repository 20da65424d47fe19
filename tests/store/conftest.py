from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from macaron.store import migrate, open_store
from macaron.store.base import Limits, Store
from tests.postgres_server import PostgresServer


class Clock:
    """Time that goes on only when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


OpenStore = Callable[[Limits], Store]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "private" / "store.db"
    migrate(path)
    return path


KINDS = ("sqlite", "sqlite without cache", "memory", "postgres", "postgres without cache")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of store, with and without steps kept in memory."""
    kind: str = request.param
    return kind


@pytest.fixture
def url(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> str:
    """An empty store of the kind, migrated."""
    if kind == "memory":
        return "memory:"
    if kind.startswith("postgres"):
        server: PostgresServer = request.getfixturevalue("postgres")
        return server.url(server.empty())
    migrate(tmp_path / "store.db")
    return f"sqlite://{tmp_path / 'store.db'}"


@pytest.fixture
async def opened(kind: str, url: str, clock: Clock) -> AsyncIterator[OpenStore]:
    """Opens one store with the limits it is given; every behaviour holds for all kinds."""
    stores: list[Store] = []

    def open_with(limits: Limits) -> Store:
        cache_bytes = 0 if kind.endswith("without cache") else 1_000_000
        stores.append(open_store(url, limits=limits, durability="normal", cache_bytes=cache_bytes, clock=clock))
        return stores[-1]

    yield open_with
    for store in stores:
        await store.close()


@pytest.fixture
def store(opened: OpenStore) -> Store:
    return opened(Limits())
