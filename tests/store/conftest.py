from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from macaron.store import migrate, open_store
from macaron.store.base import Limits, Store


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


@pytest.fixture(params=["sqlite", "sqlite without cache", "memory"])
async def opened(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> AsyncIterator[Callable[[Limits], Store]]:
    """Opens one store with the limits it is given; every behaviour holds for all kinds."""
    stores: list[Store] = []
    url = "memory:"
    if request.param != "memory":
        url = f"sqlite://{tmp_path / 'store.db'}"
        migrate(tmp_path / "store.db")

    def open_with(limits: Limits) -> Store:
        cache_bytes = 0 if request.param == "sqlite without cache" else 1_000_000
        stores.append(open_store(url, limits=limits, durability="normal", cache_bytes=cache_bytes, clock=clock))
        return stores[-1]

    yield open_with
    for store in stores:
        await store.close()


@pytest.fixture
def store(opened: OpenStore) -> Store:
    return opened(Limits())
