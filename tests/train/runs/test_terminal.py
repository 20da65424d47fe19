"""Blocks in a terminal."""

from __future__ import annotations

from rich.console import Console

from macaron.train.runs.blocks import Block, Chart, Fold, Grid, Note, Series
from macaron.train.runs.read import Point
from macaron.train.runs.terminal import BARS, sparkline, terminal


def shown(*blocks: Block) -> str:
    console = Console(width=80, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(terminal(blocks))
    return capture.get()


def test_a_falling_curve_falls() -> None:
    line = sparkline([Point(step, 8.0 - step) for step in range(8)], 1.0, 8.0, 7.0, width=8)
    assert line == BARS[::-1]


def test_a_shorter_run_leaves_the_rest_blank() -> None:
    line = sparkline([Point(0, 1.0), Point(1, 2.0)], 1.0, 2.0, 9.0, width=10)
    assert line == "▁█        "


def test_a_level_curve_is_drawn() -> None:
    assert sparkline([Point(0, 2.0), Point(0, 2.0)], 2.0, 2.0, 0.0, width=4) == "▁   "


def test_both_runs_are_drawn_on_one_scale() -> None:
    text = shown(Chart("loss", [Series("a", [Point(0, 8.0)]), Series("b", [Point(0, 1.0)])]))
    assert "█" in text.splitlines()[1]
    assert "▁" in text.splitlines()[2]


def test_nothing_steers_the_terminal() -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07\x9b31m[red]x[/red]\u202e"
    grid = Grid(hostile, (hostile,), [(hostile,)])
    text = shown(
        Note(hostile), grid, Fold(hostile, [(hostile, hostile)]), Chart(hostile, [Series(hostile, [Point(0, 1)])])
    )
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
    assert text.count("[red]") == 9
