"""What the tests of several parts share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from macaron.hcp import load
from macaron.models import fetch_weights
from macaron.profiles import find_profile
from tests.postgres_programs import NotHereError
from tests.postgres_server import FAST, PostgresServer, postgres_server


@pytest.fixture(scope="session")
def weights() -> Path:
    """The weights of the profile `demi`, fetched if this machine does not have them yet."""
    section = load(find_profile("demi")).contract.engine.weights
    assert section is not None
    return fetch_weights(section)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; a test that stops it starts it again."""
    try:
        with postgres_server(**FAST) as server:
            yield server
    except NotHereError as error:
        pytest.skip(f"no PostgreSQL: {error}")
