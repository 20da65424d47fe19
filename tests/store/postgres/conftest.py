from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from macaron.store.base import Limits
from macaron.store.postgres import PostgresStore
from tests.postgres_server import PostgresServer

Replica = Callable[..., PostgresStore]


@pytest.fixture
def address(postgres: PostgresServer) -> str:
    """An empty store's, migrated."""
    return postgres.url(postgres.empty())


@pytest.fixture
async def replica(address: str) -> AsyncIterator[Replica]:
    """Opens the same store once more, as another process would."""
    stores: list[PostgresStore] = []

    def open_one(limits: Limits | None = None, **options: object) -> PostgresStore:
        stores.append(PostgresStore(address, limits=limits or Limits(), **options))  # type: ignore[arg-type]
        return stores[-1]

    yield open_one
    for store in stores:
        await store.close()
