"""`macaron experience`: the turns that a service recorded for training."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any, cast

import msgspec
import typer
from rich.console import Console
from rich.table import Column, Table

from macaron.cli.paths import store_url
from macaron.errors import ConfigError, NotFound
from macaron.experience import ExperienceFile, ReactionKind, Turn, Wanted, experience_path
from macaron.hcp import load
from macaron.profiles import find_profile
from macaron.store import database_path

app = typer.Typer(
    name="experience",
    no_args_is_help=True,
    help="Look at the turns that a service recorded for training, export them, delete them.",
)

_LIST_EXAMPLES = """Examples:

  macaron experience list

  macaron experience list --tenant acme --profile ./mine

A service records where its contract says so:

  [[experience.tenants]]

  tenant = "acme"

  consent = "contract of 2026-11-01, section 4"

  licence = "LicenseRef-acme"        may be left out"""

_SHOW_EXAMPLES = """Examples:

  macaron experience show chatcmpl-0123456789abcdef

  macaron experience show chatcmpl-0123456789abcdef --json"""

_EXPORT_EXAMPLES = """Examples:

  macaron experience export --out turns.jsonl

  macaron experience export --label L2 --reaction next --status completed > turns.jsonl

One JSON object a line: the record, the consent, what followed. Personal data is
replaced; where that happened the tokens, which spell it out, are left out.
`macaron data build` takes recorded turns without an export: see `turns` of a source."""

_DELETE_EXAMPLES = """Examples:

  macaron experience delete --tenant acme --session sess_0123456789abcdef

  macaron experience delete --tenant acme --yes

