"""What a person sees of a run: a bar with the loss, tokens a second and the time left, or now and then a line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LINE_SECONDS = 30.0


class Tick(NamedTuple):
    """A step that is done: its number of `steps`, its loss, and the tokens a second of this process so far."""

    step: int
    steps: int
    loss: float
    speed: float


class Report(Protocol):
    """Is told about a run."""

    def __call__(self, tick: Tick) -> None:
        """A step is done."""
        ...


def unseen(tick: Tick) -> None:
    """Show nothing."""


@contextmanager
def training_bar(console: Console) -> Iterator[Report]:
    """A bar on a terminal; elsewhere a line every half minute."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TextColumn("{task.fields[speed]:.0f} tokens/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, speed_estimate_period=120) as bar:
        task = bar.add_task("training", total=None, loss=float("nan"), speed=0.0)

        def show(tick: Tick) -> None:
            bar.update(task, completed=tick.step, total=tick.steps, loss=tick.loss, speed=tick.speed)

        yield show


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun = self._last = time.monotonic()
        self._first = 0

    def __call__(self, tick: Tick) -> None:
        moment = time.monotonic()
        self._first = self._first or tick.step
        if moment - self._last < LINE_SECONDS and tick.step < tick.steps:
            return
        self._last = moment
        done = tick.step - self._first + 1
        left = (moment - self._begun) / done * (tick.steps - tick.step)
        self._console.print(
            f"step {tick.step}/{tick.steps}, loss {tick.loss:.4f}, {tick.speed:.0f} tokens/s, {left / 60:.1f} min left",
            highlight=False,
        )
