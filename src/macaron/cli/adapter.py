"""`macaron adapter`: adapters as files, and in a service."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from macaron.cli import adapter_service, route_check
from macaron.cli.progress import progress_bar
from macaron.errors import MacaronError
from macaron.hcp import Loaded, load
from macaron.profiles import find_profile
from macaron.profiles.fingerprint import profile_base, profile_limits
from macaron.registry.check import Effect, Finding, Report, check_adapter, effect_finding

CANDIDATE = "candidate"
PROBE_CONTEXT = 512
STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}

app = typer.Typer(
    name="adapter",
    no_args_is_help=True,
    help="Check adapters (one LoRA each, in PEFT's format), and plug them into a running service.",
)
app.command(epilog=adapter_service.REGISTER_EXAMPLES)(adapter_service.register)
app.command("list")(adapter_service.list_adapters)
app.command()(adapter_service.show)
app.command(epilog=route_check.EXAMPLES)(route_check.route_check)
app.command()(adapter_service.promote)
app.command()(adapter_service.shadow)
app.command()(adapter_service.canary)
app.command()(adapter_service.rollback)
app.command()(adapter_service.disable)
app.command()(adapter_service.enable)
app.command()(adapter_service.drain)
app.command()(adapter_service.remove)

CHECK_EXAMPLES = """Examples:

  macaron adapter check runs/L4-1/adapter

  macaron adapter check ./adapter --profile ./mine --no-probe

  macaron adapter check ./adapter --json

The status is 1 where anything forbids to serve it. The probe starts the
embedded engine for some seconds and measures whether the adapter moves it."""


@app.callback()
def _group() -> None:
    return


@app.command(epilog=CHECK_EXAMPLES)
def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the adapter, in PEFT's format.")],
    profile: Annotated[str, typer.Option(help="Profile whose base it is for: name, folder or file.")] = "demi",
    probe: Annotated[bool, typer.Option(help="Whether to measure its effect on the engine.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check an adapter against a profile's base: everything that is wrong at once, each with its remedy."""
    loaded = load(find_profile(profile))
    with progress_bar(Console(stderr=True)) as progress:
        base = profile_base(loaded, progress=progress)
    place = _place(folder)
    report = check_adapter(place, base, profile_limits(loaded))
    if probe:
        report = msgspec.structs.replace(report, findings=(*report.findings, _probed(loaded, place, report)))
    if as_json:
        text = msgspec.json.encode({"ok": report.ok, **msgspec.structs.asdict(report)})
        typer.echo(msgspec.json.format(text, indent=1).decode())
    else:
        _print(report, folder)
    if not report.ok:
        raise typer.Exit(1)


def _place(folder: Path) -> Path:
    """The full path: the way there is the user's own word, only the folder itself must not be a link."""
    path = folder.expanduser()
    return path.resolve() if path.name in ("", "..") else path.parent.resolve() / path.name


def _probed(loaded: Loaded, folder: Path, report: Report) -> Finding:
    if not report.ok:
        reason = "The engine was not asked, since there are errors."
        return Finding("note", "probe_skipped", "probe", "", reason, "Correct them first.")
    if loaded.contract.engine.kind != "llamacpp":
        reason = f"Only the embedded engine is started for a probe; this profile's is {loaded.contract.engine.kind}."
        return Finding("note", "probe_skipped", "probe", "", reason, "Registration probes the running engine.")
    try:
        return effect_finding(asyncio.run(_effect(loaded, folder)))
    except MacaronError as problem:
        return Finding("error", "probe_failed", "probe", "", problem.message, "See what the engine says of it.")


async def _effect(loaded: Loaded, folder: Path) -> Effect:
    from macaron.evals.subjects import open_subjects
    from macaron.mol.probe import EngineProbe

    async with open_subjects(loaded, {CANDIDATE: folder}, parallel=1, slot_context=PROBE_CONTEXT) as subjects:
        return await EngineProbe(subjects.engine).effect(CANDIDATE)


def _print(report: Report, folder: Path) -> None:
    console = Console()
    if report.findings:
        table = Table("", "what", Column("finding", overflow="fold"), Column("remedy", overflow="fold"), box=None)
        for item in report.findings:
            where = Text(item.field, overflow="fold") + Text(f"\n{item.value}" if item.value else "", "dim")
            said = Text(item.message) + Text(f" [{item.code}]", "dim")
            table.add_row(Text(item.severity, STYLES[item.severity]), where, said, Text(item.remedy))
        console.print(table)
    for name, value in _facts(report):
        console.print(Text(f"{name:>10}  {value}"), soft_wrap=True)
    counts = ", ".join(f"{report.count(kind)} {kind}s" for kind in ("error", "warning", "note"))
    verdict = "can be registered" if report.ok else "cannot be registered"
    console.print(Text(f"{folder} {verdict}: {counts}", "green" if report.ok else "bold red"), soft_wrap=True)


def _facts(report: Report) -> list[tuple[str, str]]:
    alpha = f"{report.alpha:g}" if report.alpha is not None else "unknown"
    run = report.provenance
    facts = [
        ("revision", report.revision),
        ("base", report.base_fingerprint),
        ("rank", f"{report.rank}, alpha {alpha}" if report.rank else ""),
        ("values", f"{report.values:,} {report.dtype}" if report.values else ""),
        ("targets", " ".join(report.targets)),
        ("licence", report.licence),
        ("run", f"{run.run} of {run.created}, {len(run.data)} data sets" if run else ""),
    ]
    return [(name, value) for name, value in facts if value]
