"""`macaron profile`: what a service runs, as a document."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from macaron.cli.progress import progress_bar
from macaron.hcp import load
from macaron.profiles import find_profile, profile_names
from macaron.profiles.base import parse_base
from macaron.profiles.new import new_profile

app = typer.Typer(
    name="profile",
    no_args_is_help=True,
    help="Make, list and check profiles. A profile is a TOML contract and its prompts: which model, which specialists.",
)

_NEW_EXAMPLES = """Examples:

  macaron profile new mine --base ~/models/qwen3-8b-q4_k_m.gguf

  macaron profile new mine --base hf:Qwen/Qwen3-8B

  macaron profile new mine --base http://127.0.0.1:11434 --model llama3.2

The result is a folder of text files: change the prompts and the cards, add or remove specialists."""

_CHECK_EXAMPLES = """Examples:

  macaron profile check ./mine

  macaron profile check ./mine/profile.toml --no-env"""


@app.command(epilog=_NEW_EXAMPLES)
def new(
    name: Annotated[str, typer.Argument(help="The profile's name; clients ask for the model by it.")],
    base: Annotated[str, typer.Option(help="FILE.gguf, hf:OWNER/NAME for vLLM, or a server's http://HOST:PORT.")],
    model: Annotated[str, typer.Option(help="With a server's address: the model to ask it for.")] = "",
    out: Annotated[Path | None, typer.Option(help="The folder to write; ./NAME if left out.")] = None,
) -> None:
    """Write a profile with four prompt-only specialists on any model."""
    folder = out or Path(name)
    with progress_bar(Console(stderr=True)) as progress:
        loaded = new_profile(name, parse_base(base, model), folder, progress=progress)
    typer.echo(f"{loaded.path}\n{loaded.digest}")


@app.command("list", epilog="Example:\n\n  macaron profile list")
def list_profiles() -> None:
    """List the profiles that ship."""
    table = Table("profile", "model", "base", "engine", "specialists", box=None)
    for name in profile_names():
        contract = load(find_profile(name)).contract
        labels = " ".join(entry.label for entry in contract.mol.adapters)
        table.add_row(name, contract.mol.served_model, contract.mol.base, contract.engine.kind, labels)
    Console(soft_wrap=True).print(table)


@app.command(epilog=_CHECK_EXAMPLES)
def check(
    profile: Annotated[str, typer.Argument(metavar="FILE", help="A profile.toml, its folder, or a profile's name.")],
    env: Annotated[bool, typer.Option(help="Whether the environment variables it names must be set.")] = True,
) -> None:
    """Check a profile strictly, list everything that is wrong, and print its digest."""
    loaded = load(find_profile(profile), env=os.environ if env else None)
    typer.echo(f"{loaded.path} is in order\n{loaded.digest}")
