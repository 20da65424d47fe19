"""A running service for the commands that talk to one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.cli.terminal import Terminal
from tests.harness import write_profile
from tests.processes import OPEN, Home, Service, instant_engine, serving


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """In front of an engine double; the message steers it, as in `@L1 @n=3`."""
    folder = tmp_path_factory.mktemp("cli")
    with instant_engine("--summary-tokens", "5") as address:
        profile = write_profile(folder, address)
        with serving(Home(folder, **OPEN), "--profile", str(profile)) as service:
            yield service


@pytest.fixture
def terminal(service: Service) -> Iterator[Callable[..., Terminal]]:
    """Starts a command in a terminal of 80 columns."""
    opened: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        opened.append(Terminal(service.home.environment | {"MACARON_URL": service.url}, *arguments))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()
