"""`macaron merge`: one specialist made part of its base."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from macaron.cli.progress import progress_bar
from macaron.errors import ConfigError
from macaron.hcp import Loaded, load
from macaron.models import fetch_weights, sha256_of
from macaron.models.gguf_table import read_whole_table
from macaron.models.merge import GGUF_TYPES, GgufType, refuse_existing
from macaron.models.merge.output import Advance
from macaron.models.progress import Progress as Fetching
from macaron.profiles import find_profile
from macaron.profiles.merged import BaseWeights, find_specialist, merge_profile
from macaron.train.base import find_base

FORMATS = ("gguf", "safetensors")

EXAMPLES = """Examples:

  macaron merge --adapter L0 --out ./talk        L0 of demi, by itself

  macaron merge --adapter ./run/adapter --label L2 --out ./coding

  macaron merge --profile tall --adapter ./l2 --base ./base --out ./c

The result is a folder with the weights and a profile that serves them without
routing: macaron serve --profile ./talk"""


def merge(
    adapter: Annotated[str, typer.Option(help="A label of the profile, or the path of an adapter in PEFT's format.")],
    out: Annotated[Path, typer.Option(help="The folder to write; it must not be there.")],
    profile: Annotated[str, typer.Option(help="A profile's name, its folder, or its profile.toml.")] = "demi",
    label: Annotated[
        str, typer.Option(help="With a path: whose card and prompt it gets, if its run does not say.")
    ] = "",
    base: Annotated[
        str, typer.Option(help="FILE.gguf or a folder of safetensors, instead of the profile's base.")
    ] = "",
    format: Annotated[str, typer.Option(help="gguf or safetensors; what the base is, if left out.")] = "",
    dtype: Annotated[str, typer.Option(help="q8_0, f16 or f32 for the changed tensors of a GGUF file.")] = "",
) -> None:
    """Merge one specialist's adapter into the base, as a profile of its own.

    Tensors in 8 bits or more keep their type; coarser ones become q8_0, since in 4 bits they would lose more than the
    adapter has changed.
    """
    loaded = load(find_profile(profile))
    specialist = find_specialist(loaded, adapter, label)
    kind = _dtype(dtype)
    refuse_existing(out)
    console = Console(stderr=True)
    with progress_bar(console) as fetching:
        weights = _base(loaded, base, format, fetching)
    with _bar(console) as advance:
        merged = merge_profile(loaded, specialist, weights, out, kind, advance=advance)
    typer.echo(f"{merged.path}\n{merged.digest}\nserve it: macaron serve --profile {_as_path(out)}")


def _dtype(text: str) -> GgufType | None:
    if not text:
        return None
    for kind in GGUF_TYPES:
        if kind == text:
            return kind
    raise ConfigError(f"--dtype {text!r} is not one of {', '.join(GGUF_TYPES)}", param="dtype")


def _base(loaded: Loaded, text: str, format: str, progress: Fetching) -> BaseWeights:
    if format and format not in FORMATS:
        raise ConfigError(f"--format {format!r} is not one of {', '.join(FORMATS)}", param="format")
    if text:
        return _named_base(loaded, Path(text).expanduser(), format, progress)
    section = loaded.contract.engine.weights
    if section is None:
        reason = f"profile {loaded.contract.mol.served_model!r} does not say where its base's weights are"
        raise ConfigError(f"{reason}; give --base with FILE.gguf or a folder of safetensors", param="base")
    if format == "safetensors":
        found = find_base(loaded, progress=progress)
        return BaseWeights(found.folder, found.fingerprint, read_whole_table(found.weights).text("general.license"))
    path = fetch_weights(section, folder=loaded.folder, progress=progress)
    return BaseWeights(path, f"sha256:{section.sha256 or sha256_of(path, progress)}")


def _named_base(loaded: Loaded, path: Path, format: str, progress: Fetching) -> BaseWeights:
    if not path.exists():
        raise ConfigError(f"there is no base at {path}", param="base")
    found = "safetensors" if path.is_dir() else "gguf"
    if format and format != found:
        remedy = "name a base of that format; nothing is converted between the two"
        raise ConfigError(f"--format is {format}, but {path} is {found}; {remedy}", param="format")
    if path.is_dir():
        return BaseWeights(path)
    fingerprint, wanted = f"sha256:{sha256_of(path, progress)}", loaded.contract.mol.base_fingerprint
    if wanted and wanted != fingerprint:
        raise ConfigError(
            f"{path} is {fingerprint}, but mol.base_fingerprint is {wanted}; name that base", param="base"
        )
    return BaseWeights(path, fingerprint)


def _as_path(out: Path) -> str:
    return str(out) if out.is_absolute() or str(out).startswith(".") else f"./{out}"


@contextmanager
def _bar(console: Console) -> Iterator[Advance]:
    columns = (
        TextColumn("merging"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("merging", total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
