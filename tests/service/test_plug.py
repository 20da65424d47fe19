"""Adapters that come and go while the embedded engine serves: its child is replaced, and no request is lost."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from macaron.registry.desired import engine_name
from macaron.registry.revision import adapter_revision
from tests.models.peft_folder import tensors, write_folder
from tests.processes import Home, Service, serving, until
from tests.registry.check.adapters import TARGETS
from tests.service.test_adapters import SMOLLM2

pytestmark = [pytest.mark.engine, pytest.mark.slow]

MODEL = "macaron-demi"
CARD = ("--name", "Poet", "--description", "writes poems about the sea", "--prompt")


@pytest.fixture
def owner(tmp_path: Path) -> Home:
    """A home whose first start makes a key with every scope."""
    return Home(tmp_path)


def adapter(folder: Path, seed: int, spread: float = 0.2) -> Path:
    return write_folder(
        folder,
        tensors(SMOLLM2, 2, seed=seed, spread=spread),
        target_modules=TARGETS,
        base_model_name_or_path="SmolLM2-135M-Instruct",
    )


class Desk:
    """Commands of an administrator against a service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.key = service.home.key_file.read_text().strip()

    def run(self, *arguments: str) -> str:
        done = self.service.home.run("adapter", *arguments, "--url", self.service.url)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def register(self, folder: Path, label: str = "L4", *more: str) -> str:
        prompt = folder.parent / "prompt.md"
        prompt.write_text("You are a poet.")
        self.run("register", str(folder), "--label", label, "--no-wait", *CARD, str(prompt), *more)
        # The probe waits its turn behind the others' answers, which takes long beside a busy neighbour.
        until(lambda: self.engine_of(label) == "ready", 90, "the engine has proved it")
        return engine_name(label, adapter_revision(folder))

    def engine_of(self, label: str) -> str:
        """How far the engine is with the newest revision of a label."""
        engine = json.loads(self.run("show", label, "--json"))["revisions"][-1]["engine"]
        return str(engine["state"]) if engine else ""

    def promote(self, label: str = "L4") -> None:
        self.run("promote", label, "--waive-route-check", "a test")

    def list(self) -> Any:
        return json.loads(self.run("list", "--json"))

    def ask(self, label: str, text: str = "What is tea?", tokens: int = 8) -> tuple[int, str, str]:
        """Status, text and revision of an answer by a label."""
        http = self.service.http(self.key, seconds=60)
        headers = {"x-macaron-trace": "1", "x-macaron-adapter": label}
        answer = http.chat(text, MODEL, headers, temperature=0, max_tokens=tokens)
        http.close()
        if answer.status != 200:
            return answer.status, answer.text, ""
        said = answer.json
        return 200, said["choices"][0]["message"]["content"], said["metadata"]["macaron_revision"]


class Traffic:
    """Clients that ask all the time; every answer is kept."""

    def __init__(self, desk: Desk, labels: tuple[str, ...]) -> None:
        self._desk = desk
        self._stop = threading.Event()
        self.answers: list[tuple[str, tuple[int, str, str]]] = []
        self._threads = [threading.Thread(target=self._ask, args=(label,)) for label in labels]

    def _ask(self, label: str) -> None:
        while not self._stop.is_set():
            self.answers.append((label, self._desk.ask(label)))

    @contextmanager
    def flowing(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(60)


def test_a_fifth_specialist_comes_and_goes_while_clients_ask_and_none_fails(small: str, owner: Home) -> None:
    poet = adapter(owner.folder / "poet" / "adapter", seed=7)
    with serving(owner, "--profile", small) as service:
        desk = Desk(service)
        before = {label: desk.ask(label) for label in ("L0", "L1", "L2", "L3")}
        traffic = Traffic(desk, ("L0", "L1", "L2", "L3"))
        with traffic.flowing():
            desk.register(poet)
            pause = desk.list()["engine"]["pause_seconds"]
            desk.promote()
            status, _, revision = desk.ask("L4")
            assert (status, revision) == (200, adapter_revision(poet))
            desk.run("rollback", "L4")
            assert desk.ask("L4")[0] == 400
            desk.run("disable", "L4")
            desk.run("remove", "L4")
        assert desk.list()["data"] == []
    assert {status for _, (status, _, _) in traffic.answers} == {200}
    for label, (_, text, revision) in traffic.answers:
        assert revision == before[label][2]
        assert text.split()[:1] == before[label][1].split()[:1]
    assert 0 < pause < 20
    print(f"pause {pause:.2f} s, {len(traffic.answers)} answers")  # noqa: T201


def test_an_adapter_is_proved_on_the_engine_and_one_without_effect_is_not_used(small: str, owner: Home) -> None:
    dull = adapter(owner.folder / "dull" / "adapter", seed=1, spread=1e-6)
    with serving(owner, "--profile", small) as service:
        desk = Desk(service)
        prompt = owner.folder / "prompt.md"
        prompt.write_text("You are a poet.")
        arguments = ("adapter", "register", str(dull), "--label", "L4", *CARD, str(prompt), "--url", service.url)
        refused = owner.run(*arguments)
        assert refused.returncode == 1
        assert "answers as without it" in refused.stderr
        assert desk.ask("L0")[0] == 200


def test_killed_engine_and_killed_worker_come_back_with_the_adapter(small: str, owner: Home) -> None:
    poet = adapter(owner.folder / "poet" / "adapter", seed=7)
    with serving(owner, "--profile", small) as service:
        desk = Desk(service)
        desk.register(poet)
        desk.promote()
        said = desk.ask("L4")
        assert said[0] == 200
        os.kill(service.control()["engine"], signal.SIGKILL)
        until(lambda: service.control()["engine_restarts"] == 1, 10, "the engine was started again")
        until(lambda: desk.ask("L4")[:2] == said[:2], 30, "it answers as before")
        worker = service.control()["workers"][0]
        os.kill(worker, signal.SIGKILL)
        until(lambda: service.control()["workers"][0] != worker, 10, "another worker was started")
        until(lambda: _asked(desk) == said, 30, "it answers as before")


def _asked(desk: Desk) -> tuple[int, str, str]:
    try:
        return desk.ask("L4")
    except OSError:
        return 0, "", ""


def test_a_service_that_starts_again_has_its_adapters(small: str, owner: Home) -> None:
    poet = adapter(owner.folder / "poet" / "adapter", seed=7)
    with serving(owner, "--profile", small) as service:
        desk = Desk(service)
        desk.register(poet)
        desk.promote()
        said = desk.ask("L4")
    with serving(owner, "--profile", small) as service:
        again = Desk(service)
        assert again.ask("L4") == said


def test_another_revision_of_the_entry_specialist_routes(small: str, owner: Home) -> None:
    other = adapter(owner.folder / "other" / "adapter", seed=9, spread=0.05)
    with serving(owner, "--profile", small) as service:
        desk = Desk(service)
        desk.run("register", str(other), "--label", "L0", "--override")
        desk.promote("L0")
        http = service.http(desk.key, seconds=60)
        answer = http.chat("Why is the sky blue?", MODEL, {"x-macaron-trace": "1"}, temperature=0, max_tokens=4)
        assert answer.status == 200
        assert answer.headers["x-macaron-hops"] == "route,answer"
        assert "gave no label" not in service.log
