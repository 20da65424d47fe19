"""Adapters that come and go many times: what the service keeps of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from macaron.profiles import find_profile
from tests.doubles.engine_thread import engine_in_thread
from tests.models.tiny_engine import small_adapter, write_small_profile
from tests.processes import PATIENCE, Home, Service, serving, until
from tests.registry.check.adapters import adapter
from tests.server.adapters.conftest import answering_by_adapter
from tests.service.desk import Desk, settled

CYCLES, WARM = 50, 10
MANY = 200
WARM_MANY = 200
"""The first ones fill the allocator's pools and SQLite's cache."""
MEBIBYTE = 1024 * 1024
KEPT = 3 * MEBIBYTE
"""What a process may hold more after so many cycles: the allocator's own ups and downs."""


@pytest.fixture
def owner(tmp_path: Path) -> Home:
    return Home(tmp_path)


def held(service: Service) -> dict[str, int]:
    """Bytes of the supervisor and its worker."""
    (worker,) = service.control()["workers"]
    return {"supervisor": settled(service.process.pid), "worker": settled(worker)}


def grown(service: Service, before: dict[str, int]) -> dict[str, int]:
    return {name: size - before[name] for name, size in held(service).items()}


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(1800)
def test_the_embedded_engine_loads_and_unloads_fifty_times_in_the_same_memory(owner: Home, weights: Path) -> None:
    """There is room for one adapter: each turn of the other one loads it and unloads the first."""
    document = write_small_profile(
        find_profile("demi").parent, owner.folder / "small", weights, engine="adapter_limit = 1"
    )
    folders = {label: small_adapter(owner.folder / label / "adapter", seed) for seed, label in enumerate(("L4", "L5"))}
    with serving(owner, "--profile", str(document)) as service:
        desk = Desk(service)
        for label, folder in folders.items():
            desk.register(folder, label)
            desk.promote(label)
        first = {label: desk.ask(label) for label in folders}
        assert first["L4"][0] == first["L5"][0] == 200
        assert first["L4"][1] != first["L5"][1]
        engines: set[int] = set()
        began = time.monotonic()
        for cycle in range(CYCLES + WARM):
            if cycle == WARM:
                before, began = held(service), time.monotonic()
            label = ("L4", "L5")[cycle % 2]
            assert desk.ask(label) == first[label], cycle
            engines.add(service.control()["engine"])
        more = grown(service, before)
        print(f"{CYCLES} cycles, {(time.monotonic() - began) / CYCLES:.2f} s each, grown {more}")  # noqa: T201
    assert len(engines) == CYCLES + WARM
    assert all(size < KEPT for size in more.values()), more


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_service_keeps_nothing_of_many_cycles(owner: Home, profile: Callable[..., str]) -> None:
    poet = adapter(owner.folder / "poet" / "adapter")
    with (
        engine_in_thread(answering_by_adapter) as double,
        serving(owner, "--profile", profile(address=double.origin)) as service,
    ):
        desk = Desk(service)
        engine = desk.register(poet)
        desk.promote()
        sizes: list[dict[str, int]] = []
        for cycle in range(WARM_MANY + MANY):
            if cycle % WARM_MANY == 0:
                sizes.append(held(service))
            assert desk.verb("L4", "disable") == 200
            until(lambda: engine not in double.adapters, PATIENCE, "it is unloaded")
            assert desk.verb("L4", "enable") == 200
            until(lambda: engine in double.adapters, PATIENCE, "it is loaded again")
            double.requests.clear()
        more = grown(service, sizes[1])
        print(f"{MANY} cycles, before {sizes}, grown {more}")  # noqa: T201
    assert len(double.unloads) == MANY + WARM_MANY
    assert all(size < KEPT for size in more.values()), more
