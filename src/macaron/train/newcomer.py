"""The data of a router that learns one label more: some of the rows it was trained on, and the newcomer's examples.

In the run's folder lie `newcomer/L4.train.jsonl` and `newcomer/L4.held-out.jsonl`, the examples that are learned and
those that are not, and `data/`, the data set made of them and of a part of the router's recipe.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from macaron.errors import ConfigError
from macaron.models.files import explained
from macaron.train.data.recipe import Recipe, SourceSection, Split
from macaron.train.data.rows import RouteRow

ROWS = 400
"""Rows of the router's own recipe that are shown again, unless another number is given."""

FEWEST = 10
"""Examples of a newcomer, of which one in five is kept back."""

HELD_OUT_EVERY = 5
LEAST_OF_A_SOURCE = 4
UNLIMITED_SHARE = 0.05
"""Of all rows, for a source whose size the recipe leaves open."""

LICENCE = "not stated; given with --examples"
_PARTS: dict[Split, str] = {"train": "train", "dev": "held-out"}


def write_newcomer(run: Path, label: str, examples: Sequence[RouteRow], parent: Path | None = None) -> None:
    """Write a newcomer's examples below a run's folder, with those of the newcomers before it.

    Args:
        parent: the run that is gone on from, whose newcomers come along.

    Raises:
        ConfigError: there are too few examples, two are the same, or the disk is full.
    """
    texts = {_said(row) for row in examples}
    if len(texts) < max(FEWEST, len(examples)):
        reason = f"there are {len(texts)} different examples of {label} in {len(examples)} rows"
        raise ConfigError(f"{reason}; give at least {FEWEST}, each once", param="examples")
    folder = run / "newcomer"
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted((parent / "newcomer").glob("*.jsonl")) if parent is not None else ():
            (folder / path.name).write_bytes(path.read_bytes())
        # By what they say, so that another order of the lines holds the same ones back.
        ordered = sorted(examples, key=lambda row: hashlib.sha256(_said(row)).digest())
        named = [
            replace(row, id=f"{label}-{number:05d}", source=f"newcomer-{label}", group=f"newcomer:{label}:{number}")
            for number, row in enumerate(ordered)
        ]
        kept_back = named[::HELD_OUT_EVERY]
        _write(_file(run, label, "train"), [row for row in named if row not in kept_back])
        _write(_file(run, label, "dev"), kept_back)


def router_recipe(recipe: Recipe, run: Path, rows: int = ROWS) -> Recipe:
    """A part of a router's recipe, and all newcomers below a run's folder."""
    known = sum(source.limit for source in recipe.source)
    share = min(1.0, rows / known) if known else 0.0
    sources = [_smaller(source, recipe.folder, share, rows) for source in recipe.source]
    return replace(recipe, name=f"{recipe.name}-router", source=(*sources, *_newcomers(run)), folder=run)


def held_out_of(run: Path, label: str) -> Path:
    """The file of a newcomer's examples that are not learned."""
    return _file(run, label, "dev")


def _file(run: Path, label: str, part: Split) -> Path:
    return run / "newcomer" / f"{label}.{_PARTS[part]}.jsonl"


def _smaller(source: SourceSection, folder: Path, share: float, rows: int) -> SourceSection:
    wanted = source.limit * share if source.limit else rows * UNLIMITED_SHARE
    path = str((folder / source.path).resolve()) if source.path else ""
    return replace(source, path=path, limit=max(LEAST_OF_A_SOURCE, round(wanted)))


def _newcomers(run: Path) -> Iterator[SourceSection]:
    for path in sorted((run / "newcomer").glob("*.jsonl")):
        label, part, _ = path.name.split(".")
        split: Split = next(name for name, word in _PARTS.items() if word == part)
        yield SourceSection(
            name=f"newcomer-{label}-{part}", licence=LICENCE, path=f"newcomer/{path.name}", split=split,
            note=f"{label}: a newcomer's examples",
        )  # fmt: skip


def _write(path: Path, rows: Iterable[RouteRow]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def _said(row: RouteRow) -> bytes:
    return msgspec.json.encode(row.messages, order="deterministic")
