"""Services as processes: in front of an engine double, or with the real embedded engine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from macaron.profiles import find_profile
from tests.harness import write_profile
from tests.processes import OPEN, Home, instant_engine


@pytest.fixture(scope="session")
def engine_address() -> Iterator[str]:
    """An engine double that answers at once, or in the time that a message asks for."""
    with instant_engine() as address:
        yield address


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home where no key is asked for."""
    return Home(tmp_path, **OPEN)


@pytest.fixture
def small(tmp_path: Path, weights: Path) -> str:
    """The profile `demi`, with an engine that other work on the machine does not slow down too much."""
    folder = tmp_path / "demi"
    shutil.copytree(find_profile("demi").parent, folder)
    document = folder / "profile.toml"
    text = document.read_text()
    document.write_text(text.replace("slot_context = 8192", "slot_context = 1024\nthreads = 1"))
    return str(folder)


@pytest.fixture
def profile(tmp_path: Path, engine_address: str) -> Callable[..., str]:
    """Writes a profile in front of the double; `more` is TOML."""

    def write(more: str = "", address: str = engine_address) -> str:
        folder = tmp_path / "profile"
        folder.mkdir(exist_ok=True)
        return str(write_profile(folder, address, more=more))

    return write
