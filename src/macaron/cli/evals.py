"""`macaron evals`: how good a model is, on cases it has not seen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from macaron.hcp import Loaded, load
from macaron.profiles import find_profile

if TYPE_CHECKING:
    from macaron.evals.routing import Progress as Report
    from macaron.evals.run_suite import SuiteReport

ProfileOption = Annotated[str, typer.Option("--profile", help="A profile's name, its folder, or its profile.toml.")]
AdaptersOption = Annotated[
    list[str] | None,
    typer.Option(
        help="[NAME=]PATH of a GGUF file, a PEFT folder, a run, or a folder of these; default: the profile's."
    ),
]
OutOption = Annotated[Path | None, typer.Option(help="Folder for results; a stopped run goes on from it.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

ROUTING_EXAMPLES = """Examples:

  macaron evals routing held_out.jsonl

  macaron evals routing held_out.jsonl --base --baseline train.jsonl

  macaron evals routing held_out.jsonl --adapters runs/L0-1 --json

Each line of the data has `messages`, `label` and `source`."""

TASKS_EXAMPLES = """Examples:

  macaron evals tasks --suite tools

  macaron evals tasks --suite code --subjects base,L2 --out results

Every subject gets the identity of the specialist for the suite's kind:
they differ by adapter and examples only."""

CHAT_EXAMPLES = """Examples:

  macaron evals chat held_out.jsonl

  macaron evals chat --adapters runs/L0-1

Without dialogues only the ten questions about itself are asked."""


REPORT_EXAMPLES = """Examples:

  macaron evals report results

  macaron evals report results --document docs/demi.md"""


def build() -> typer.Typer:
    """The group of commands."""
    from macaron.cli.evals_diagnose import EXAMPLES as DIAGNOSE_EXAMPLES
    from macaron.cli.evals_diagnose import diagnose

    app = typer.Typer(name="evals", no_args_is_help=True, help="Measure a model on cases it has not seen.")
    app.command(epilog=ROUTING_EXAMPLES)(routing)
    app.command(epilog=TASKS_EXAMPLES)(tasks)
    app.command(epilog=CHAT_EXAMPLES)(chat)
    app.command(epilog=DIAGNOSE_EXAMPLES)(diagnose)
    app.command(epilog=REPORT_EXAMPLES)(report)
    return app


def routing(
    data: Annotated[list[Path] | None, typer.Argument(help="JSON Lines files of rows.")] = None,
    profile: ProfileOption = "demi",
    adapters: AdaptersOption = None,
    surface_briefs: Annotated[
        list[Path] | None, typer.Option(help="Plain briefs, each wrapped as a request that carries a surface.")
    ] = None,
    newcomer: Annotated[
        Path | None, typer.Option(help="TOML of a card that the router does not know, and requests for it.")
    ] = None,
    base: Annotated[bool, typer.Option("--base", help="Ask the bare base too.")] = False,
    baseline: Annotated[
        list[Path] | None, typer.Option(help="Rows to train TF-IDF and logistic regression on, as a yardstick.")
    ] = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how often the entry specialist chooses the right label."""
    from macaron.evals.newcomer import read_newcomer
    from macaron.evals.report import routing_tables
    from macaron.evals.results import Results
    from macaron.evals.rows import read_route_rows, read_surface_rows
    from macaron.evals.run_routing import evaluate_routing, routing_json
    from macaron.registry.cards import registry_from

    loaded = load(find_profile(profile))
    labels, entry = [item.label for item in loaded.contract.mol.adapters], loaded.contract.mol.entry
    rows = [*read_route_rows(data or [], labels, entry), *read_surface_rows(surface_briefs or [])]
    registry = registry_from(loaded)
    if newcomer is not None:
        registry, more = read_newcomer(newcomer, registry)
        rows += more
    training = read_route_rows(baseline, labels, entry, mixed=True) if baseline else []
    files = chosen_adapters(loaded, adapters)
    with Results(out and out / "routing.jsonl") as results, progress_bars(Console(stderr=True)) as progress:
        work = evaluate_routing(loaded, rows, files, results, progress, base=base, training=training, registry=registry)
        report = asyncio.run(work)
    _show(routing_json(report), routing_tables(report), out and out / "routing.json", as_json)


