"""`macaron evals diagnose`: scores on named dimensions, what changed against the parent, and the rows behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.console import Console

from macaron.cli.evals import progress_bars
from macaron.errors import ConfigError
from macaron.evals.diagnose import answer_probes, judge_answers
from macaron.evals.diagnosis_report import SCORES, diagnosis_report, diagnosis_tables, read_scores
from macaron.evals.dimensions import Dimension, load_dimensions
from macaron.evals.judge import Judge, JudgeSettings
from macaron.evals.record import CaseResult
from macaron.evals.results import Results
from macaron.evals.routing import Progress
from macaron.evals.subjects import BASE, open_subjects
from macaron.hcp import load
from macaron.profiles import find_profile
from macaron.train.data.read import read_rows
from macaron.train.data.rows import AnyRow
from macaron.train.folder import RunFolder
from macaron.train.record import RunRecord

ANSWERS = "diagnosis.answers.jsonl"

EXAMPLES = """Examples:

  macaron evals diagnose runs/L0-2 --judge http://127.0.0.1:9000/v1 --judge-model big

  macaron evals diagnose --profile demi --label L0 --out base --judge … --judge-model big

  macaron evals diagnose runs/L0-2 --parent base --judge … --judge-model big --judge-key-env JUDGE_KEY

The judge is any OpenAI-compatible endpoint. A diagnosis that was stopped goes on where it was."""


class Target(NamedTuple):
    """What is diagnosed: one specialist, on the base or with a run's adapter."""

    profile: str
    label: str
    adapter: Path | None
    out: Path
    parent: Path | None
    data: tuple[str, ...]


def diagnose(
    judge: Annotated[str, typer.Option(help="Base URL of the judge, such as https://host/v1.")],
    judge_model: Annotated[str, typer.Option(help="The model to ask there.")],
    run: Annotated[Path | None, typer.Argument(help="Folder of a finished run; without one, the bare base.")] = None,
    judge_key_env: Annotated[str, typer.Option(help="Environment variable that holds the judge's key.")] = "",
    profile: Annotated[str, typer.Option(help="Profile of the bare base.")] = "demi",
    label: Annotated[str, typer.Option(help="Specialist whose identity the bare base has.")] = "L0",
    parent: Annotated[Path | None, typer.Option(help="Run or folder to compare with; default: the run's own.")] = None,
    dimensions: Annotated[Path | None, typer.Option(help="A TOML file of dimensions; default: ours.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for results; default: the run's `evals`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Let a judge score a specialist's answers on named dimensions, from 1 to 5."""
    target = _run_target(run, out, parent) if run else _base_target(profile, label, out, parent)
    wanted = load_dimensions(dimensions)
    before = read_scores(target.parent) if target.parent else []
    judged_by = Judge(JudgeSettings(judge, judge_model, key_env=judge_key_env))
    with progress_bars(Console(stderr=True)) as progress:
        results = asyncio.run(_diagnosed(target, wanted, judged_by, progress))
    report = diagnosis_report(wanted, results, before, _rows(target.data))
    text = msgspec.json.format(msgspec.json.encode(report), indent=1).decode()
    (target.out / "diagnosis.json").write_text(text + "\n", encoding="utf-8")
    if as_json:
        typer.echo(text)
    else:
        Console().print(diagnosis_tables(report))


async def _diagnosed(
    target: Target, dimensions: tuple[Dimension, ...], judge: Judge, progress: Progress
) -> list[CaseResult]:
    loaded = load(find_profile(target.profile))
    adapters = {target.label: target.adapter} if target.adapter else {}
    with Results(target.out / ANSWERS) as answers, Results(target.out / SCORES) as scores:
        async with open_subjects(loaded, adapters) as subjects:
            subject = subjects.named(target.label if target.adapter else BASE, head=target.label)
            answered = await answer_probes(dimensions, subject, answers, progress)
        async with judge:
            return await judge_answers(dimensions, answered, judge, scores, progress)


def _run_target(path: Path, out: Path | None, parent: Path | None) -> Target:
    folder = RunFolder(path)
    record = folder.read_record()
    if record.status != "finished":
        raise ConfigError(f"run {path} is {record.status}, not finished; resume it first", param="run")
    return Target(
        record.profile, record.label, folder.adapter, out or path / "evals", parent or _parent_of(path, record),
        tuple(use.path for use in record.data),
    )  # fmt: skip


def _parent_of(path: Path, record: RunRecord) -> Path | None:
    """The parent's folder, which is expected beside the run; None for a run from the base."""
    if not record.parent:
        return None
    for folder in path.resolve().parent.iterdir():
        if (folder / "run.json").is_file() and RunFolder(folder).read_record().id == record.parent:
            return folder
    raise ConfigError(f"the parent {record.parent} is not beside {path}; name its folder with --parent", param="parent")


def _base_target(profile: str, label: str, out: Path | None, parent: Path | None) -> Target:
    if out is None:
        raise ConfigError("a diagnosis of the bare base needs a folder for its results; give --out", param="out")
    return Target(profile, label, None, out, parent, ())


def _rows(data: tuple[str, ...]) -> Iterator[AnyRow]:
    """The training rows of the data sets that are still here."""
    for name in data:
        path = Path(name).expanduser() / "train.jsonl"
        if path.is_file():
            yield from read_rows(path, skip_broken=True)
