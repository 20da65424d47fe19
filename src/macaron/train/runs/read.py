"""Reading run folders. Whatever a process left behind when it died is shown for what it is, and never an error."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError
from macaron.train.record import RunRecord

State = Literal["finished", "running", "stopped", "failed", "interrupted", "broken"]

MAX_JSON_BYTES = 67_108_864
MAX_METRICS_BYTES = 134_217_728
MAX_CURVES = 32
MAX_RUNS = 10_000
_MAX_VALUE = 1e30
_MARKS = ("run.json", "config.json", "metrics.jsonl", "checkpoints")

Decoded = TypeVar("Decoded")


class Point(NamedTuple):
    """A logged value at a step."""

    step: float
    value: float


class Run(Struct, frozen=True):
    """What a run folder holds.

    Attributes:
        state: of `record`, but `interrupted` where its process is gone, and `broken` where there is no record.
        config: `config.json`, empty where it cannot be read.
        manifests: `data.json`, empty where it cannot be read.
        curves: logged values by name, in the order in which they were logged.
        problems: what could not be read, in words.
    """

    path: Path
    state: State
    record: RunRecord | None
    config: Mapping[str, Any]
    manifests: Mapping[str, Any]
    curves: Mapping[str, tuple[Point, ...]]
    problems: tuple[str, ...]

    @property
    def name(self) -> str:
        """The run's id, or its folder's name where it has none."""
        return self.record.id if self.record is not None else self.path.name


def list_runs(root: Path) -> list[Run]:
    """The runs in a folder and in its folders, oldest first, without their curves. `root` may be a run itself.

    Raises:
        ConfigError: there is no such folder.
    """
    if not root.is_dir():
        raise ConfigError(f"there is no folder {root}; name the one that holds the runs with --root", param="root")
    runs = [read_run(path, curves=False) for path in _run_folders(root)]
    return sorted(runs, key=lambda run: (run.record.created if run.record is not None else "", run.name))


def find_run(name: str, root: Path) -> Path:
    """The folder of a run that is named by its path, its folder's name, its id, or the beginning of one.

    Raises:
        ConfigError: there is none, or several begin with the name.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    runs = list_runs(root)
    exact = [run for run in runs if name in (run.name, run.path.name)]
    found = exact or [run for run in runs if run.name.startswith(name) or run.path.name.startswith(name)]
    if len(found) != 1:
        near = ", ".join(run.name for run in (found or runs)[-5:]) or "none"
        what = "is the beginning of several runs" if found else f"is no run in {root}"
        raise ConfigError(f"{name!r} {what}; there are: {near}", param="run")
    return found[0].path


def read_run(path: Path, *, curves: bool = True) -> Run:
    """Everything of a run but its evaluations."""
    problems: list[str] = []
    record = _json(path / "run.json", RunRecord, problems)
    config = _json(path / "config.json", dict[str, Any], problems)
    manifests = _json(path / "data.json", dict[str, Any], problems) if curves else {}
    found = _curves(path / "metrics.jsonl", problems) if curves else {}
    if record is not None and record.status == "finished" and not (path / "adapter").is_dir():
        problems.append("it is finished, but its adapter is gone")
    state: State = "broken" if record is None else record.status
    if state == "running" and not _is_held(path / "lock"):
        state = "interrupted"
    return Run(path, state, record, config or {}, manifests or {}, found, tuple(problems))


def _run_folders(root: Path) -> Iterator[Path]:
    if _is_run(root):
        yield root
        return
    count = 0
    for path in sorted(root.iterdir()):
        inner = [path] if _is_run(path) else sorted(path.iterdir()) if path.is_dir() and not path.is_symlink() else []
        for run in inner:
            if run is path or _is_run(run):
                count += 1
                if count > MAX_RUNS:
                    raise ConfigError(f"{root} holds more than {MAX_RUNS} runs; name a smaller folder", param="root")
                yield run


def _is_run(path: Path) -> bool:
    # A checkpoint or an adapter is part of a run.
    part = (path / "adapter_model.safetensors").exists()
    return path.is_dir() and not part and any((path / mark).exists() for mark in _MARKS)


def _is_held(lock: Path) -> bool:
    """Whether the process that wrote its number into the lock is there. The lock itself is left alone: holding it only
    to look could turn away a run that is just beginning."""
    try:
        with lock.open("rb") as file:
            number = int(file.read(32))
        os.kill(number, 0)
    except (OSError, ValueError, OverflowError) as error:
        return isinstance(error, PermissionError)
    return number > 0


def _json(path: Path, shape: type[Decoded], problems: list[str]) -> Decoded | None:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_JSON_BYTES + 1)
        if len(raw) > MAX_JSON_BYTES:
            problems.append(f"{path.name} has more than {MAX_JSON_BYTES} bytes")
            return None
        return msgspec.json.decode(raw, type=shape)
    except OSError as error:
        problems.append(f"{path.name} cannot be read: {error.strerror}")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problems.append(f"{path.name} is not what it should be: {error}")
    return None


def _curves(path: Path, problems: list[str]) -> dict[str, tuple[Point, ...]]:
    found: dict[str, list[Point]] = {}
    broken = 0
    for line in _lines(path, problems):
        try:
            entry = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            broken += 1
            continue
        step = entry.pop("step", None)
        if not _is_number(step) or step < 0:
            broken += 1
            continue
        for name, value in entry.items():
            if _is_number(value) and (name in found or len(found) < MAX_CURVES):
                found.setdefault(name, []).append(Point(float(step), float(value)))
    if broken:
        problems.append(f"{broken} lines of {path.name} are no metrics and were left out")
    return {name: tuple(points) for name, points in found.items()}


def _lines(path: Path, problems: list[str]) -> list[bytes]:
    """Whole lines: the last one may be half written."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_METRICS_BYTES)
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.append(f"{path.name} cannot be read: {error.strerror}")
        return []
    return raw[: raw.rfind(b"\n") + 1].splitlines()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MAX_VALUE
