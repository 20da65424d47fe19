"""Adapters that come and go while the embedded engine serves: its child is replaced, and no request is lost."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from macaron.registry.revision import adapter_revision
from tests.models.markers import saying
from tests.models.peft_folder import tensors, write_folder
from tests.processes import PATIENCE, Home, serving, until
from tests.registry.check.adapters import TARGETS
from tests.service.desk import CARD, MODEL, Desk, Streams
from tests.service.test_adapters import SMOLLM2

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(1800)]

CLIENTS = 32
WORDS = {"L0": "tea", "L1": "river", "L2": "stone", "L3": "bread"}
FIFTH, SIXTH = "apple", "music"


@pytest.fixture
def owner(tmp_path: Path) -> Home:
    """A home whose first start makes a key with every scope."""
    return Home(tmp_path)


@pytest.fixture
def marked(small: str, weights: Path) -> str:
    """`demi` whose specialists each say one word, whatever they are asked."""
    folder = Path(small)
    for label, word in WORDS.items():
        shutil.rmtree(folder / "adapters" / label)
        saying(folder / "adapters" / label, weights, word)
    document = folder / "profile.toml"
    document.write_text(document.read_text().replace('summary = "idle"', 'summary = "off"'))
    return small


def adapter(folder: Path, seed: int, spread: float = 0.2) -> Path:
    return write_folder(
        folder,
        tensors(SMOLLM2, 2, seed=seed, spread=spread),
        target_modules=TARGETS,
        base_model_name_or_path="SmolLM2-135M-Instruct",
    )


def test_a_fifth_specialist_comes_and_goes_while_32_clients_stream(marked: str, owner: Home, weights: Path) -> None:
    fifth = saying(owner.folder / "fifth" / "adapter", weights, FIFTH)
    sixth = saying(owner.folder / "sixth" / "adapter", weights, SIXTH)
    with serving(owner, "--profile", marked) as service:
        desk = Desk(service)
        streams = Streams(desk, WORDS, CLIENTS)
        with streams.flowing():
            desk.register(fifth)
            pauses = [desk.list()["engine"]["pause_seconds"]]
            desk.promote()
            streams.words["L4"] = frozenset({FIFTH})
            streams.newcomer = "L4"
            streams.until_all()
            desk.register(sixth, "L4")
            pauses.append(desk.list()["engine"]["pause_seconds"])
            streams.words["L4"] = frozenset({FIFTH, SIXTH})
            desk.promote()
            streams.words["L4"] = frozenset({SIXTH})
            streams.until_all()
            streams.words["L4"] = frozenset({FIFTH, SIXTH})
            desk.run("rollback", "L4")
            streams.words["L4"] = frozenset({FIFTH})
            streams.until_all()
            streams.newcomer = ""
            streams.until_none_asks("L4")
            desk.run("disable", "L4")
            until(lambda: desk.verb("L4", "remove") == 200, PATIENCE, "it is removed")
            assert desk.ask("L4")[0] == 400
            streams.until_all()
        assert desk.list()["data"] == []
    streams.check()
    told = {each.text.split()[0] for each in streams.said if each.label == "L4"}
    assert told == {FIFTH, SIXTH}
    assert all(0 < pause < PATIENCE for pause in pauses)
    print(f"pauses {pauses} s, {len(streams.said)} answers")  # noqa: T201


def test_an_adapter_whose_numbers_break_under_load_is_taken_out(marked: str, owner: Home, weights: Path) -> None:
    fifth = saying(owner.folder / "fifth" / "adapter", weights, FIFTH)
    sixth = saying(owner.folder / "sixth" / "adapter", weights, SIXTH, breaks_at="zebra")
    with serving(owner, "--profile", marked) as service:
        desk = Desk(service)
        desk.register(fifth)
        desk.promote()
        desk.register(sixth)
        desk.promote()
        streams = Streams(desk, WORDS, 4)
        with streams.flowing():
            assert set(desk.ask("L4")[1].split()) == {SIXTH}
            status, text, revision = desk.ask("L4", "Tell me of a zebra please.", 24)
            assert (status, revision) == (200, adapter_revision(sixth))
            assert set(text.split()) != {SIXTH}
            until(lambda: desk.newest().get("withdrawn"), PATIENCE, "it is taken out")
            until(lambda: set(desk.ask("L4")[1].split()) == {FIFTH}, PATIENCE, "the one before answers")
            assert set(desk.ask("L4", "Tell me of a zebra please.")[1].split()) == {FIFTH}
        streams.check()
        assert "are not numbers" in desk.run("show", "L4")
        assert desk.get("/L4")["live"] == adapter_revision(fifth)


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
        until(lambda: service.control()["engine_restarts"] == 1, PATIENCE, "the engine was started again")
        until(lambda: desk.ask("L4")[:2] == said[:2], PATIENCE, "it answers as before")
        worker = service.control()["workers"][0]
        os.kill(worker, signal.SIGKILL)
        until(lambda: service.control()["workers"][0] != worker, PATIENCE, "another worker was started")
        until(lambda: _asked(desk) == said, PATIENCE, "it answers as before")


def _asked(desk: Desk) -> tuple[int, str, str]:
    try:
        return desk.ask("L4")
    except OSError:
        return 0, "", ""


def test_a_service_killed_while_the_engine_loads_finishes_when_it_starts_again(small: str, owner: Home) -> None:
    poet = adapter(owner.folder / "poet" / "adapter", seed=7)
    prompt = owner.folder / "prompt.md"
    prompt.write_text("You are a poet.")
    with serving(owner, "--profile", small) as service:
        desk = Desk(service)
        before = service.control()["engine"]
        desk.run("register", str(poet), "--label", "L4", "--no-wait", *CARD, str(prompt))
        until(lambda: service.control()["engine"] != before, PATIENCE, "the child is replaced")
        service.process.kill()
        until(lambda: not owner.alive(), PATIENCE, "all are gone")
    with serving(owner, "--profile", small) as service:
        again = Desk(service)
        until(lambda: again.engine_of("L4") == "ready", PATIENCE, "the engine has proved it")
        again.promote()
        assert again.ask("L4")[::2] == (200, adapter_revision(poet))


def test_an_engine_killed_while_it_loads_is_given_the_adapter_again(small: str, owner: Home) -> None:
    poet = adapter(owner.folder / "poet" / "adapter", seed=7)
    prompt = owner.folder / "prompt.md"
    prompt.write_text("You are a poet.")
    with serving(owner, "--profile", small) as service:
        desk = Desk(service)
        before = service.control()["engine"]
        desk.run("register", str(poet), "--label", "L4", "--no-wait", *CARD, str(prompt))
        until(lambda: service.control()["engine"] not in (None, before), PATIENCE, "the child is replaced")
        os.kill(service.control()["engine"], signal.SIGKILL)
        until(lambda: desk.engine_of("L4") == "ready", PATIENCE, "the engine has proved it")
        assert desk.ask("L0")[0] == 200


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
