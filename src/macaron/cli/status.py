"""`macaron status`: what a running service says of itself."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from yarl import URL

from macaron.cli.connect import ANSWER_SECONDS, DEFAULT_URL, Url, client, expect, read_json
from macaron.cli.paths import runtime_folder
from macaron.server.control import ask_control
from macaron.server.supervisor import control_path

EXAMPLES = "Example:\n\n  macaron status --url http://127.0.0.1:8200"
_STATES = {"prompt": "prompt only, not trained", "verified": "adapter", "unverified": "adapter, bytes not seen"}
_FIELDS = ("model", "status", "problems", "engine", "generation", "contract", "prompt_only", "specialists")


def status(url: Url = DEFAULT_URL) -> None:
    """Show whether the service is ready, and what its specialists are. Status 1 where it is not ready."""
    ready, processes = asyncio.run(_ask(url))
    console = Console(markup=False, highlight=False)
    console.print(f"{ready['model']} at {url}: {ready['status']}", style="bold")
    console.print(f"engine {ready['engine']}, generation {ready['generation']}, contract {ready['contract'][:17]}…")
    if processes:
        console.print(_processes(processes))
    for problem in ready["problems"]:
        console.print(f"  {problem}", style="red")
    table = Table("label", "name", "what it is", "revision", box=None)
    for item in ready["specialists"]:
        table.add_row(item["label"], item["name"], _STATES.get(item["state"], item["state"]), item["revision"][:24])
    console.print(table)
    if ready["prompt_only"]:
        console.print("No specialist has a trained adapter yet: they differ by their prompts only.")
    if ready["status"] != "ready":
        raise typer.Exit(1)


async def _ask(url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    async with client(url, timeout=ANSWER_SECONDS) as session, session.get("/ready") as response:
        ready = expect(response, await read_json(response), *_FIELDS)
    processes: dict[str, Any] = {}
    # Only its owner on its machine can ask the supervisor; everybody else does without.
    with suppress(OSError, ValueError):
        processes = await ask_control(control_path(runtime_folder(), URL(url).port or 0), "status")
    return ready, processes


def _processes(processes: dict[str, Any]) -> str:
    workers = ", ".join(str(pid) for pid in processes["workers"])
    parts = [f"supervisor {processes['pid']}", f"workers {workers}, {processes['worker_restarts']} restarts"]
    if processes["engine"]:
        parts.append(f"engine {processes['engine']}, {processes['engine_restarts']} restarts")
    return "; ".join(parts)
