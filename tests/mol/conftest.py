from __future__ import annotations

from pathlib import Path

import pytest

from macaron.hcp import Loaded
from tests.mol.heart import profile


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """Four specialists, eager summaries; read once for all tests."""
    return profile(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="session")
def thinking(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """The same, whose bodies have the reasoning of a specialist's own turns."""
    return profile(tmp_path_factory.mktemp("thinking"), mol="reasoning_in_body = true")


@pytest.fixture(scope="session")
def digests(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """The same, whose store keeps no items."""
    return profile(tmp_path_factory.mktemp("digests"), more='[store]\nchat = "digests"')


@pytest.fixture
def database(tmp_path: Path) -> str:
    """URL of a store in a file that is not there yet."""
    return f"sqlite://{tmp_path / 'store.db'}"