It may be used while the service runs; turns that end later are recorded."""

Profile = Annotated[str, typer.Option(help="The profile that is served.")]
Store = Annotated[str, typer.Option(help="The service's --store, where it was given one.")]
Tenants = Annotated[list[str] | None, typer.Option("--tenant", help="Only this tenant's; may be repeated.")]
Sessions = Annotated[list[str] | None, typer.Option("--session", help="Only this session; may be repeated.")]
Labels = Annotated[list[str] | None, typer.Option("--label", help="Only answers of this label; may be repeated.")]
Reactions = Annotated[
    list[str] | None, typer.Option("--reaction", help="Only where this followed: next, tools, retried or none.")
]
Statuses = Annotated[
    list[str] | None, typer.Option("--status", help="Only completed, incomplete, cancelled or failed answers.")
]


@app.command("list", epilog=_LIST_EXAMPLES)
def list_all(
    tenant: Annotated[str, typer.Option(help="Only this tenant's.")] = "",
    n: Annotated[int, typer.Option("--n", min=1, max=100_000, help="How many sessions.")] = 50,
    profile: Profile = "demi",
    store: Store = "",
) -> None:
    """List the sessions of which turns are recorded, the latest first."""
    numbers = (Column(name, justify="right") for name in ("turns", "answers", "KiB"))
    table = Table("tenant", Column("session", overflow="fold"), "labels", *numbers, "last", box=None, pad_edge=False)
    with _opened(profile, store) as file:
        totals = file.totals()
        for item in file.sessions(tenant, n):
            last = time.strftime("%Y-%m-%d %H:%M", time.localtime(item.last))
            figures = (str(item.turns), str(item.answers), f"{item.bytes / 1024:.1f}")
            table.add_row(item.tenant, item.session, item.labels.replace(",", " "), *figures, last)
    console = Console(markup=False, highlight=False)
    if table.row_count:
        console.print(table)
    console.print(f"{totals.turns} answers, {totals.bytes / 1_048_576:.1f} MiB in all")


@app.command(epilog=_SHOW_EXAMPLES)
def show(
    response: Annotated[str, typer.Argument(metavar="RESPONSE_ID", help="The id of the answer.")],
    as_json: Annotated[bool, typer.Option("--json", help="The whole record as JSON, personal data included.")] = False,
    profile: Profile = "demi",
    store: Store = "",
) -> None:
    """Show one recorded answer."""
    with _opened(profile, store) as file:
        turn = file.find(response)
    if turn is None:
        raise NotFound(f"{response!r} is not recorded; `macaron experience list` shows what is", param="response_id")
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(turn), indent=2).decode())
        return
    console = Console(markup=False, highlight=False)
    for name, value in _facts(turn):
        console.print(f"{name:10} {value}")
    from macaron.train.data.render import visible

    for message in turn.record.messages:
        console.print(f"\n{message.get('role')}: {visible(str(message.get('content') or ''))}")
    console.print(f"\nanswer: {visible(turn.record.answer.text)}", style="bold")
    for call in turn.record.answer.calls:
        console.print(f"calls {visible(call.name)}({visible(call.arguments)})", style="bold")
    if turn.reaction.text:
        console.print(f"\nthen the user: {visible(turn.reaction.text)}")


@app.command(epilog=_EXPORT_EXAMPLES)
def export(
    out: Annotated[Path | None, typer.Option(help="File to write; standard output if left out.")] = None,
    tenant: Tenants = None,
    session: Sessions = None,
    label: Labels = None,
    reaction: Reactions = None,
    status: Statuses = None,
    profile: Profile = "demi",
    store: Store = "",
) -> None:
    """Write recorded turns as JSON lines, without personal data."""
    from macaron.train.data.export import exported

    wanted = _wanted(tenant, session, label, reaction, status)
    count = 0
    with _opened(profile, store) as file, _written(out) as target:
        for turn in file.turns(wanted):
            target.write(msgspec.json.encode(exported(turn)) + b"\n")
            count += 1
    if out is not None:
        typer.echo(f"{count} answers are in {out}")


@app.command(epilog=_DELETE_EXAMPLES)
def delete(
    tenant: Annotated[str, typer.Option(help="Whose turns.")],
    session: Annotated[str, typer.Option(help="Only this session of the tenant, as `list` shows it.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    profile: Profile = "demi",
    store: Store = "",
) -> None:
    """Delete what is recorded of a tenant or a session, and overwrite it in the file."""
    what = f"session {session} of tenant {tenant}" if session else f"everything of tenant {tenant}"
    if not yes:
        typer.confirm(f"Delete {what}?", abort=True)
    with _opened(profile, store, writable=True) as file:
        gone = file.delete(tenant, session)
    typer.echo(f"{gone} answers deleted: {what}")


def _opened(profile: str, store: str, *, writable: bool = False) -> ExperienceFile:
    database = database_path(store_url(load(find_profile(profile)), store))
    if database is None:
        raise ConfigError("a store in memory has no recorded turns; name the service's file with --store")
    return ExperienceFile(experience_path(database), writable=writable)


@contextmanager
def _written(out: Path | None) -> Iterator[IO[bytes]]:
    if out is None:
        yield typer.get_binary_stream("stdout")
        return
    from macaron.models.files import explained

    with explained(out), out.open("wb") as file:
        yield file


def _wanted(
    tenants: list[str] | None,
    sessions: list[str] | None,
    labels: list[str] | None,
    reactions: list[str] | None,
    statuses: list[str] | None,
) -> Wanted:
    given = {
        "tenants": tenants,
        "sessions": sessions,
        "labels": labels,
        "reactions": reactions,
        "statuses": statuses,
    }
    try:
        return msgspec.convert({name: value or [] for name, value in given.items()}, Wanted)
    except msgspec.ValidationError as error:
        known = ", ".join(cast(Any, ReactionKind).__args__)
        raise ConfigError(
            f"{error}; reactions are {known}, statuses completed, incomplete, cancelled, failed"
        ) from None


def _facts(turn: Turn) -> Iterator[tuple[str, str]]:
    record = turn.record
    hops = ", ".join(f"{hop.kind} {hop.label} {hop.seconds:.2f} s" for hop in record.hops)
    options = {name: value for name, value in record.options.items() if name != "tools"}
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
    yield "answer", f"{record.id} ({record.status}), {when}"
    yield "tenant", f"{record.tenant}, session {record.session}"
    yield "consent", turn.consent.consent + (f" ({turn.consent.licence})" if turn.consent.licence else "")
    yield "label", f"{record.label} ({record.reason}), {record.revision}"
    yield "contract", f"{record.contract}, generation {record.generation}"
    yield "hops", hops
    yield "options", msgspec.json.encode(options).decode()
    sure = f", mean log-probability {sum(record.logprobs) / len(record.logprobs):.3f}" if record.logprobs else ""
    yield "tokens", f"{len(record.prompt_ids)} of the prompt, {len(record.ids)} sampled{sure}"
    yield "then", turn.reaction.kind
