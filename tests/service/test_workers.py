"""Several workers are one service: one address, one store, one set of numbers."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.harness import write_profile
from tests.processes import OPEN, Home, Http, Service, serving, until

ASKED = "hello there"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, engine_address: str) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("two")
    profile = write_profile(folder, engine_address)
    with serving(Home(folder, **OPEN), "--profile", str(profile), "--workers", "2") as service:
        yield service


def connections_to_both(service: Service) -> dict[int, Http]:
    """A kept connection to each worker, by the worker's process."""
    found: dict[int, Http] = {}

    def both() -> bool:
        http = service.http()
        assert http.get("/health").status == 200
        found.setdefault(owner(http.local_port, service.port, service.control()["workers"]), http)
        return len(found) == 2

    until(both, 20, "both workers accept connections")
    return found


def owner(port: int, served: int, workers: list[int]) -> int:
    """The worker that holds the other end of a connection from `port` to `served`.

    The kernel's table also has this machine's other connections, and ones that were closed a while ago.
    """
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {
        f"socket:[{line[9]}]"
        for line in lines
        if line[1].endswith(f":{served:04X}") and line[2].endswith(f":{port:04X}") and line[9] != "0"
    }
    (pid,) = [pid for pid in workers if inodes & links(pid)]
    return pid


def links(pid: int) -> set[str]:
    found: set[str] = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            found.add(os.readlink(entry))
    return found


def requests(http: Http) -> float:
    pattern = r'^macaron_requests_total\{endpoint="chat",status="200"\} ([\d.]+)'
    found = re.search(pattern, http.get("/metrics").text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_both_workers_serve(service: Service) -> None:
    assert sorted(connections_to_both(service)) == sorted(service.control()["workers"])


def test_both_agree_on_the_generation(service: Service) -> None:
    answers = [http.get("/ready").json for http in connections_to_both(service).values()]
    assert answers[0]["generation"] == answers[1]["generation"] == 1
    assert answers[0]["contract"] == answers[1]["contract"]


def test_the_numbers_of_both_add_up_wherever_they_are_asked_for(service: Service) -> None:
    one, other = connections_to_both(service).values()
    before = requests(one)
    for _ in range(3):
        assert one.chat(ASKED).status == 200
    for _ in range(4):
        assert other.chat(ASKED).status == 200
    until(lambda: requests(one) == requests(other) == before + 7, 5, "both tell the same sum")


def test_a_conversation_that_goes_on_at_the_other_worker_is_the_same_session(service: Service) -> None:
    one, other = connections_to_both(service).values()
    traced = {"x-macaron-trace": "1"}
    first = one.chat("@L1 where to go?", headers=traced)
    messages = [
        {"role": "user", "content": "@L1 where to go?"},
        first.json["choices"][0]["message"],
        {"role": "user", "content": "and then?"},
    ]
    second = other.post(messages, headers=traced)
    assert second.headers["x-macaron-session"] == first.headers["x-macaron-session"]


def test_a_worker_that_dies_is_replaced_while_the_other_one_serves(service: Service) -> None:
    both = connections_to_both(service)
    (victim, _), (_, left) = both.items()
    os.kill(victim, signal.SIGKILL)
    assert left.chat(ASKED).status == 200
    until(lambda: victim not in service.control()["workers"], 10, "another worker is there")
    until(lambda: len(connections_to_both(service)) == 2, 10, "it serves")
    assert service.control()["worker_restarts"] >= 1
    assert any("ended with status -9" in json.loads(line)["message"] for line in service.log.splitlines())


def test_the_numbers_of_a_dead_worker_stay(service: Service) -> None:
    both = connections_to_both(service)
    (victim, doomed), (_, left) = both.items()
    assert doomed.chat(ASKED).status == 200
    until(lambda: requests(left) == requests(doomed), 5, "its numbers are saved")
    before = requests(left)
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in service.control()["workers"], 10, "another worker is there")
    assert requests(left) == before


def test_the_shared_numbers_are_removed_at_the_end(home: Home, profile: Callable[..., str], service: Service) -> None:
    with serving(home, "--profile", profile(), "--workers", "2") as own:
        assert (home.runtime / f"{own.port}.metrics").is_dir()
    assert list(home.runtime.iterdir()) == []


def test_a_new_worker_serves_the_contract_that_the_service_began_with(home: Home, profile: Callable[..., str]) -> None:
    document = Path(profile())
    with serving(home, "--profile", str(document)) as own:
        contract = own.http().get("/ready").json["contract"]
        document.write_text("edited, and wrong")
        (victim,) = own.control()["workers"]
        os.kill(victim, signal.SIGKILL)
        until(lambda: own.control()["workers"] != [victim], 10, "another worker is started")
        assert own.http().get("/ready").json["contract"] == contract
