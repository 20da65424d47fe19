"""What a benchmark leaves behind: a table to read, a table to paste, and a JSON file with everything."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.candidates import ROOT

FILE_WIDTH = 180
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("macaron", "aiohttp", "httptools", "msgspec", "starlette", "uvicorn", "uvloop", "xllamacpp")


class Target(msgspec.Struct, frozen=True):
    """A figure to reach; `value` is None where it could not be measured in this run."""

    name: str
    value: float | None
    limit: float
    unit: str
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """`pass`, `FAIL` or `not measured`."""
        if self.value is None:
            return "not measured"
        reached = self.value >= self.limit if self.at_least else self.value <= self.limit
        return "pass" if reached else "FAIL"


class Grid(msgspec.Struct, frozen=True):
    """A table: a title, column names, rows of text."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def number(value: float | None, digits: int = 0) -> str:
    """A figure for a table; a dash for what there is not."""
    return "–" if value is None else f"{value:,.{digits}f}"


def targets_grid(targets: list[Target]) -> Grid:
    """The targets with their verdicts."""
    rows = [
        (
            target.name,
            f"{number(target.value, 2)} {target.unit}".strip(),
            f"{'at least' if target.at_least else 'at most'} {target.limit:g} {target.unit}".strip(),
            target.verdict,
        )
        for target in targets
    ]
    return Grid("Targets", ("target", "measured", "to reach", "verdict"), rows)


def show(grids: list[Grid]) -> None:
    """Print tables to the terminal."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=FILE_WIDTH)
    for grid in grids:
        table = Table(title=grid.title, title_justify="left")
        for place, column in enumerate(grid.columns):
            table.add_column(column, justify="left" if place < 1 else "right", no_wrap=True)
        for row in grid.rows:
            table.add_row(*row)
        console.print(table)


def markdown(grids: list[Grid]) -> str:
    """The same tables for a README."""
    parts = []
    for grid in grids:
        lines = [f"**{grid.title}**", "", "| " + " | ".join(grid.columns) + " |"]
        lines.append("|" + "---|" * len(grid.columns))
        lines += ["| " + " | ".join(row) + " |" for row in grid.rows]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def write(name: str, figures: dict[str, Any], grids: list[Grid]) -> Path:
    """Write `results/NAME.json` and `results/NAME.md`; return the folder."""
    RESULTS.mkdir(exist_ok=True)
    everything = {"benchmark": name, "when": now(), "machine": machine(), "git": git_commit(), **figures}
    (RESULTS / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(everything), indent=1))
    (RESULTS / f"{name}.md").write_text(f"{description()}\n\n{markdown(grids)}")
    return RESULTS


def description() -> str:
    """One line for the head of a table: when, what, on which machine."""
    parts = machine()
    return f"{now()}, commit {git_commit()}, {parts['cores']} cores of {parts['cpu']}, Python {parts['python']}"


def now() -> str:
    """UTC, to the minute."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def machine() -> dict[str, Any]:
    """Processor, kernel and the versions that matter."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": versions,
    }


def git_commit() -> str:
    """Short hash of the tree's commit, with `+` where files differ from it."""
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
