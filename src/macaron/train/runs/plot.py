"""A chart as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from macaron.train.runs.blocks import Chart
from macaron.train.runs.read import Point

COLOURS = ("#2f6fde", "#d9662c", "#2e9b5b", "#9a55c8")
"""Of the lines, in order; readable on light and dark ground."""

WIDTH, HEIGHT = 900, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 28
_STRETCHES = 300
_TICKS = 4


class _Frame(NamedTuple):
    """The values at the edges."""

    last: float
    low: float
    high: float

    def x(self, step: float) -> float:
        return _LEFT + step / self.last * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _TOP + (self.high - value) / (self.high - self.low) * (HEIGHT - _TOP - _BOTTOM)


def plot(chart: Chart) -> str:
    """The chart, with as many lines as there are `COLOURS`; more than a few hundred points are averaged."""
    lines = [thinned(line.points) for line in chart.series[: len(COLOURS)]]
    frame = _frame([point for line in lines for point in line])
    drawn = "".join(_curve(line, frame, colour) for line, colour in zip(lines, COLOURS, strict=False))
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{_axes(frame)}{drawn}</svg>'


def thinned(points: Sequence[Point], stretches: int = _STRETCHES) -> list[Point]:
    """At most so many points, each the mean of as many as its neighbours."""
    size = math.ceil(len(points) / stretches)
    groups = [points[at : at + size] for at in range(0, len(points), size)] if points else []
    return [Point(_mean([p.step for p in group]), _mean([p.value for p in group])) for group in groups]


def ticks(low: float, high: float) -> list[float]:
    """A few round numbers between two, at steps of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]


def _frame(points: Sequence[Point]) -> _Frame:
    last = max((point.step for point in points), default=1.0)
    values = [point.value for point in points] or [0.0]
    low, high = min(values), max(values)
    margin = (high - low) * 0.05 or max(abs(high) * 0.05, 1e-9)
    return _Frame(max(last, 1e-9), low - margin, high + margin)


def _axes(frame: _Frame) -> str:
    parts = []
    for value in ticks(frame.low, frame.high):
        y = frame.y(value)
        parts.append(f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    for step in ticks(0.0, frame.last):
        parts.append(f'<text x="{frame.x(step):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{step:g}</text>')
    return "".join(parts)


def _curve(points: Sequence[Point], frame: _Frame, colour: str) -> str:
    places = " ".join(f"{frame.x(point.step):.1f},{frame.y(point.value):.1f}" for point in points)
    dot = ""
    if len(points) == 1:
        dot = f'<circle cx="{frame.x(points[0].step):.1f}" cy="{frame.y(points[0].value):.1f}" r="3" fill="{colour}"/>'
    return f'<polyline class="curve" stroke="{colour}" points="{places}"/>{dot}'


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
