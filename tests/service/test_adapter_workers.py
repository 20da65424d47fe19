"""Registered adapters in a service of several processes, in front of the engine double."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest

from macaron.registry.desired import engine_name
from macaron.registry.revision import adapter_revision
from tests.doubles.engine_double import Reply, Seen
from tests.doubles.engine_thread import engine_in_thread
from tests.processes import PATIENCE, Home, Service, serving, until
from tests.registry.check.adapters import adapter
from tests.server.adapters.conftest import answering_by_adapter

Profile = Callable[..., str]
CARD = ("--name", "Poet", "--description", "writes poems")
WAIVED = ("--waive-route-check", "a test")


class Desk:
    """An administrator's commands."""

    def __init__(self, service: Service, folder: Path) -> None:
        self.service = service
        self.folder = folder
        self.key = service.home.key_file.read_text().strip()
        self.engine = engine_name("L4", adapter_revision(folder))

    def command(self, *arguments: str) -> Any:
        return self.service.home.run("adapter", *arguments, "--url", self.service.url)

    def run(self, *arguments: str) -> None:
        done = self.command(*arguments)
        assert done.returncode == 0, done.stderr

    def register(self, *more: str) -> Any:
        prompt = self.folder.parent / "prompt.md"
        prompt.write_text("You are a poet.")
        return self.command("register", str(self.folder), "--label", "L4", *CARD, "--prompt", str(prompt), *more)

    def promote(self) -> None:
        self.run("promote", "L4", *WAIVED)

    def answers(self, count: int = 24) -> set[str]:
        """What so many requests, each on a connection of its own, are answered."""

        def ask(_: int) -> str:
            http = self.service.http(self.key)
            answer = http.chat("please L4", headers={"x-macaron-trace": "1"})
            http.close()
            assert answer.status == 200, answer.text
            text: str = answer.json["choices"][0]["message"]["content"]
            return text

        with ThreadPoolExecutor(8) as pool:
            return set(pool.map(ask, range(count)))


@pytest.fixture
def owner(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def poet(tmp_path: Path) -> Path:
    return adapter(tmp_path / "poet" / "adapter")


def test_every_worker_routes_to_it_with_the_next_request(owner: Home, profile: Profile, poet: Path) -> None:
    with (
        engine_in_thread(answering_by_adapter) as double,
        serving(owner, "--profile", profile(address=double.origin), "--workers", "3") as service,
    ):
        desk = Desk(service, poet)
        assert desk.register().returncode == 0
        assert len(double.loads) == 1
        desk.promote()
        assert desk.answers() == {f"from {desk.engine}"}
        desk.run("rollback", "L4")
        assert desk.answers() == {"from L0"}
        until(lambda: desk.engine not in double.adapters, PATIENCE, "it is unloaded")
        assert double.unloads == [desk.engine]


def test_another_worker_leads_when_the_first_is_killed(owner: Home, profile: Profile, poet: Path) -> None:
    with (
        engine_in_thread(answering_by_adapter) as double,
        serving(owner, "--profile", profile(address=double.origin), "--workers", "2") as service,
    ):
        desk = Desk(service, poet)
        assert desk.register().returncode == 0
        desk.promote()
        first = service.control()["workers"][0]
        os.kill(first, signal.SIGKILL)
        until(lambda: first not in service.control()["workers"], PATIENCE, "another worker was started")
        double.adapters = ("L0", "L1", "L2", "L3")
        until(lambda: desk.engine in double.adapters, PATIENCE, "it is loaded again")
        until(lambda: desk.answers(8) == {f"from {desk.engine}"}, PATIENCE, "all route to it")


def test_a_service_killed_before_the_load_finishes_it_when_it_starts_again(
    owner: Home, profile: Profile, poet: Path
) -> None:
    with engine_in_thread(answering_by_adapter) as double:
        document = profile(address=double.origin)
        with serving(owner, "--profile", document) as service:
            desk = Desk(service, poet)
            double.broken.add(desk.engine)
            assert desk.register("--no-wait").returncode == 0
            service.process.kill()
            until(lambda: not owner.alive(), PATIENCE, "all are gone")
        double.broken.clear()
        with serving(owner, "--profile", document) as service:
            again = Desk(service, poet)
            until(lambda: desk.engine in double.adapters, PATIENCE, "it is loaded")
            until(lambda: again.command("promote", "L4", *WAIVED).returncode == 0, PATIENCE, "it is proved")
            assert again.answers(4) == {f"from {desk.engine}"}


@pytest.mark.parametrize("step", ["before", "after", "probe"])
def test_a_service_killed_between_load_and_commit_finishes_when_it_starts_again(
    owner: Home, profile: Profile, poet: Path, step: Literal["before", "after", "probe"]
) -> None:
    """While the engine loads; when it has loaded and has not said so; while the probe waits for its numbers."""
    hold = asyncio.Event()

    def script(seen: Seen) -> str | Reply:
        held = step == "probe" and seen.body.get("logprobs") and "@" in seen.adapter and not hold.is_set()
        return Reply("held", gate=hold) if held else answering_by_adapter(seen)

    with engine_in_thread(script) as double:
        document = profile(address=double.origin)
        with serving(owner, "--profile", document) as service:
            desk = Desk(service, poet)
            double.held = "" if step == "probe" else step
            assert desk.register("--no-wait").returncode == 0
            until(lambda: double.loads, PATIENCE, "the load was asked for")
            if step == "probe":
                until(lambda: any(seen.adapter == desk.engine for seen in double.requests), PATIENCE, "it is probed")
            service.process.kill()
            until(lambda: not owner.alive(), PATIENCE, "all are gone")
        double.held = ""
        hold.set()
        with serving(owner, "--profile", document) as service:
            again = Desk(service, poet)
            until(lambda: again.command("promote", "L4", *WAIVED).returncode == 0, PATIENCE, "it is loaded and proved")
            assert again.answers(4) == {f"from {desk.engine}"}
        # Never loaded twice under one name: engines keep stale caches then.
        assert len(double.loads) == (2 if step == "before" else 1)


def test_an_engine_that_dies_during_a_load_is_given_it_again(owner: Home, profile: Profile, poet: Path) -> None:
    with (
        engine_in_thread(answering_by_adapter) as double,
        serving(owner, "--profile", profile(address=double.origin)) as service,
    ):
        desk = Desk(service, poet)
        double.held = "dies"
        assert desk.register("--no-wait").returncode == 0
        until(lambda: double.loads, PATIENCE, "the load was asked for")
        assert desk.answers(4) == {"from L0"}
        double.held = ""
        until(lambda: desk.command("promote", "L4", *WAIVED).returncode == 0, PATIENCE, "it is loaded and proved")
        assert desk.answers(4) == {f"from {desk.engine}"}


def test_what_is_promoted_when_the_service_is_killed_is_live_when_it_starts_again(
    owner: Home, profile: Profile, poet: Path
) -> None:
    with engine_in_thread(answering_by_adapter) as double:
        document = profile(address=double.origin)
        with serving(owner, "--profile", document) as service:
            desk = Desk(service, poet)
            assert desk.register().returncode == 0
            desk.promote()
            service.process.kill()
            until(lambda: not owner.alive(), PATIENCE, "all are gone")
        with serving(owner, "--profile", document) as service:
            again = Desk(service, poet)
            until(lambda: again.answers(4) == {f"from {desk.engine}"}, PATIENCE, "it is routed to")
