"""A training run as a command: its settings, its progress and how it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from macaron.cli.progress import progress_bar
from macaron.errors import ConfigError
from macaron.train.config import TrainConfig, build_config, read_recipe
from macaron.train.folder import RunFolder, new_run_id
from macaron.train.record import RunKind, RunRecord

STOPPED = 130


def run(
    kind: RunKind, recipe: str | None, given: dict[str, Any], out: Path | None, resume: bool, dry_run: bool
) -> None:
    """Begin a run, or go on with one; or only show what it would learn.

    Args:
        recipe: of settings, None for the built-in ones.
        given: settings of the command line by dotted name, None for what it leaves as it is.

    Raises:
        ConfigError, TrainingFailed, Unavailable: as from `prepare_run` and `train`.
        Exit: it was asked to stop.
    """
    from macaron.train.dry import show
    from macaron.train.processes import is_main
    from macaron.train.progress import training_bar
    from macaron.train.trainer import prepare_run, train

    console = Console(stderr=True, quiet=not is_main())
    config = _config(kind, recipe, given, out, resume)
    run_id = new_run_id(config.adapter)
    with progress_bar(console) as progress:
        prepared = prepare_run(config, progress=progress)
    if dry_run:
        show(prepared, Console())
        return
    folder = RunFolder(out or Path("runs") / run_id)
    console.print(f"{len(prepared.steps)} steps in {folder.path}", highlight=False)
    with training_bar(console) as report:
        record = train(prepared, folder, resume=resume, run_id=run_id, report=report)
    if is_main():
        _conclude(record, folder)


def _config(kind: RunKind, recipe: str | None, given: dict[str, Any], out: Path | None, resume: bool) -> TrainConfig:
    from macaron.train.processes import process_count
    from macaron.train.trainer import resumed_config

    if out is None and process_count() > 1:
        raise ConfigError("several processes need --out, so that they work in one folder", param="out")
    if resume and out is None:
        raise ConfigError("--resume needs --out, the folder of the run to go on with", param="out")
    table = read_recipe(recipe) if recipe else {}
    overrides = {"kind": kind, **given}
    if resume and out is not None and RunFolder(out).exists:
        return resumed_config(RunFolder(out), {**_dotted(table), **overrides})
    return build_config({"profile": "demi", **table}, overrides)


def _dotted(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _dotted(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _conclude(record: RunRecord, folder: RunFolder) -> None:
    numbers = ", ".join(f"{name} {value:.4g}" for name, value in record.metrics.items())
    if record.status == "stopped":
        typer.echo(
            f"stopped after step {record.steps}; go on with: macaron train {record.kind} --resume --out {folder.path}"
        )
        raise typer.Exit(STOPPED)
    typer.echo(f"{folder.adapter}\n{record.adapter.revision if record.adapter else ''}\n{numbers}")
