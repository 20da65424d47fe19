"""`macaron data`: making data sets, and looking at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from macaron.errors import ConfigError
from macaron.train.data.build import build as build_data
from macaron.train.data.manifest import Manifest, open_data_set
from macaron.train.data.packages import WheelPackages
from macaron.train.data.read import read_rows
from macaron.train.data.recipe import SPLITS, Split, find_recipe, load_recipe
from macaron.train.data.render import render_row, visible
from macaron.train.data.rows import AnyRow
from macaron.train.data.show import Wanted, count_rows, sample

app = typer.Typer(
    name="data",
    no_args_is_help=True,
    help="Make the data sets that specialists are trained on, and look at their rows.",
)

_BUILD_EXAMPLES = """Examples:

  macaron data build mine.toml                a recipe of yours

  macaron data build mine.toml --out /big/mine --skip-broken

A recipe is a TOML file:

  name = "mine"

  seed = 1

  [[source]]

  name = "support"

  path = "support.jsonl"      or builder = "package.module:function"

  licence = "CC-BY-4.0"

  split = "auto"              by group; or train, dev, test

A row is one JSON object a line:

  {"kind":"sft", "id":"1", "source":"support", "group":"case 17",

  "messages":[{"role":"user","content":"…"}, {"role":"assistant","content":"…"}]}

