"""`macaron status`: what a running service says of itself."""

from __future__ import annotations

import asyncio
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from macaron.cli.connect import DEFAULT_URL, Url, client, read_json

EXAMPLES = "Example:\n\n  macaron status --url http://127.0.0.1:8200"
_STATES = {"prompt": "prompt only, not trained", "verified": "adapter", "unverified": "adapter, bytes not seen"}


def status(url: Url = DEFAULT_URL) -> None:
    """Show whether the service is ready, and what its specialists are. Status 1 where it is not ready."""
    ready = asyncio.run(_ready(url))
    console = Console()
    console.print(f"{ready['model']} at {url}: {ready['status']}", style="bold", highlight=False)
    console.print(f"engine {ready['engine']}, generation {ready['generation']}, contract {ready['contract'][:17]}…")
    for problem in ready["problems"]:
        console.print(f"  {problem}", style="red", highlight=False)
    table = Table("label", "name", "what it is", "revision", box=None)
    for item in ready["specialists"]:
        table.add_row(item["label"], item["name"], _STATES.get(item["state"], item["state"]), item["revision"][:24])
    console.print(table)
    if ready["prompt_only"]:
        console.print("No specialist has a trained adapter yet: they differ by their prompts only.")
    if ready["status"] != "ready":
        raise typer.Exit(1)


async def _ready(url: str) -> dict[str, Any]:
    async with client(url) as session, session.get("/ready") as response:
        value: dict[str, Any] = await read_json(response)
        return value
