"""`macaron runs`, as a person types it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from macaron.cli import build_cli
from macaron.errors import ConfigError
from tests.train.runs.folders import CONFIG, RECORD, write_results, write_run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    first, second = write_run(tmp_path / "code"), write_run(tmp_path / "wide", id="W", config={**CONFIG, "rank": 16})
    write_results(first, "tools", "L2", {"one": True, "two": False})
    write_results(second, "tools", "L2", {"one": False, "two": True})
    return tmp_path


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(build_cli(), ["runs", *map(str, arguments)], env={"COLUMNS": "120"})
    if result.exception is not None:
        raise result.exception
    return result.output


def test_list_shows_runs_that_are_whole_and_those_that_are_not(root: Path) -> None:
    (root / "half").mkdir()
    (root / "half" / "run.json").write_text("{")
    text = run("list", "--root", root)
    assert RECORD.id in text
    assert "broken" in text


def test_list_without_runs_says_how_to_make_one(tmp_path: Path) -> None:
    assert "`macaron train sft` makes one" in run("list", "--root", tmp_path)


def test_show_has_settings_curves_and_evaluations(root: Path) -> None:
    text = run("show", "code", "--root", root)
    for part in ("lora.rank", "data/code", "█", "tools", "50.0 %"):
        assert part in text


def test_compare_shows_what_differs_and_which_cases(root: Path) -> None:
    text = run("compare", "code", "wide", "--root", root)
    for part in ("configuration that differs", "only A passes", "only B passes", "McNemar"):
        assert part in text


def test_compare_writes_a_page(root: Path) -> None:
    page = root / "page.html"
    assert "is written" in run("compare", root / "code", root / "wide", "--html", page)
    text = page.read_text(encoding="utf-8")
    for part in ("<svg", "only A passes", "L2 says one", "configuration that differs"):
        assert part in text


def test_a_page_that_cannot_be_written_is_an_error(root: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: Is a directory"):
        run("compare", "code", "wide", "--root", root, "--html", root)


def test_export_without_mlflow_names_what_to_install(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ConfigError, match=r"pip install 'macaron\[mlflow\]'"):
        run("export", "code", "--root", root, "--mlflow", "http://127.0.0.1:1")
