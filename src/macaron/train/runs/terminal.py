"""Blocks in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from macaron.train.data.render import visible
from macaron.train.runs.blocks import Block, Chart, Fold, Grid, Note
from macaron.train.runs.read import Point

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 48
NAME_WIDTH = 26


def terminal(blocks: Iterable[Block]) -> Group:
    """What a console prints."""
    return Group(*_shown(blocks))


def _shown(blocks: Iterable[Block]) -> Iterator[RenderableType]:
    for block in blocks:
        match block:
            case Note():
                yield _text(block.text, "yellow" if block.warns else "")
            case Grid():
                yield from _grid(block)
            case Chart():
                yield from _chart(block)
            case Fold():
                yield _text(block.title, "bold")
                for name, text in block.texts:
                    yield _text(f"  {name}", "dim")
                    yield _text(text)
        yield ""


def _grid(grid: Grid) -> Iterator[RenderableType]:
    if grid.title:
        yield _text(grid.title, "bold")
    # Names stay in one piece as long as they are not all there is.
    first = min(max((len(row[0]) for row in grid.rows), default=0), NAME_WIDTH)
    columns = [
        Column(
            _text(name), justify="right" if at in grid.numbers else "left", overflow="fold",
            min_width=None if at else first,
        )
        for at, name in enumerate(grid.columns)
    ]  # fmt: skip
    table = Table(*columns, box=None, pad_edge=False, show_header=any(grid.columns))
    for at, row in enumerate(grid.rows):
        table.add_row(*map(_text, row), style="yellow" if at in grid.marked else None)
    yield table if grid.rows else _text("nothing", "dim")


def _chart(chart: Chart) -> Iterator[RenderableType]:
    yield _text(chart.title, "bold")
    values = [point.value for line in chart.series for point in line.points]
    low, high = min(values), max(values)
    last = max(point.step for line in chart.series for point in line.points)
    table = Table(Column(overflow="fold"), Column(no_wrap=True), Column(justify="right"), box=None, pad_edge=False,
                  show_header=False)  # fmt: skip
    for line in chart.series:
        first, final = line.points[0].value, line.points[-1].value
        table.add_row(_text(line.name), sparkline(line.points, low, high, last), f"{first:.4g} → {final:.4g}")
    yield table


def sparkline(points: Sequence[Point], low: float, high: float, last: float, width: int = WIDTH) -> str:
    """Points as bars of eight heights, a character a stretch of steps; a stretch without points is a blank.

    Args:
        low, high: the values of the lowest and the highest bar.
        last: the step at the right edge.
    """
    stretches: list[list[float]] = [[] for _ in range(width)]
    for point in points:
        stretches[min(int(point.step / max(last, 1e-9) * (width - 1)), width - 1)].append(point.value)
    reach = high - low or 1.0
    means = [sum(values) / len(values) if values else None for values in stretches]
    return "".join(" " if mean is None else BARS[round((mean - low) / reach * (len(BARS) - 1))] for mean in means)


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text), style)