Rows that share a group never stand in two splits. Duplicates are dropped, personal
data is replaced, and held-out rows that stand in training rows end the build,
unless [overlap] action = "drop". The same recipe gives the same bytes."""

_SHOW_EXAMPLES = """Examples:

  macaron data show data/demi-l1

  macaron data show data/demi-l0 --split test --label L2 --n 3 --seed 7

  macaron data show rows.jsonl --id bfcl-17     one row, in full

  macaron data show data/demi-l0 --stats        how many rows of what"""


@app.command("build", epilog=_BUILD_EXAMPLES)
def build(
    recipe: Annotated[str, typer.Argument(help="A recipe's .toml file, or the name of one that ships.")],
    out: Annotated[Path | None, typer.Option(help="The folder to write; data/NAME if left out.")] = None,
    skip_broken: Annotated[bool, typer.Option("--skip-broken", help="Leave out broken rows and count them.")] = False,
) -> None:
    """Build a data set: train.jsonl, dev.jsonl, test.jsonl and a manifest."""
    loaded = load_recipe(find_recipe(recipe))
    folder = out or Path("data") / loaded.name
    with _bars(Console(stderr=True)) as bars:
        packages = WheelPackages(progress=bars.files)
        manifest = build_data(loaded, folder, packages, bars.rows, skip_broken=skip_broken)
    _summary(manifest, Console(markup=False, highlight=False))
    typer.echo(f"{folder} is built (recipe sha256:{manifest.recipe_sha256[:12]})")


@app.command("show", epilog=_SHOW_EXAMPLES)
def show(
    path: Annotated[Path, typer.Argument(metavar="FOLDER|FILE", help="A data set's folder, or a JSONL file.")],
    split: Annotated[str, typer.Option(help="train, dev or test; train if left out, all for --id and --stats.")] = "",
    n: Annotated[int, typer.Option("--n", min=1, max=1000, help="How many rows.")] = 5,
    source: Annotated[str, typer.Option(help="Only rows of this source.")] = "",
    label: Annotated[str, typer.Option(help="Only rows with this routing label.")] = "",
    seed: Annotated[int, typer.Option(help="Another seed, other rows.")] = 0,
    row_id: Annotated[str, typer.Option("--id", help="The row with this id, in full.")] = "",
    stats: Annotated[bool, typer.Option("--stats", help="Count the rows instead of showing them.")] = False,
) -> None:
    """Show rows as a person reads them: a random few, or one by its id."""
    console = Console(markup=False, highlight=False)
    wanted = Wanted(row_id, source, label)
    parts = _parts(path, split, every=bool(row_id) or stats)
    if stats:
        _print_stats(parts, wanted, console)
        return
    chosen = sample((row for _, rows in parts for row in rows), wanted, n, seed)
    if not chosen:
        raise ConfigError(f"{path} has no such row; `macaron data show {path} --stats` tells what there is")
    for row in chosen:
        for part in render_row(row, whole=bool(row_id)):
            console.print(part)


def _parts(path: Path, split: str, every: bool) -> list[tuple[str, Iterator[AnyRow]]]:
    """The rows to look through, by split; those of a lone file are of none."""
    if split and split not in SPLITS:
        raise ConfigError(f"--split {split!r} is not one of {', '.join(SPLITS)}")
    if path.is_dir():
        data = open_data_set(path)
        chosen: list[Split] = [name for name in SPLITS if split == name or (not split and (every or name == "train"))]
        return [(name, data.rows(name)) for name in chosen]
    if split:
        raise ConfigError(f"--split is for a data set's folder; {path} is a single file")
    return [("", read_rows(path))]


def _print_stats(parts: list[tuple[str, Iterator[AnyRow]]], wanted: Wanted, console: Console) -> None:
    numbers = (Column(name, justify="right") for name in ("rows", "groups", "characters", "longest"))
    table = Table("split", Column("source", overflow="fold"), "kind", *numbers, "languages", box=None, pad_edge=False)
    for split, rows in parts:
        for counts in count_rows(split, (row for row in rows if wanted.matches(row))):
            kind = f"{counts.kind} {counts.label}".strip()
            figures = (counts.rows, counts.groups, counts.characters, counts.longest)
            languages = " ".join(counts.languages)
            table.add_row(counts.split, visible(counts.source), kind, *(f"{figure:,}" for figure in figures), languages)
    console.print(table)


def _summary(manifest: Manifest, console: Console) -> None:
    numbers = (Column(name, justify="right") for name in ("given", *SPLITS, "dropped"))
    table = Table(Column("source", overflow="fold"), *numbers, "why", box=None, pad_edge=False)
    for source in manifest.sources:
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(source.dropped.items()))
        kept = (str(source.kept[split]) for split in SPLITS)
        table.add_row(source.name, str(source.given), *kept, str(sum(source.dropped.values())), why)
    totals = (str(manifest.files[split].rows) for split in SPLITS)
    given = sum(source.given for source in manifest.sources)
    dropped = sum(sum(source.dropped.values()) for source in manifest.sources)
    table.add_row("all", str(given), *totals, str(dropped), "", style="bold")
    console.print(table)
    console.print(_scrubbed(manifest))
    audit = manifest.audit
    console.print(
        f"{audit.checked} held-out rows compared with the training rows: {audit.overlapping} stood in one to more than "
        f"{audit.max_containment:g}, {audit.dropped} training rows dropped; at most {audit.highest:.2f} is left"
    )


def _scrubbed(manifest: Manifest) -> str:
    counts: dict[str, int] = {}
    for source in manifest.sources:
        for kind, count in source.scrubbed.items():
            counts[kind] = counts.get(kind, 0) + count
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"personal data replaced: {listed or 'none found'}"


class _Bars:
    """One bar for what is under way, whether it is counted in rows or in bytes."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._step = ""
        self._task: TaskID | None = None

    def rows(self, step: str, done: int, total: int | None) -> None:
        if step != self._step:
            if self._task is not None:
                self._bars.update(self._task, visible=False)
            self._step, self._task = step, self._bars.add_task(step, total=total)
        if self._task is not None:
            self._bars.update(self._task, completed=done, total=total)

    def files(self, stage: str, done: int, total: int | None) -> None:
        self.rows(f"package: {stage} (KiB)", done // 1024, total and total // 1024)


@contextmanager
def _bars(console: Console) -> Iterator[_Bars]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield _Bars(bars)
