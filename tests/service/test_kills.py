"""`kill -9` at random moments: nothing a client was told is lost, nobody survives the supervisor, service returns."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal

import pytest
from benchmarks.process import free_port

from tests.processes import Home, Http, Service, serving, until

Victim = Literal["supervisor", "worker", "engine"]
BROKEN = (OSError, http.client.HTTPException, json.JSONDecodeError)
ORPHAN_SECONDS = 2.0


@pytest.fixture
def seed() -> int:
    """Another one every time, shown where a test fails."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")  # noqa: T201
    return seed


class Clients:
    """Ask without a pause, streamed and not, and keep the id of every answer whose terminal event came."""

    def __init__(self, ports: Sequence[int], model: str, text: str, count: int, seed: int) -> None:
        self.acknowledged: set[str] = set()
        self.failed = 0
        self._ports = ports
        self._model = model
        self._text = text
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(random.Random(seed + n),)) for n in range(count)]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, chance: random.Random) -> None:
        while not self._stopping.is_set():
            connection = Http(chance.choice(self._ports), seconds=20)
            try:
                while not self._stopping.is_set():
                    self.ask(connection, f"{self._text} {chance.randrange(10**9)}", stream=chance.random() < 0.5)
            except BROKEN:
                self.failed += 1
                self._stopping.wait(0.05)
            finally:
                connection.close()

    def ask(self, connection: Http, text: str, *, stream: bool) -> int:
        """Ask once; returns the status."""
        messages = [{"role": "user", "content": text}]
        response = connection.begin(messages, self._model, stream=stream, max_tokens=8)
        if response.status != 200:
            response.read()
            return response.status
        events: Iterator[bytes] = response if stream else iter([b"data: " + response.read()])
        for line in events:
            if line.startswith(b"data: {"):
                event = json.loads(line[6:])
                finish = event["choices"][0]["finish_reason"] if event.get("choices") else None
                if finish not in (None, "error"):
                    self.acknowledged.add(event["id"])
        return 200


class Rounds:
    """A service on one port and one store, killed again and again."""

    def __init__(self, home: Home, arguments: tuple[str, ...], clients: Clients, port: int, seed: int) -> None:
        self._home = home
        self._arguments = (*arguments, "--port", str(port))
        self._clients = clients
        self._port = port
        self._chance = random.Random(seed)
        self.returned: dict[Victim, list[float]] = {"supervisor": [], "worker": [], "engine": []}
        self.orphans: list[float] = []
        self.service = Service(home, *self._arguments).ready()

    def run(self, victims: list[Victim], within: float) -> None:
        """Kill each of them at a random moment. Every second time the service is back before the next."""
        for victim in victims:
            time.sleep(self._chance.random() * 0.5)
            began = time.monotonic()
            if victim == "supervisor":
                self._kill_supervisor()
            else:
                with suppress(ProcessLookupError):
                    os.kill(self._pid(victim), signal.SIGKILL)
            if self._chance.random() < 0.7:
                until(self._answers, within, f"an answer after the {victim} was killed")
                self.returned[victim].append(time.monotonic() - began)

    def report(self) -> str:
        """What was measured."""
        times = [f"{who} {max(found):.2f}" for who, found in self.returned.items() if found]
        orphans = f"longest an orphan lived {max(self.orphans):.2f}"
        told = f"{len(self._clients.acknowledged)} acknowledged, {self._clients.failed} cut"
        return f"seconds until an answer, at most: {', '.join(times)}; {orphans}; {told}"

    def _kill_supervisor(self) -> None:
        self.service.process.kill()
        self.service.ended(5)
        self.orphans.append(until(lambda: not self._home.alive(), ORPHAN_SECONDS, "no orphan is left"))
        self.service = Service(self._home, *self._arguments).ready()

    def _pid(self, victim: Victim) -> int:
        processes = self.service.control()
        pid: int = processes["engine"] if victim == "engine" else self._chance.choice(processes["workers"])
        # While there is no engine, nothing is left to kill.
        return pid or 2**22

    def _answers(self) -> bool:
        with closing(Http(self._port, seconds=10)) as connection, suppress(*BROKEN):
            return self._clients.ask(connection, "still there?", stream=False) == 200
        return False


def shuffled(seed: int, *group: Victim) -> list[Victim]:
    """25 victims in groups, each in an order of its own.

    A new supervisor knows of no deaths, so that the pauses before a restart, which grow with every death, stay short.
    """
    chance = random.Random(seed)
    return [victim for _ in range(25) for victim in chance.sample(group, len(group))][:25]


def check_store(path: Path, acknowledged: set[str]) -> None:
    """The file opens clean and holds every answer that a client saw complete."""
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        kept = {row[0] for row in database.execute("SELECT id FROM steps")}
    assert acknowledged - kept == set()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_two_workers_lose_nothing_that_was_acknowledged(home: Home, profile: Callable[..., str], seed: int) -> None:
    port = free_port()
    arguments = ("--profile", profile(), "--workers", "2")
    clients = Clients([port], "test-model", "@n=8 hello", 3, seed)
    rounds = Rounds(home, arguments, clients, port, seed)
    try:
        with clients:
            rounds.run(shuffled(seed, "supervisor", "worker", "worker"), within=15)
    finally:
        rounds.service.stop()
    print(rounds.report())  # noqa: T201
    assert len(clients.acknowledged) > 100
    check_store(store_of(home, "test-model"), clients.acknowledged)


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(240)
def test_the_embedded_engine_loses_nothing_that_was_acknowledged(home: Home, small: str, seed: int) -> None:
    port = free_port()
    clients = Clients([port], "macaron-demi", "Say hello,", 2, seed)
    rounds = Rounds(home, ("--profile", small), clients, port, seed)
    try:
        with clients:
            rounds.run(shuffled(seed, "supervisor", "worker", "engine"), within=30)
    finally:
        rounds.service.stop()
    print(rounds.report())  # noqa: T201
    assert len(clients.acknowledged) > 10
    check_store(store_of(home, "macaron-demi"), clients.acknowledged)


@pytest.mark.slow
@pytest.mark.engine
def test_an_engine_that_dies_is_replaced_and_the_log_tells(home: Home, small: str) -> None:
    with serving(home, "--profile", small) as service:
        engine = service.control()["engine"]
        os.kill(engine, signal.SIGKILL)
        http = service.http()
        until(lambda: http.chat("hi", "macaron-demi", max_tokens=3).status == 200, 30, "it answers again")
        assert service.control()["engine"] not in (None, engine)
        assert "the engine ended with status -9" in service.log


@pytest.mark.slow
@pytest.mark.engine
def test_a_supervisor_that_is_killed_while_it_starts_leaves_nobody(home: Home, weights: Path, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(6):
        service = Service(home)
        time.sleep(chance.random() * 1.5)
        service.process.kill()
        service.ended(5)
        until(lambda: not home.alive(), ORPHAN_SECONDS, "no orphan is left")


def store_of(home: Home, model: str) -> Path:
    return home.folder / ".local" / "share" / "macaron" / f"{model}.db"
