"""A line is followed from an answer or an adapter to the turns it was trained on, and from a turn to what it fed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from macaron.conversation import Step
from macaron.errors import NotFound
from macaron.hcp import load
from macaron.lineage import Lineage, Places, trace
from macaron.registry.cards import registry_from
from macaron.registry.revision import adapter_revision
from macaron.store import migrate, open_store
from macaron.store.base import Limits
from macaron.train.data.build import build
from macaron.train.data.recipe import load_recipe
from macaron.train.inputs import data_digest
from macaron.train.record import AdapterInfo, DataUse, RunRecord
from tests.experience.made import made, write
from tests.harness import write_profile
from tests.store.steps import make
from tests.train.data.making import NoPackages

FED = tuple(f"fed{number}" for number in range(4))


class World:
    """A service that answered and recorded, a data set of its turns, and a run on that whose adapter it serves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder / "runs" / "second"
        self.adapter = self.run / "adapter"
        self.adapter.mkdir(parents=True)
        (self.adapter / "adapter_config.json").write_text("{}")
        (self.adapter / "adapter_model.safetensors").write_bytes(b"weights")
        self.revision = adapter_revision(self.adapter)
        self.store = folder / "store.db"
        self._answers()
        self.data = folder / "data" / "mine"
        self._data()
        self._runs()
        self.served = folder / "served"
        self.served.mkdir()
        document = write_profile(self.served, "http://127.0.0.1:9")
        (self.served / "L1").mkdir()
        for path in self.adapter.iterdir():
            (self.served / "L1" / path.name).write_bytes(path.read_bytes())
        text = document.read_text().replace('engine_name = "L1"', 'engine_name = "L1"\nsource = "L1"')
        document.write_text(text)
        self.places = Places(
            (loaded := load(document)), registry_from(loaded), self.store, folder / "runs", folder / "data"
        )

    def _answers(self) -> None:
        migrate(self.store)

        async def put() -> None:
            store = open_store(f"sqlite://{self.store}", limits=Limits(), durability="normal")
            steps: list[Step] = [make(name) for name in FED]
            new = msgspec.structs.replace(make("new"), label="L1", revision=self.revision)
            for step in (*steps, new):
                await store.put_steps([step])
            await store.close()

        asyncio.run(put())
        records = [
            made(name, session=name, messages=({"role": "user", "content": f"{name} asks"},), given=0) for name in FED
        ]
        write(self.folder / "store.experience", records)

    def _data(self) -> None:
        recipe = self.folder / "mine.toml"
        recipe.write_text(
            'name = "mine"\nseed = 1\n[dedup]\nenabled = false\n[split]\ndev = 0\ntest = 0\n'
            '[[source]]\nname = "recorded"\nlicence = "CC-BY-4.0"\n[source.turns]\nfile = "store.experience"\n'
        )
        build(load_recipe(recipe), self.data, NoPackages())

    def _runs(self) -> None:
        path, sha256 = str(self.data), data_digest(self.data)
        first = RunRecord("L1-first", "sft", "finished", "mine", "L1", "base", "sha256:0", "2026-12-01T00:00:00Z", 1)
        second = msgspec.structs.replace(
            first,
            id="L1-second",
            parent="L1-first",
            data=(DataUse(path, sha256, 4, 100),),
            adapter=AdapterInfo(self.revision, 8, 100, 7),
        )
        for record, run in ((first, self.folder / "runs" / "first"), (second, self.run)):
            run.mkdir(exist_ok=True)
            (run / "run.json").write_bytes(msgspec.json.encode(record))
        manifest = msgspec.json.decode((self.data / "manifest.json").read_bytes())
        kept = {"data": {path: sha256}, "manifests": {path: manifest}}
        (self.run / "data.json").write_bytes(msgspec.json.encode(kept))
        (self.adapter / "run.json").write_bytes(msgspec.json.encode(second))

    def trace(self, name: str) -> Lineage:
        return trace(name, self.places)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_an_answer_is_followed_to_the_turns_its_adapter_learned(world: World) -> None:
    found = world.trace("new")
    assert found.answer is not None
    assert (found.answer.label, found.answer.revision, found.answer.recorded) == ("L1", world.revision, False)
    assert [run.id for run in found.runs] == ["L1-second", "L1-first"]
    (data,) = found.runs[0].data
    assert (data.name, data.known, data.sources[0].turns) == ("mine", True, 4)
    assert data.sources[0].consents == ("acme: contract of today, section 4 (CC-BY-4.0)",)
    assert {(turn.id, turn.kept) for turn in found.turns} == {(name, True) for name in FED}
    assert found.problems == ()


def test_an_adapter_is_followed_forth_and_back(world: World) -> None:
    found = world.trace("L1")
    assert found.answer is None
    assert found.adapter is not None
    assert (found.adapter.revision, found.adapter.labels) == (world.revision, ("L1",))
    assert (found.adapter.answers, found.adapter.recorded) == (1, 0)
    assert len(found.turns) == 4
    assert found.adapter.places == (str(world.served / "L1"),)


@pytest.mark.parametrize("form", ["{revision}", "L1@{digits}", "{folder}"])
def test_an_adapter_has_several_names(world: World, form: str) -> None:
    digits = world.revision.removeprefix("sha256:")[:12]
    name = form.format(revision=world.revision, digits=digits, folder=world.adapter)
    adapter = world.trace(name).adapter
    assert adapter is not None
    assert adapter.revision == world.revision


def test_a_recorded_answer_is_followed_to_what_it_fed(world: World) -> None:
    found = world.trace("fed1")
    assert found.answer is not None
    assert found.answer.recorded
    assert [run.id for run in found.fed] == ["L1-second"]
    assert found.sets == (str(world.data),)


def test_deleted_turns_are_still_named_and_said_to_be_gone(world: World) -> None:
    from macaron.experience import ExperienceFile

    with ExperienceFile(world.folder / "store.experience", writable=True) as file:
        file.delete("acme", "fed1")
    found = world.trace("L1")
    assert {turn.id for turn in found.turns if not turn.kept} == {"fed1"}


def test_a_shipped_copy_is_traced_by_the_run_that_its_record_names(world: World) -> None:
    copy = world.folder / "copy"
    copy.mkdir()
    for path in world.adapter.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    (copy / "adapter_model.safetensors").write_bytes(b"halved")
    found = world.trace(str(copy))
    assert [run.id for run in found.runs] == ["L1-second", "L1-first"]
    assert found.runs[0].path == str(world.run)


def test_a_data_set_that_was_changed_is_said_to_be(world: World) -> None:
    (world.run / "data.json").unlink()
    (world.data / "dev.jsonl").write_text("{}\n")
    found = world.trace("L1")
    assert not found.runs[0].data[0].known
    assert any("is gone or was changed since" in problem for problem in found.problems)


def test_an_adapter_without_a_run_says_what_is_missing(world: World) -> None:
    found = world.trace("L2")
    assert found.runs == ()
    assert "unverified:L2" in found.problems[0]


def test_what_is_neither_is_refused(world: World) -> None:
    with pytest.raises(NotFound, match="no answer and no adapter"):
        world.trace("nobody")
