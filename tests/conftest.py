"""What the tests of several parts share."""

from __future__ import annotations

from pathlib import Path

import pytest

from macaron.hcp import load
from macaron.models import fetch_weights
from macaron.profiles import find_profile


@pytest.fixture(scope="session")
def weights() -> Path:
    """The weights of the profile `demi`, fetched if this machine does not have them yet."""
    section = load(find_profile("demi")).contract.engine.weights
    assert section is not None
    return fetch_weights(section)
