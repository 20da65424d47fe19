"""One run, or two side by side, as blocks: configuration, data, results and curves. What differs comes first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from macaron.train.record import DataUse, RunRecord
from macaron.train.runs.blocks import Block, Chart, Grid, Note, Series
from macaron.train.runs.read import Run

MISSING = "—"
MAX_VALUE = 400
_DRAWN = ("loss", "learning_rate", "grad_norm")
_COUNTED = frozenset({"tokens", "seconds", "epoch"})
_DATA = ("path", "rows", "tokens", "manifest")


def overview(runs: Sequence[Run]) -> Grid:
    """A line a run."""
    columns = ("run", "kind", "state", "steps", "tokens", "min", "loss", "dev loss", "note")
    marked = {at for at, run in enumerate(runs) if run.state in ("broken", "interrupted", "failed")}
    return Grid("", columns, [_line(run) for run in runs], numbers=range(3, 8), marked=frozenset(marked))


def described(run: Run) -> Iterator[Block]:
    """Everything about one run."""
    yield from problems(run)
    yield Grid("run", ("", ""), _table(_facts(run)))
    yield Grid("configuration", ("", ""), _table(settings(run)))
    yield _data_grid("data", {run.name: run})
    yield from _charts([run])


def side_by_side(left: Run, right: Run) -> Iterator[Block]:
    """Two runs: what differs between them, then what is the same."""
    for run in (left, right):
        yield from problems(run)
    names = ("", f"A {left.name}", f"B {right.name}")
    yield Grid("run", names, _pairs(_facts(left), _facts(right))[0])
    differing, same = _pairs(settings(left), settings(right))
    if differing:
        yield Grid("configuration that differs", names, differing)
    else:
        yield Note("The configurations are the same.")
    yield _data_grid("data", {f"A {left.name}": left, f"B {right.name}": right})
    yield from _charts([left, right])
    if same:
        yield Grid("configuration that is the same", ("", "both"), [row[:2] for row in same])


def problems(run: Run) -> Iterator[Block]:
    """What is wrong with a run."""
    for text in run.problems:
        yield Note(f"{run.name}: {text}", warns=True)
    if run.state == "interrupted":
        yield Note(f"{run.name}: it says it is running, but its process is gone; go on with --resume", warns=True)
    if run.record is not None and run.record.reason:
        yield Note(f"{run.name}: {run.record.reason}", warns=True)


def _line(run: Run) -> list[str]:
    record = run.record
    note = run.problems[0] if run.problems else ""
    if record is None:
        return [run.name, "", run.state, *[""] * 5, note]
    values = (record.metrics.get("loss"), record.metrics.get("dev_loss"))
    return [
        record.id, record.kind, run.state, str(record.steps), str(record.tokens), f"{record.seconds / 60:.1f}",
        *("" if value is None else f"{value:.3f}" for value in values),
        note or record.reason or (f"from {record.parent}" if record.parent else ""),
    ]  # fmt: skip


def _facts(run: Run) -> dict[str, Any]:
    """The record, without what is shown elsewhere."""
    record = run.record
    if record is None:
        return {"folder": str(run.path), "state": run.state}
    table: dict[str, Any] = msgspec.to_builtins(record)
    shown = {"folder": str(run.path), "state": run.state, **table}
    return _flat({name: value for name, value in shown.items() if name not in ("config", "data", "status")})


def settings(run: Run) -> dict[str, Any]:
    """The configuration by dotted name."""
    return _flat(run.config or (run.record.config if run.record is not None else {}))


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _table(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, _shown(value)) for name, value in facts.items()]


def _pairs(left: Mapping[str, Any], right: Mapping[str, Any]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Rows of name and both values: those that differ, and those that do not."""
    differing: list[tuple[str, ...]] = []
    same: list[tuple[str, ...]] = []
    for name in [*left, *(name for name in right if name not in left)]:
        values = tuple(_shown(side[name]) if name in side else MISSING for side in (left, right))
        # As JSON, so that 1 and true, or 1 and 1.0, differ.
        differs = name not in left or name not in right or _json(left[name]) != _json(right[name])
        (differing if differs else same).append((name, *values))
    return differing, same


def _data_grid(title: str, runs: Mapping[str, Run]) -> Grid:
    rows: list[tuple[str, ...]] = []
    marked: set[int] = set()
    known = [{use.path: use for use in _uses(run.record)} for run in runs.values()]
    for path in dict.fromkeys(path for uses in known for path in uses):
        found = [uses.get(path) for uses in known]
        if any(use != found[0] for use in found):
            marked.add(len(rows))
        for name, use in zip(runs, found, strict=True):
            cells = (str(use.rows), str(use.tokens), use.sha256[:16]) if use is not None else (MISSING,) * 3
            rows.append((path if len(runs) == 1 else f"{name}: {path}", *cells))
    return Grid(title, _DATA, rows, numbers=(1, 2), marked=frozenset(marked))


def _uses(record: RunRecord | None) -> tuple[DataUse, ...]:
    return record.data if record is not None else ()


def _charts(runs: Sequence[Run]) -> Iterator[Chart]:
    names = dict.fromkeys(name for run in runs for name in run.curves if name not in _COUNTED)
    for name in sorted(names, key=lambda name: (name not in _DRAWN, "loss" not in name)):
        series = [Series(run.name, run.curves[name]) for run in runs if run.curves.get(name)]
        yield Chart(name, series)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else _json(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
