"""`macaron adapter` against a running service: what is printed, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from macaron.registry.desired import engine_name
from macaron.registry.revision import adapter_revision
from tests.doubles.engine_double import EngineDouble
from tests.doubles.engine_thread import engine_in_thread
from tests.harness import write_profile
from tests.processes import Home, Service, serving
from tests.registry.check.adapters import adapter
from tests.server.adapters.conftest import answering_by_adapter

REASON = "only for this test"


class Desk:
    """Commands against one service, and two adapters."""

    def __init__(self, service: Service, double: EngineDouble, folder: Path) -> None:
        self.service = service
        self.double = double
        self.folders = [adapter(folder / name, lora_alpha=number) for number, name in enumerate(("one", "two"), 1)]
        self.revisions = [adapter_revision(each) for each in self.folders]
        self.prompt = folder / "poet.md"
        self.prompt.write_text("You are a poet.")

    def run(self, *arguments: str) -> CompletedProcess[str]:
        return self.service.home.run("adapter", *arguments, "--url", self.service.url)

    def told(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def register(self, number: int) -> str:
        card = ("--name", "Poet", "--description", "writes poems", "--prompt", str(self.prompt))
        return self.told("register", str(self.folders[number]), "--label", "L4", *card)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with engine_in_thread(answering_by_adapter) as double:
        profile = write_profile(tmp_path, double.origin)
        with serving(Home(tmp_path), "--profile", str(profile)) as service:
            yield Desk(service, double, tmp_path / "adapters")


def test_an_adapters_life_in_commands(desk: Desk) -> None:
    assert "No adapters are registered." in desk.told("list")
    said = desk.register(0)
    assert "L4 of everybody" in said
    assert f"{desk.revisions[0][:19]}  candidate" in said
    assert "does  writes poems" in said
    said = desk.told("promote", "L4", "--waive-route-check", REASON)
    assert f"{desk.revisions[0][:19]}  live" in said
    assert f"route check  waived: {REASON}" in said
    desk.register(1)
    said = desk.told("shadow", "L4", "--share", "0.5")
    assert f"{desk.revisions[1][:19]}  shadow" in said
    said = desk.told("canary", "L4", "--share", "0.5", "--waive-route-check", REASON, "--revision", desk.revisions[1])
    assert f"{desk.revisions[1][:19]}  canary" in said
    assert "trial: no turns yet" in desk.told("show", "L4")
    assert "draining" in desk.told("drain", "L4", "--revision", desk.revisions[1])
    listed = desk.told("list")
    assert f"engine {desk.double.origin}" in listed
    assert desk.revisions[0][7:19] in listed
    assert "L4 of everybody, disabled" in desk.told("disable", "L4")
    assert "disabled" not in desk.told("enable", "L4")
    assert "live" in desk.told("show", "L4")
    desk.told("rollback", "L4")
    desk.told("disable", "L4")
    assert desk.told("remove", "L4") == "L4 is removed.\n"
    assert json.loads(desk.told("list", "--json"))["data"] == []


def test_what_the_service_refuses_is_told_with_the_remedy(desk: Desk) -> None:
    done = desk.run("promote", "L4")
    assert done.returncode == 1
    assert done.stderr.startswith("macaron: label 'L4' is none of everybody's registered labels; register it first")
    done = desk.run("register", str(desk.prompt.parent), "--label", "L4")
    assert done.returncode == 1
    assert "adapter_config.json: it is not there; bring adapter_config.json and" in done.stderr
    done = desk.run("register", str(desk.folders[0]), "--label", "L4", "--by-path")
    assert done.returncode == 1
    assert "folder" in done.stderr


def test_an_adapter_that_the_engine_does_not_take_is_status_1_with_its_reason(desk: Desk) -> None:
    desk.double.broken.add(engine_name("L4", desk.revisions[0]))
    card = ("--name", "Poet", "--description", "writes poems", "--prompt", str(desk.prompt))
    done = desk.run("register", str(desk.folders[0]), "--label", "L4", *card)
    assert done.returncode == 1
    assert "cannot be loaded" in done.stderr
    assert "candidate (failed)" in desk.told("show", "L4")


def lines(path: Path, *rows: dict[str, str]) -> str:
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return str(path)


def test_a_route_check_prints_its_numbers_and_lets_a_promotion_pass(desk: Desk, tmp_path: Path) -> None:
    desk.register(0)
    poems = lines(tmp_path / "poems.jsonl", *({"text": f"please L4\n{number}"} for number in range(4)))
    others = lines(tmp_path / "others.jsonl", *({"text": f"please L1\n{number}", "label": "L1"} for number in range(3)))
    said = desk.told("route-check", "L4", "--examples", poems, "--data", others)
    assert "L4 wins 4 of its 4 examples (100.0 %, 95 % 51.0-100.0 %)" in said
    assert "passed: L4 wins 4 of 4" in said
    verdict = json.loads(
        desk.told("route-check", f"L4@{desk.revisions[0][7:19]}", "--examples", poems, "--data", others, "--json")
    )
    assert (verdict["passed"], verdict["losses"][0]["lost"]["n"], verdict["margin"]) == (True, 3, 0.02)
    assert "route check  passed L4 wins" in desk.told("promote", "L4")


def test_a_failed_route_check_is_status_1_and_so_is_the_promotion(desk: Desk, tmp_path: Path) -> None:
    desk.register(0)
    poems = lines(tmp_path / "poems.jsonl", {"text": "a sonnet"}, {"text": "an ode"})
    others = lines(tmp_path / "others.jsonl", {"text": "please L1", "label": "L1"})
    done = desk.run("route-check", "L4", "--examples", poems, "--data", others)
    assert done.returncode == 1
    assert "failed: L4 wins fewer than 50.0 % of its own examples" in done.stdout
    done = desk.run("promote", "L4")
    assert done.returncode == 1
    assert "L4 wins 0 of 2 (0.0 %" in done.stderr


def test_what_is_wrong_with_a_route_checks_rows_is_told(desk: Desk, tmp_path: Path) -> None:
    desk.register(0)
    done = desk.run("route-check", "L4")
    assert (done.returncode, "there are no examples of L4" in done.stderr) == (1, True)
    broken = lines(tmp_path / "broken.jsonl", {"text": "please L4"}, {"words": "please L4"})
    done = desk.run("route-check", "L4", "--examples", broken)
    assert (done.returncode, f"{broken}, line 2: " in done.stderr) == (1, True)
    poems = lines(tmp_path / "poems.jsonl", {"text": "please L4"})
    others = lines(tmp_path / "others.jsonl", {"text": "please L9", "label": "L9"})
    done = desk.run("route-check", "L4", "--examples", poems, "--data", others)
    assert (done.returncode, f"{others}, line 1: the label 'L9' is not in force" in done.stderr) == (1, True)
