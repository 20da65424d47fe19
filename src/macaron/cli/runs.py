"""`macaron runs`: the runs that training left, listed, looked at and compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from macaron.errors import ConfigError

if TYPE_CHECKING:
    from macaron.evals.cases import Evaluations
    from macaron.train.runs.read import Run

app = typer.Typer(
    name="runs",
    no_args_is_help=True,
    help="List, look at and compare training runs.",
)

_LIST_EXAMPLES = """Examples:

  macaron runs list

  macaron runs list --root experiments"""

_SHOW_EXAMPLES = """Examples:

  macaron runs show runs/code

  macaron runs show L2-20261130T1415      the beginning of an id is enough"""

_COMPARE_EXAMPLES = """Examples:

  macaron runs compare runs/code runs/code-rank16

  macaron runs compare runs/code runs/code-rank16 --html compare.html

Cases are paired where both runs have the evaluation in their folder `evals`."""

_EXPORT_EXAMPLES = """Examples:

  macaron runs export runs/code --mlflow http://127.0.0.1:5000

  macaron runs export runs/code --mlflow sqlite:///mlflow.db"""

SHOWN_CASES = 10
PAGE_CASES = 200

Root = Annotated[Path, typer.Option(help="The folder that holds the runs.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run's folder, its id, or the beginning of it.")]


@app.command("list", epilog=_LIST_EXAMPLES)
def list_all(root: Root = Path("runs")) -> None:
    """List the runs in a folder, oldest first, broken and interrupted ones too."""
    from macaron.train.runs.compare import overview
    from macaron.train.runs.read import list_runs
    from macaron.train.runs.terminal import terminal

    runs = list_runs(root)
    if not runs:
        typer.echo(f"There are no runs in {root} yet; `macaron train sft` makes one.")
        return
    Console().print(terminal([overview(runs)]))


@app.command(epilog=_SHOW_EXAMPLES)
def show(run: RunName, root: Root = Path("runs")) -> None:
    """Show a run: what it was, its configuration and data, its curves and evaluations."""
    from macaron.evals.case_blocks import accuracies
    from macaron.train.runs.compare import described
    from macaron.train.runs.terminal import terminal

    found, evaluations = _read(run, root)
    Console().print(terminal([*described(found), *accuracies(evaluations)]))


@app.command(epilog=_COMPARE_EXAMPLES)
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A run's folder, its id, or the beginning of it.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The run to compare it with.")],
    html: Annotated[Path | None, typer.Option(help="Write one page with plots and outputs to this file.")] = None,
    root: Root = Path("runs"),
) -> None:
    """Show two runs side by side: what differs first, then data, curves, and the cases only one of them passes."""
    from macaron.evals.case_blocks import changed, outputs, unreadable
    from macaron.evals.cases import changes
    from macaron.train.runs.compare import side_by_side
    from macaron.train.runs.page import page
    from macaron.train.runs.terminal import terminal

    (left, first), (right, second) = _read(a, root), _read(b, root)
    found = list(changes(first, second, (_label(left), _label(right))))
    blocks = [*unreadable(first), *unreadable(second), *side_by_side(left, right)]
    if html is None:
        Console().print(terminal([*blocks, *changed(found, cases=SHOWN_CASES)]))
        return
    whole = [*changed(found, cases=PAGE_CASES), *blocks, *outputs(found, cases=PAGE_CASES)]
    _write(html, page(f"{left.name} and {right.name}", whole))
    typer.echo(f"{html} is written; open it in a browser.")


@app.command(epilog=_EXPORT_EXAMPLES)
def export(
    run: RunName,
    mlflow: Annotated[str, typer.Option(help="URI of an MLflow server or store.")],
    experiment: Annotated[str, typer.Option(help="MLflow's experiment.")] = "macaron",
    root: Root = Path("runs"),
) -> None:
    """Copy a run's settings, curves and results to MLflow."""
    from macaron.train.runs.mlflow import export_run

    found, evaluations = _read(run, root)
    passed = {
        f"{name}/{subject}": sum(result.passed for result in results) / len(results)
        for name, subjects in evaluations.results.items()
        for subject, results in subjects.items()
    }
    typer.echo(f"{found.name} is run {export_run(found, passed, mlflow, experiment)} of experiment {experiment}.")


def _read(name: str, root: Path) -> tuple[Run, Evaluations]:
    from macaron.evals.cases import read_evaluations
    from macaron.train.runs.read import find_run, read_run

    path = find_run(name, root)
    return read_run(path), read_evaluations(path / "evals")


def _label(run: Run) -> str:
    return run.record.label if run.record is not None else ""


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}; choose another --html", param="html") from None
