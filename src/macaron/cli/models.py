"""`macaron models`: the weights of the embedded engine."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Column, Table

from macaron.cli.progress import progress_bar
from macaron.hcp import load
from macaron.models import default_cache, fetch_weights, is_cached
from macaron.profiles import find_profile, profile_names

app = typer.Typer(
    name="models",
    no_args_is_help=True,
    help="Fetch and list the model files that the embedded engine runs.",
)

_PULL_EXAMPLES = """Examples:

  macaron models pull                  the small model of the profile demi

  macaron models pull ./mine           what the profile in the folder ./mine needs

An interrupted download goes on where it stopped. A file that is here and whole is not fetched again."""


@app.command(epilog=_PULL_EXAMPLES)
def pull(
    profile: Annotated[str, typer.Argument(help="A profile's name, its folder, or its profile.toml.")] = "demi",
) -> None:
    """Fetch the weights of a profile and check them against the hash in its contract."""
    loaded = load(find_profile(profile))
    engine = loaded.contract.engine
    if engine.weights is None:
        typer.echo(f"{profile} runs on {engine.kind} at {engine.address}, which has its own weights: nothing to fetch.")
        return
    with progress_bar(Console(stderr=True)) as progress:
        path = fetch_weights(engine.weights, folder=loaded.folder, progress=progress)
    typer.echo(f"{path} ({decimal(path.stat().st_size)}) is here and whole.")


@app.command("list", epilog="Example:\n\n  macaron models list")
def list_models() -> None:
    """List the weights of the profiles that ship, and whether they are here."""
    table = Table("profile", Column("file", overflow="fold"), "size", "state", box=None)
    cache = default_cache()
    for name in profile_names():
        weights = load(find_profile(name)).contract.engine.weights
        if weights is not None:
            size = decimal(weights.size) if weights.size else ""
            here = is_cached(weights, cache)
            state = "here" if here else f"not here: macaron models pull {name}"
            table.add_row(name, weights.file, size, state)
    Console().print(table)
    typer.echo(f"Files are kept in {cache}")
