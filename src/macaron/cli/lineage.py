"""`macaron lineage`: where an answer or an adapter comes from."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

from macaron.cli.paths import store_url
from macaron.hcp import load
from macaron.profiles import find_profile
from macaron.registry.cards import registry_from
from macaron.store import database_path

if TYPE_CHECKING:
    from macaron.lineage import Lineage, RunLine

EXAMPLES = """Examples:

  macaron lineage chatcmpl-0123456789abcdef     an answer: its revision, run, data, turns

  macaron lineage L2                            an adapter by its label; or L4@8f3c01d2a4b5,

                                                a revision, or the adapter's folder

  macaron lineage L2 --profile ./mine --runs experiments --json"""

SHOWN_TURNS = 10


def lineage(
    name: Annotated[str, typer.Argument(metavar="RESPONSE_ID|ADAPTER", help="An answer's id, or an adapter.")],
    profile: Annotated[str, typer.Option(help="The profile that is served.")] = "demi",
    store: Annotated[str, typer.Option(help="The service's --store, where it was given one.")] = "",
    runs: Annotated[Path, typer.Option(help="The folder that holds the training runs.")] = Path("runs"),
    data: Annotated[Path, typer.Option(help="The folder that holds the data sets.")] = Path("data"),
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Follow an answer or an adapter to its run, data and recorded turns, and a recorded answer to what it fed."""
    from macaron.lineage import Places, trace

    loaded = load(find_profile(profile))
    places = Places(loaded, registry_from(loaded), database_path(store_url(loaded, store)), runs, data)
    found = trace(name, places)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    console = Console(markup=False, highlight=False, soft_wrap=True)
    for line in _lines(found):
        console.print(line)


def _lines(found: Lineage) -> Iterator[str]:
    if (answer := found.answer) is not None:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(answer.created))
        yield f"answer    {answer.id} ({answer.status}), {when}, tenant {answer.tenant}, session {answer.session}"
        yield f"          contract {answer.contract}, generation {answer.generation}"
        yield f"          {'recorded' if answer.recorded else 'not recorded'}"
    if (adapter := found.adapter) is not None:
        yield f"adapter   {' '.join(adapter.labels) or 'no label'}, {adapter.revision}"
        yield from (f"          in {place}" for place in adapter.places)
        counted = [("in the store", adapter.answers), ("recorded", adapter.recorded)]
        counts = ", ".join(f"{count} {where}" for where, count in counted if count is not None)
        yield f"          answers: {counts or 'no store here'}"
    for run in found.runs:
        yield from _run(run)
    if found.turns:
        kept = sum(turn.kept for turn in found.turns)
        yield f"turns     trained on {len(found.turns)} recorded answers, {kept} of them still kept"
        yield from (f"          {turn.id}{'' if turn.kept else ' (gone)'}" for turn in found.turns[:SHOWN_TURNS])
    for folder in found.sets:
        yield f"fed       data set {folder}"
    for run in found.fed:
        yield f"fed       run {run.id}, {run.path}: {run.revision or run.status}"
    for problem in found.problems:
        yield f"unknown   {problem}"


def _run(run: RunLine) -> Iterator[str]:
    yield f"run       {run.id} ({run.status}), {run.created}, {run.path}"
    for item in run.data:
        yield f"  data    {item.path}, {item.sha256[:19]}{'' if item.known else ' (not here any more)'}"
        for source in item.sources:
            turns = f", {source.turns} recorded answers" if source.turns else ""
            yield f"    {source.name}: {source.rows} rows, {source.licence}{turns}, from {source.origin}"
            yield from (f"      consent of {consent}" for consent in source.consents)
