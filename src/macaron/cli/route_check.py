"""`macaron adapter route-check`: what a newcomer wins and what the others lose, measured by the running service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from macaron.cli.adapter_service import PATH, AsJson, Tenant, print_json
from macaron.cli.connect import DEFAULT_URL, Url, client, expect, read_json
from macaron.errors import MacaronError, Unavailable
from macaron.registry.verdict import MARGIN

SILENCE_SECONDS = 660.0
"""Longer than a hop of the check waits behind live ones."""

LINE_BYTES = 4_194_304

EXAMPLES = """Examples:

  macaron adapter route-check L4 --examples poems.jsonl

  macaron adapter route-check L4@sha256:0123456789ab --examples poems.jsonl
      --data heldout.jsonl --margin 0.01

  macaron adapter route-check L0 --json

A line of an examples' file is {"text": "a request that L4 should get"}. The
status is 1 where the check fails; `macaron adapter promote` refuses then."""

Advance = Callable[[int, int], None]


def route_check(
    label: Annotated[str, typer.Argument(metavar="LABEL[@REV]", help="A label, and the revision if not the newest.")],
    examples: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Requests that the newcomer should get.")
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="More rows with their labels, beside the profile's own; may be repeated."),
    ] = None,
    margin: Annotated[float, typer.Option(help="Share of its rows that a label may lose.")] = MARGIN,
    tenant: Tenant = None,
    as_json: AsJson = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Measure what a newcomer wins and what the others lose, on the running service, behind its live requests."""
    name, _, revision = label.partition("@")
    body: dict[str, Any] = {"rows": _rows(name, examples, data or ()), "margin": margin}
    if revision:
        body["revision"] = revision if revision.startswith("sha256:") else f"sha256:{revision}"
    if tenant is not None:
        body["tenant"] = tenant
    found = asyncio.run(_checked(url, name, body))
    if as_json:
        print_json(found["verdict"])
    else:
        _show(found["verdict"])
    if not found["verdict"]["passed"]:
        raise typer.Exit(1)


def _rows(label: str, examples: Path | None, data: Sequence[Path]) -> list[dict[str, Any]]:
    from macaron.train.data.examples import read_examples

    files = [(path, "") for path in data]
    if examples is not None:
        files.insert(0, (examples, label))
    return [
        {"messages": row.messages, "label": row.label, "place": f"{path}, line {row.id.rpartition(':')[2]}"}
        for path, whose in files
        for row in read_examples(path.expanduser(), whose)
    ]


async def _checked(url: str, label: str, body: Mapping[str, Any]) -> dict[str, Any]:
    columns = (TextColumn("routing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("routing", total=None)
        return await _asked(url, label, body, lambda done, total: bars.update(bar, completed=done, total=total))


async def _asked(url: str, label: str, body: Mapping[str, Any], advance: Advance) -> dict[str, Any]:
    limits = aiohttp.ClientTimeout(total=None, sock_read=SILENCE_SECONDS)
    async with (
        client(url) as session,
        session.post(f"{PATH}/{label}/route-check", json=body, timeout=limits, read_bufsize=LINE_BYTES) as response,
    ):
        if response.status != 200:
            expect(response, await read_json(response))
        async for line in response.content:
            match msgspec.json.decode(line):
                case {"done": int(done), "total": int(total)}:
                    advance(done, total)
                case {"verdict": dict(), "entry": dict()} as found:
                    return dict(found)
                case {"error": {"message": str(message), "code": code}}:
                    raise MacaronError(message, code=code)
    raise Unavailable(f"The service at {url} ended the check without a verdict; its log says why.")


def _show(verdict: Mapping[str, Any]) -> None:
    console = Console()
    table = Table("", "rows", "right before", "lost", "95 %", "gained", "lost to", box=None)
    for loss in verdict["losses"]:
        lost = loss["lost"]
        to = ", ".join(f"{name} {count}" for name, count in loss["to"].items())
        numbers = (lost["n"], loss["right"], f"{lost['count']} ({_rate(lost)})", _interval(lost), loss["gained"], to)
        table.add_row(loss["label"], *map(str, numbers))
    if verdict["losses"]:
        console.print(table)
    if (won := verdict["won"]) is not None and won["n"]:
        counted = f"{won['count']} of its {won['n']} examples"
        console.print(Text(f"{verdict['label']} wins {counted} ({_rate(won)}, 95 % {_interval(won)})"))
    passed = verdict["passed"]
    console.print(Text(f"{'passed' if passed else 'failed'}: {verdict['detail']}", "green" if passed else "bold red"))


def _rate(share: Mapping[str, Any]) -> str:
    return f"{100 * share['count'] / share['n']:.1f} %"


def _interval(share: Mapping[str, Any]) -> str:
    return f"{100 * share['low']:.1f}-{100 * share['high']:.1f} %"
