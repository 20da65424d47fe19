"""Runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from macaron.train.record import DataUse
from macaron.train.runs.blocks import Block, Chart, Grid, Note
from macaron.train.runs.compare import described, overview, side_by_side
from macaron.train.runs.read import Run, read_run
from tests.train.runs.folders import CONFIG, RECORD, write_run


def run(folder: Path, **options: Any) -> Run:
    return read_run(write_run(folder, **options))


def blocks(folder: Path, **second: Any) -> list[Block]:
    return list(side_by_side(run(folder / "a"), run(folder / "b", id="B", **second)))


def grid(found: list[Block], title: str) -> Grid:
    (one,) = (block for block in found if isinstance(block, Grid) and block.title == title)
    return one


def test_settings_that_differ_come_before_those_that_do_not(tmp_path: Path) -> None:
    found = blocks(tmp_path, config={**CONFIG, "lora": {"rank": 16, "alpha": 16}, "new": True})
    differing = grid(found, "configuration that differs")
    assert list(differing.rows) == [("lora.rank", "8", "16"), ("new", "—", "true")]
    same = grid(found, "configuration that is the same")
    assert ("lora.alpha", "16") in same.rows
    assert found.index(differing) < found.index(same)


def test_equal_configurations_are_said_to_be_equal(tmp_path: Path) -> None:
    assert Note("The configurations are the same.") in blocks(tmp_path)


def test_values_of_other_types_differ(tmp_path: Path) -> None:
    found = blocks(tmp_path, config={**CONFIG, "kind": {}, "adapter": 1})
    assert ("kind", "sft", "{}") in grid(found, "configuration that differs").rows


def test_other_data_is_marked(tmp_path: Path) -> None:
    found = grid(blocks(tmp_path, data=(DataUse("data/code", "bb" * 32, 100, 20_000),)), "data")
    assert [row[-1] for row in found.rows] == ["a" * 16, "b" * 16]
    assert found.marked == {0}
    (tmp_path / "same").mkdir()
    assert grid(blocks(tmp_path / "same"), "data").marked == frozenset()


def test_curves_of_both_runs_share_a_chart(tmp_path: Path) -> None:
    charts = [block for block in blocks(tmp_path) if isinstance(block, Chart)]
    assert [(chart.title, [line.name for line in chart.series]) for chart in charts] == [("loss", [RECORD.id, "B"])]


def test_problems_come_first(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    broken = read_run(tmp_path / "b")
    first = next(iter(side_by_side(run(tmp_path / "a"), broken)))
    assert first == Note("b: run.json cannot be read: No such file or directory", warns=True)


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    found = list(described(run(tmp_path / "a", status="failed", reason="the loss is not a number")))
    assert found[0] == Note(f"{RECORD.id}: the loss is not a number", warns=True)


def test_the_overview_marks_what_needs_attention(tmp_path: Path) -> None:
    (tmp_path / "half").mkdir()
    runs = [
        run(tmp_path / "a"),
        run(tmp_path / "b", status="running"),
        run(tmp_path / "c", status="failed"),
        read_run(tmp_path / "half"),
    ]
    found = overview(runs)
    assert [row[2] for row in found.rows] == ["finished", "interrupted", "failed", "broken"]
    assert found.marked == {1, 2, 3}
    assert all(len(row) == len(found.columns) for row in found.rows)


def test_a_long_value_is_clipped(tmp_path: Path) -> None:
    found = blocks(tmp_path, config={**CONFIG, "long": "x" * 10_000})
    assert max(len(cell) for row in grid(found, "configuration that differs").rows for cell in row) < 500
