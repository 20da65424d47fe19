"""A router that learns one label more: its data, its questions, and the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from macaron.errors import ConfigError
from macaron.hcp import Loaded
from macaron.train.base import Base, BaseTokenizer
from macaron.train.config import AddedCard, TrainConfig, build_config
from macaron.train.data.build import build
from macaron.train.data.recipe import load_recipe
from macaron.train.data.rows import RouteRow
from macaron.train.folder import RunFolder
from macaron.train.newcomer import held_out_of, router_recipe, write_newcomer
from macaron.train.plan import plan_steps
from macaron.train.prepare import Rows
from macaron.train.studio import Studio
from tests.train.demi.routing import CachedPackages
from tests.train.tiny import Tiny, route_rows, write_set

POET = AddedCard("L4", "Poet", "Writes  poems.", "code")


def poems(count: int, label: str = "L4") -> list[RouteRow]:
    said = [f"a poem about the {word} number {at}" for at in range(count) for word in ("sea", "hill")][:count]
    return [
        RouteRow(f"poems:{at}", "poems", messages=({"role": "user", "content": text},), label=label)
        for at, text in enumerate(said)
    ]


def read(path: Path) -> list[RouteRow]:
    return [msgspec.json.decode(line, type=RouteRow) for line in path.read_bytes().splitlines()]


def test_one_example_in_five_is_kept_back_whatever_their_order(tmp_path: Path) -> None:
    write_newcomer(tmp_path / "one", "L4", poems(20))
    write_newcomer(tmp_path / "two", "L4", poems(20)[::-1])
    kept = read(held_out_of(tmp_path / "one", "L4"))
    assert kept == read(held_out_of(tmp_path / "two", "L4"))
    learned = read(tmp_path / "one" / "newcomer" / "L4.train.jsonl")
    assert (len(kept), len(learned)) == (4, 16)
    assert not {str(row.messages) for row in kept} & {str(row.messages) for row in learned}


def test_newcomers_of_the_run_before_come_along(tmp_path: Path) -> None:
    write_newcomer(tmp_path / "first", "L4", poems(10))
    write_newcomer(tmp_path / "second", "L5", poems(10, "L5"), tmp_path / "first")
    names = sorted(path.name for path in (tmp_path / "second" / "newcomer").iterdir())
    assert names == ["L4.held-out.jsonl", "L4.train.jsonl", "L5.held-out.jsonl", "L5.train.jsonl"]


@pytest.mark.parametrize("rows", [poems(9), [*poems(12), poems(1)[0]]])
def test_too_few_or_repeated_examples_are_refused(tmp_path: Path, rows: list[RouteRow]) -> None:
    with pytest.raises(ConfigError, match="different examples of L4 in"):
        write_newcomer(tmp_path, "L4", rows)
    assert not (tmp_path / "newcomer").exists()


def recipe_of(folder: Path, rows: list[RouteRow]) -> str:
    """A recipe of a router's own rows."""
    (folder / "own.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    path = folder / "own.toml"
    path.write_text(
        'name = "own"\nseed = 1\n[[source]]\nname = "own"\nlicence = "MIT"\npath = "own.jsonl"\nlimit = 80\n'
        '[split]\ndev = 0.0\ntest = 0.0\n[dedup]\nenabled = false\n[overlap]\naction = "drop"\n'
    )
    return str(path)


def test_the_data_are_a_part_of_the_routers_own_rows_and_the_newcomers(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_newcomer(run, "L4", poems(20))
    recipe = router_recipe(load_recipe(Path(recipe_of(tmp_path, route_rows(80)))), run, rows=40)
    manifest = build(recipe, run / "data", CachedPackages())
    learned = Counter(row.label == "L4" for row in read(run / "data" / "train.jsonl"))
    assert learned == {False: 40, True: 16}
    assert {row.label for row in read(run / "data" / "dev.jsonl")} == {"L4"}
    assert [source.licence for source in manifest.sources] == ["MIT", *["not stated; given with --examples"] * 2]


@pytest.fixture
def widened(tiny_loaded: Loaded, tiny_base: Base, tokenizer: BaseTokenizer) -> Studio:
    return Studio(tiny_loaded, tiny_base, tokenizer, (POET,))


def settings(**route: object) -> TrainConfig:
    table = {"kind": "sft", "profile": "demi", "adapter": "L0", "data": ["x"], "batch": {"rows": 1}}
    return build_config({**table, "route": route}, {})


def test_the_newcomers_card_stands_in_the_question_as_registration_keeps_it(
    widened: Studio, tokenizer: BaseTokenizer
) -> None:
    asked = "".join(map(tokenizer.text, widened.route(poems(1)[0]).ids))
    assert "L4: Writes poems. Not for: code\n" in asked
    assert "L4" not in "".join(map(tokenizer.text, widened.route_before(route_rows(1)[0]).ids))
    assert widened.added == {"L4"}


def test_a_newcomers_rows_are_repeated_and_some_others_asked_without_it(widened: Studio) -> None:
    cases = [(row, widened.route(row)) for row in (*route_rows(80), *poems(4))]
    rows = Rows([], cases, [])
    steps = plan_steps(widened, rows, settings(add=[msgspec.to_builtins(POET)]))
    asked = [tuple(row.ids) for batch in steps for row in batch]
    newcomers = {tuple(encoded.ids) for row, encoded in cases if row.label == "L4"}
    before = {tuple(widened.route_before(row).ids) for row, _ in cases if row.label != "L4"}
    counted = Counter(ids in newcomers for ids in asked)
    assert counted[True] == 4 * 5
    assert 8 <= sum(ids in before for ids in asked) <= 32
    assert steps == plan_steps(widened, rows, settings(add=[msgspec.to_builtins(POET)]))


def test_without_newcomers_a_plan_is_what_it_was(studio: Studio) -> None:
    cases = [(row, studio.route(row)) for row in route_rows(20)]
    asked = [tuple(row.ids) for batch in plan_steps(studio, Rows([], cases, []), settings()) for row in batch]
    assert Counter(asked) == Counter(tuple(encoded.ids) for _, encoded in cases)


def test_a_label_of_the_profile_is_no_newcomer(tiny_loaded: Loaded, tiny_base: Base, tokenizer: BaseTokenizer) -> None:
    with pytest.raises(ConfigError, match="label 'L1' is one of the profile's"):
        Studio(tiny_loaded, tiny_base, tokenizer, (AddedCard("L1", "Poet", "poems"),))


@pytest.mark.parametrize(
    "cards",
    [
        [{"label": "l4", "name": "Poet", "description": "poems"}],
        [{"label": "L4", "name": "Poet", "description": " "}],
        [{"label": "L4", "name": "Poet", "description": "poems"}] * 2,
    ],
)
def test_unusable_cards_are_refused(cards: list[dict[str, str]]) -> None:
    with pytest.raises(ConfigError, match=r"route\.add is"):
        settings(add=cards)


def call(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "macaron", "train", "router", *arguments]
    variables = {**os.environ, "XDG_CACHE_HOME": str(cache), "COLUMNS": "200"}
    return subprocess.run(line, env=variables, capture_output=True, text=True, timeout=150, check=False)


@pytest.fixture
def home(tiny: Tiny, tmp_path: Path) -> Path:
    (tmp_path / "cache" / "macaron").mkdir(parents=True)
    (tmp_path / "cache" / "macaron" / "bases").symlink_to(tiny.cache)
    return tmp_path / "cache"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_router_is_trained_on_dry_stopped_resumed_and_trained_on_again(
    tiny: Tiny, home: Path, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    data = write_set(tmp_path / "data", route_rows(8), [])
    first = [
        sys.executable,
        "-m",
        "macaron",
        "train",
        "sft",
        "--profile",
        tiny.profile,
        "--adapter",
        "L0",
        "--data",
        data,
    ]
    begun = subprocess.run(
        [*first, "--rank", "4", "--max-steps", "1", "--threads", "1", "--out", str(old)],
        env={**os.environ, "XDG_CACHE_HOME": str(home)}, capture_output=True, text=True, timeout=150, check=False,
    )  # fmt: skip
    assert begun.returncode == 0, begun.stderr
    before = (old / "adapter" / "adapter_model.safetensors").read_bytes()
    examples = tmp_path / "poems.jsonl"
    examples.write_text("\n".join(json.dumps({"text": row.messages[0]["content"]}) for row in poems(12)))
    given = [
        "--add", "L4", "--examples", str(examples), "--name", "Poet", "--description", "writes poems",
        "--profile", tiny.profile, "--from", str(old), "--recipe", recipe_of(tmp_path, route_rows(80)), "--rows", "20",
        "--max-steps", "2", "--threads", "1", "--out", str(tmp_path / "new"),
    ]  # fmt: skip
    dry = call(home, *given, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "L4: writes poems" in dry.stdout
    assert not (tmp_path / "new").exists()
    made = call(home, *given)
    assert made.returncode == 0, made.stderr
    record = RunFolder(tmp_path / "new").read_record()
    assert (record.label, record.status, record.parent) == ("L0", "finished", RunFolder(old).read_record().id)
    assert record.config["route"]["add"] == [
        {"label": "L4", "name": "Poet", "description": "writes poems", "boundary": ""}
    ]
    assert str(held_out_of(tmp_path / "new", "L4")) in made.stdout
    assert (old / "adapter" / "adapter_model.safetensors").read_bytes() == before
    assert (tmp_path / "new" / "adapter" / "adapter_model.safetensors").read_bytes() != before
    assert "holds a run already" in call(home, *given).stderr
    assert call(home, "--resume", "--out", str(tmp_path / "new")).returncode == 0


def test_what_is_missing_is_told(home: Path) -> None:
    found = call(home, "--add", "L4")
    assert found.returncode == 1
    assert "--add, --examples and --description are needed" in found.stderr