def tasks(
    suite: Annotated[str, typer.Option(help="One of tools, code, ui.")],
    subjects: Annotated[
        str, typer.Option(help="Names with commas between; default: base, base+examples and every adapter.")
    ] = "",
    profile: ProfileOption = "demi",
    adapters: AdaptersOption = None,
    briefs: Annotated[Path | None, typer.Option(help="For ui: a JSON Lines file of briefs by others.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Only the first so many cases; 0 for all.")] = 0,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a suite of tasks to the base and to adapters, and compare them."""
    from macaron.evals.results import Results
    from macaron.evals.run_suite import evaluate_suite
    from macaron.evals.subjects import BASE, EXAMPLES
    from macaron.evals.suites import HEADS, open_suite
    from macaron.train.data.packages import WheelPackages

    opened = open_suite(suite, WheelPackages(), briefs)
    loaded = load(find_profile(profile))
    files = chosen_adapters(loaded, adapters)
    names = [name.strip() for name in subjects.split(",") if name.strip()] or [BASE, EXAMPLES, *files]
    with Results(out and out / f"{suite}.jsonl") as results, progress_bars(Console(stderr=True)) as progress:
        report = asyncio.run(evaluate_suite(loaded, opened, names, HEADS[suite], files, results, progress, limit=limit))
    _show_suite(report, out, as_json)


def chat(
    data: Annotated[list[Path] | None, typer.Argument(help="JSON Lines files of held-out dialogues.")] = None,
    profile: ProfileOption = "demi",
    adapters: AdaptersOption = None,
    limit: Annotated[int, typer.Option(min=0, help="Only the first so many dialogues; 0 for all.")] = 0,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure whether the entry specialist still talks as well as the base, and knows who it is."""
    from macaron.evals.chat import evaluate_chat
    from macaron.evals.report import chat_tables
    from macaron.evals.results import Results
    from macaron.evals.rows import read_sft_rows

    loaded = load(find_profile(profile))
    rows = read_sft_rows(data)[: limit or None] if data else []
    files = chosen_adapters(loaded, adapters)
    with Results(out and out / "identity.jsonl") as results, progress_bars(Console(stderr=True)) as progress:
        report = evaluate_chat(loaded, rows, files, results, progress)
    _show(report.as_json(), chat_tables(report), out and out / "chat.json", as_json)


def report(
    results: Annotated[Path, typer.Argument(help="The folder that was --out of the other commands.")],
    profile: ProfileOption = "demi",
    document: Annotated[
        Path | None, typer.Option(help="A Markdown file with marks between which the tables are written.")
    ] = None,
) -> None:
    """Write what was measured as Markdown tables."""
    from macaron.evals.adapters import profile_adapters
    from macaron.evals.document import numbers, write_numbers

    text = numbers(results, profile_adapters(load(find_profile(profile))))
    if document is None:
        typer.echo(text)
    else:
        write_numbers(document, text)


def _show_suite(report: SuiteReport, out: Path | None, as_json: bool) -> None:
    from macaron.evals.report import suite_tables

    _show(report.as_json(), suite_tables(report), out and out / f"{report.suite}.json", as_json)


def _show(summary: dict[str, Any], tables: Group, path: Path | None, as_json: bool) -> None:
    """Keep a summary where results are kept, and print it."""
    text = json.dumps(summary, ensure_ascii=False, indent=1)
    if path is not None:
        path.write_text(text + "\n", encoding="utf-8")
    if as_json:
        typer.echo(text)
    else:
        Console(markup=False, highlight=False).print(tables)


def chosen_adapters(loaded: Loaded, values: list[str] | None) -> dict[str, Path]:
    """Those of the command line, or the profile's own."""
    from macaron.evals.adapters import named_adapters, profile_adapters

    return named_adapters(values) if values else profile_adapters(loaded)


@contextmanager
def progress_bars(console: Console) -> Iterator[Report]:
    """A bar a subject: cases done, time left. Nothing is drawn where there is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}

        def report(subject: str, done: int, total: int) -> None:
            if subject not in tasks:
                tasks[subject] = bars.add_task(subject, total=total)
            bars.update(tasks[subject], completed=done, total=total)

        yield report
