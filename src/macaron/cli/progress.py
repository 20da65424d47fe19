"""A progress bar for long work with files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import (
    Progress as Bars,
)

from macaron.models import Progress, Stage

_WORDS: dict[Stage, str] = {
    "wait": "waiting for another process that fetches it",
    "find": "asking pip where it is",
    "download": "downloading",
    "unpack": "unpacking",
    "check": "checking",
}


@contextmanager
def progress_bar(console: Console) -> Iterator[Progress]:
    """One bar, for the stage under way: bytes, speed, time left. Nothing is drawn where there is no terminal."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[Stage, TaskID] = {}

        def report(stage: Stage, done: int, total: int | None) -> None:
            if stage not in tasks:
                for earlier in tasks.values():
                    bars.update(earlier, visible=False)
                tasks[stage] = bars.add_task(_WORDS[stage], total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield report
