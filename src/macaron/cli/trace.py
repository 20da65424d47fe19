"""`macaron trace`: the hops of a session's turns."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Column, Table

from macaron.cli.connect import ANSWER_SECONDS, DEFAULT_URL, Url, client, expect, read_json

EXAMPLES = """Examples:

  macaron trace sess_0123456789abcdef

  macaron trace my-session     a name that the client gave in x-session-id

A session's id is in the response header x-macaron-session of requests with x-macaron-trace: 1."""


def trace(
    session: Annotated[str, typer.Argument(help="The session's id or name.")],
    user: Annotated[str, typer.Option(help="The end user, where the client named one.")] = "",
    url: Url = DEFAULT_URL,
) -> None:
    """Show the hops of each turn of a session: who, how long, how many tokens."""
    found = asyncio.run(_session(url, session, user))
    numbers = (Column(name, justify="right") for name in ("seconds", "waited", "prompt", "cached", "answer"))
    # Narrow enough for a terminal of 80 columns.
    table = Table("turn", "time", "label", "hop", *numbers, "outcome", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    turns: dict[str, int] = {}
    for step in found["steps"]:
        turn = turns.setdefault(step["turn"], len(turns) + 1)
        for index, hop in enumerate(step["hops"]):
            first = index == 0
            usage = hop["usage"]
            table.add_row(
                str(turn) if first else "",
                time.strftime("%H:%M:%S", time.localtime(step["created"])) if first else "",
                step["label"] if first else "",
                hop["kind"],
                f"{hop['seconds']:.3f}",
                f"{hop['queued']:.3f}",
                str(usage["prompt"]),
                str(usage["cached"]),
                str(usage["completion"]),
                hop["outcome"] if hop["outcome"] != "ok" else step["status"] if hop["kind"] == "answer" else "ok",
            )
    console = Console(markup=False, highlight=False)
    console.print(f"session {found['session']}", style="bold")
    console.print(table)


async def _session(url: str, name: str, user: str) -> dict[str, Any]:
    path = f"/v1/macaron/sessions/{quote(name, safe='')}"
    params = {"user": user} if user else {}
    async with client(url, timeout=ANSWER_SECONDS) as http, http.get(path, params=params) as response:
        return expect(response, await read_json(response), "session", "steps")
