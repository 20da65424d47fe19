"""`macaron adapter register` and the other verbs that talk to a running service."""

from __future__ import annotations

import asyncio
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from macaron.cli.connect import ANSWER_SECONDS, DEFAULT_URL, Url, client, expect, read_json
from macaron.errors import ConfigError, MacaronError
from macaron.registry.vault.layout import KNOWN

PATH = "/v1/admin/adapters"
WAIT_SECONDS = 600.0
POLL_SECONDS = 0.25
DIGITS = 19

Label = Annotated[str, typer.Argument(metavar="LABEL", help="Its routing name, such as L4.")]
Tenant = Annotated[
    str | None, typer.Option(help="Whose it is; yours by default, or everybody's with the operator's key.")
]
Revision = Annotated[str, typer.Option(help="sha256: and at least 12 digits, as `show` prints it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

REGISTER_EXAMPLES = """Examples:

  macaron adapter register runs/L4-1/adapter --label L4 --name Poet
      --description "writes poems" --boundary "no code" --prompt poet.md

  macaron adapter register runs/L1-2/adapter --label L1 --override

It is loaded beside what runs and proved by a probe; nobody is routed to it
before `macaron adapter promote`."""


def register(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the adapter, in PEFT's format.")],
    label: Annotated[str, typer.Option(help="Its routing name: a capital letter, then letters and digits.")],
    name: Annotated[str, typer.Option(help="Its name, for people.")] = "",
    description: Annotated[str, typer.Option(help="What it does, in one sentence for the router.")] = "",
    boundary: Annotated[str, typer.Option(help="What it does not do, for the router.")] = "",
    prompt: Annotated[Path | None, typer.Option(help="File with its identity.")] = None,
    tenant: Tenant = None,
    override: Annotated[bool, typer.Option(help="It is meant for a label that is there already.")] = False,
    note: Annotated[str, typer.Option(help="For people.")] = "",
    by_path: Annotated[bool, typer.Option(help="The service reads DIR itself; it must lie below a root.")] = False,
    wait: Annotated[bool, typer.Option(help="Wait until the engine has proved it.")] = True,
    url: Url = DEFAULT_URL,
) -> None:
    """Register an adapter with a running service, as a candidate."""
    card = {"name": name, "description": description, "boundary": boundary, "identity": _text(prompt)}
    fields = {"label": label, "override": override, "note": note, **card}
    if tenant is not None:
        fields["tenant"] = tenant
    entry = asyncio.run(_register(url, folder.expanduser().resolve(), fields, by_path=by_path, wait=wait))
    _show(entry)
    engine = entry["revisions"][-1]["engine"]
    if wait and engine and engine["state"] == "failed":
        raise MacaronError(f"The engine does not use it: {engine['reason']}", code="not_proved")


def list_adapters(as_json: AsJson = False, url: Url = DEFAULT_URL) -> None:
    """List the registered adapters that you may see."""
    said = asyncio.run(_call(url, "GET", ""))
    if as_json:
        print_json(said)
        return
    table = Table("label", "whose", "live", Column("revisions", overflow="fold"), "", box=None)
    for entry in said["data"]:
        states = ", ".join(f"{item['revision'][7:DIGITS]} {_state(item)}" for item in entry["revisions"])
        live = entry["live"][7:DIGITS] or ("the profile's" if entry["profile"] else "-")
        off = "disabled" if entry["disabled"] else ""
        table.add_row(*map(Text, (entry["label"], entry["tenant"] or "everybody", live, states, off)))
    console = Console()
    console.print(table if said["data"] else "No adapters are registered.")
    engine = said["engine"]
    pause = (
        "" if engine["pause_seconds"] is None else f", requests waited {engine['pause_seconds']:.2f} s at its change"
    )
    console.print(Text(f"generation {said['generation']}, engine {engine['replica'] or 'without adapters'}{pause}"))
    if engine["fault"]:
        console.print(Text(engine["fault"], "red"))


def show(label: Label, tenant: Tenant = None, as_json: AsJson = False, url: Url = DEFAULT_URL) -> None:
    """Show one label: its revisions, their probes and checks, and what the engine says."""
    query = {} if tenant is None else {"tenant": tenant}
    entry = asyncio.run(_call(url, "GET", f"/{label}", query=query))
    if as_json:
        print_json(entry)
    else:
        _show(entry)


def promote(
    label: Label,
    revision: Revision = "",
    waive_route_check: Annotated[str, typer.Option(metavar="REASON", help="Go on without a route check.")] = "",
    tenant: Tenant = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Make a revision the live one; the newest that waits for it, unless one is named."""
    _verb(url, label, "promote", tenant, revision=revision, waive_route_check=waive_route_check)


Share = Annotated[float, typer.Option(min=0.0, max=1.0, help="Above 0 and at most 1.")]


def shadow(
    label: Label, share: Share = 0.1, revision: Revision = "", tenant: Tenant = None, url: Url = DEFAULT_URL
) -> None:
    """Let a revision answer a share of the label's turns beside the live one, never shown; `show` compares."""
    _verb(url, label, "shadow", tenant, revision=revision, share=share)


def canary(
    label: Label,
    share: Share = 0.1,
    revision: Revision = "",
    waive_route_check: Annotated[str, typer.Option(metavar="REASON", help="Go on without a route check.")] = "",
    tenant: Tenant = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Let a revision answer the label's turns in a share of sessions; `show` compares."""
    _verb(url, label, "canary", tenant, revision=revision, share=share, waive_route_check=waive_route_check)


def rollback(label: Label, tenant: Tenant = None, url: Url = DEFAULT_URL) -> None:
    """Bring back what was live before, from the next turn on."""
    _verb(url, label, "rollback", tenant)


def disable(label: Label, tenant: Tenant = None, url: Url = DEFAULT_URL) -> None:
    """Let a label count as if it were not registered."""
    _verb(url, label, "disable", tenant)


def enable(label: Label, tenant: Tenant = None, url: Url = DEFAULT_URL) -> None:
    """Let a label count again."""
    _verb(url, label, "enable", tenant)


def drain(label: Label, revision: Revision, tenant: Tenant = None, url: Url = DEFAULT_URL) -> None:
    """Begin no new turn on a revision, and unload it when the last one has ended."""
    _verb(url, label, "drain", tenant, revision=revision)


def remove(label: Label, revision: Revision = "", tenant: Tenant = None, url: Url = DEFAULT_URL) -> None:
    """Forget a revision, or the whole label."""
    _verb(url, label, "remove", tenant, revision=revision)


def _verb(url: str, label: str, verb: str, tenant: str | None, **fields: str | float) -> None:
    body: dict[str, Any] = {name: value for name, value in fields.items() if value}
    if tenant is not None:
        body["tenant"] = tenant
    entry = asyncio.run(_call(url, "POST", f"/{label}/{verb}", body))
    if "revisions" in entry:
        _show(entry)
    else:
        typer.echo(f"{label} is removed.")


async def _call(
    url: str, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, str] | None = None
) -> dict[str, Any]:
    async with (
        client(url, timeout=ANSWER_SECONDS) as session,
        session.request(method, PATH + path, json=body, params=query) as response,
    ):
        return expect(response, await read_json(response))


async def _register(url: str, folder: Path, fields: dict[str, Any], *, by_path: bool, wait: bool) -> dict[str, Any]:
    if by_path:
        source = {"folder": str(folder)}
    else:
        with tempfile.TemporaryFile() as archive:
            _pack(folder, archive)
            archive.seek(0)
            async with client(url) as session, session.put(f"{PATH}/upload", data=archive) as response:
                source = {"revision": expect(response, await read_json(response), "revision")["revision"]}
    entry = await _call(url, "POST", "", {**fields, **source})
    if wait:
        async with asyncio.timeout(WAIT_SECONDS):
            while (entry["revisions"][-1]["engine"] or {}).get("state") not in ("ready", "failed"):
                await asyncio.sleep(POLL_SECONDS)
                entry = await _call(url, "GET", f"/{entry['label']}", query={"tenant": entry["tenant"]})
    return entry


def _pack(folder: Path, archive: IO[bytes]) -> None:
    """The adapter's files as a plain archive.

    Raises:
        ConfigError: they cannot be read.
    """
    try:
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as packed:
            for name in KNOWN:
                if (folder / name).is_file():
                    with (folder / name).open("rb") as file:
                        member = tarfile.TarInfo(name)
                        member.size = (folder / name).stat().st_size
                        packed.addfile(member, file)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {error.strerror}; give an adapter's folder.") from None


def _text(prompt: Path | None) -> str:
    if prompt is None:
        return ""
    try:
        return prompt.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--prompt {prompt} cannot be read: {error}.") from None


def _state(item: Mapping[str, Any]) -> str:
    engine = item["engine"]
    return str(item["state"]) + (f" ({engine['state']})" if engine and engine["state"] != "ready" else "")


def _show(entry: Mapping[str, Any]) -> None:
    console = Console()
    whose = entry["tenant"] or "everybody"
    console.print(Text(f"{entry['label']} of {whose}{', disabled' if entry['disabled'] else ''}", "bold"))
    for item in entry["revisions"]:
        engine, probed = item["engine"] or {}, item.get("probed", [])
        console.print(Text(f"  {item['revision'][:DIGITS]}  {_state(item)}"))
        effects = ", ".join(f"{probe['mean']:.3f}" for probe in probed if probe.get("mean") is not None)
        facts = {
            "does": (item["card"] or {}).get("description", ""),
            "engine": f"{item['engine_name']} {engine.get('reason', '')}".rstrip(),
            "withdrawn": item.get("withdrawn", ""),
            "effect": effects,
            "licence": item.get("licence", ""),
            "run": item.get("run", ""),
            "route check": _checked(item.get("route_check")),
            "trial": _compared(item["trial"]),
        }
        for name, value in facts.items():
            if value:
                console.print(Text(f"    {name:>11}  {value}"), soft_wrap=True)


def _checked(check: Mapping[str, Any] | None) -> str:
    if check is None:
        return ""
    if reason := check.get("waived"):
        return f"waived: {reason}"
    return f"{'passed' if check['passed'] else 'failed'} {check.get('detail', '')}".rstrip()


def _compared(trial: Mapping[str, Any] | None) -> str:
    """What a trial has shown so far, the revision on trial beside the live one."""
    if trial is None:
        return ""
    sides = [_side(name, trial[name]) for name in ("trial", "live")]
    alike = (
        f"; {100 * trial['alike'] / trial['pairs']:.0f} % of words alike in {trial['pairs']}" if trial["pairs"] else ""
    )
    skipped = f"; {trial['skipped']} left out" if trial["skipped"] else ""
    return "; ".join(sides) + alike + skipped


def _side(name: str, side: Mapping[str, Any]) -> str:
    turns = side["turns"]
    if not turns:
        return f"{name}: no turns yet"
    means = f"{side['seconds'] / turns:.2f} s, {side['tokens'] / turns:.0f} tokens"
    return f"{name}: {turns} turns, {side['failed']} failed, {side['cut']} cut, {side['called']} with calls, {means}"


def print_json(value: object) -> None:
    """A value for programs."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=1).decode())
