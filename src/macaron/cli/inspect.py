"""`macaron inspect`: what is resident when a model is served, and what separately merged copies would take."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Column, Table

from macaron.hcp import load
from macaron.profiles import DOCUMENT, find_profile, profile_names

if TYPE_CHECKING:
    from macaron.models.census import Census, Part

EXAMPLES = """Examples:

  macaron inspect venti                from the published numbers

  macaron inspect demi --json          from the files that are here

  macaron inspect /models/tall         a layout with base/ and loras/

  macaron inspect runs/code            the adapter of a training run

Only headers are read, so that a model of any size takes a moment. Three numbers are kept apart: the values that are
resident (one base and its adapters), those of separately merged copies (one base for each specialist), and the size in
a release's name. What cannot be known is shown as unknown, with the reason."""

UNKNOWN = "unknown"
SHOWN_DTYPES = 3


def inspect(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE|DIR",
            help="A profile's name, folder or TOML file; an adapter's, run's or base's folder; a model layout; a GGUF "
            "file. For a folder that is called like a profile write ./NAME.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; unknown numbers are null.")] = False,
) -> None:
    """Show what is resident: base and adapters, values, types, bytes, and the KV cache a token."""
    census = _census(subject)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(_document(census)), indent=2))
        return
    console = Console(markup=False, highlight=False)
    console.print(_table(census))
    console.print()
    for line in _lines(census):
        console.print(line, soft_wrap=True)


def _census(subject: str) -> Census:
    from macaron.models.census import inspect_path
    from macaron.profiles.census import inspect_profile

    path = Path(subject).expanduser()
    named = subject in profile_names()
    if named or subject.endswith(".toml") or (path / DOCUMENT).is_file():
        return inspect_profile(subject, load(find_profile(subject if named else path)))
    if os.path.lexists(path):
        return inspect_path(Path(subject))
    return inspect_profile(subject, load(find_profile(subject)))


def _document(census: Census) -> dict[str, Any]:
    merged = {"copies": census.copies, **msgspec.to_builtins(census.merged)} if census.adapters else None
    return {
        "subject": census.subject,
        "base": msgspec.to_builtins(census.base),
        "adapters": msgspec.to_builtins(census.adapters),
        "resident": msgspec.to_builtins(census.resident),
        "merged": merged,
        "kv_cache": msgspec.to_builtins(census.cache),
        "release": msgspec.to_builtins(census.release),
        "notes": list(census.notes),
    }


def _table(census: Census) -> Table:
    table = Table("part", Column("name", overflow="fold"), _number("values"), "type", _number("rank"), _number("bytes"))
    table.box = None
    for part in (census.base, *census.adapters):
        size = "" if part.prompt_only else _bytes(part.bytes)
        table.add_row(part.label, part.name, _values(part), _types(part), str(part.rank or ""), size)
    if census.adapters:
        table.add_row()
        for name, total in (("resident", census.resident), ("merged", census.merged)):
            what = "base and adapters" if name == "resident" else _copies(census)
            table.add_row(name, what, _compact(total.values), "", "", _bytes(total.bytes))
    return table


def _number(header: str) -> Column:
    return Column(header, justify="right", no_wrap=True)


def _lines(census: Census) -> Iterator[str]:
    resident, merged = census.resident, census.merged
    if census.adapters and resident.values is not None:
        against = f"{_compact(resident.values)} resident against {_compact(merged.values)} for {_copies(census)}"
        yield f"{against}.{_prompt_only(census)}"
    if census.release is not None:
        yield f"Release label {census.release.label}: {census.release.counts} ({census.release.source})."
    yield f"KV cache: {_cache(census)}"
    yield from census.cache.notes
    yield from census.notes
    for source, labels in _grouped(census, "source").items():
        about = ", ≈ in round numbers" if census.base.rounded and source == census.base.source else ""
        yield f"Values of {labels}: {source}{about}."
    for reason, labels in _grouped(census, "unknown").items():
        yield f"Unknown of {labels}: {reason}."


def _grouped(census: Census, field: Literal["source", "unknown"]) -> dict[str, str]:
    """Each source or reason once, with the labels of the parts it is for."""
    labels: dict[str, list[str]] = {}
    for part in (census.base, *census.adapters):
        text: str = getattr(part, field)
        if text and not part.prompt_only:
            labels.setdefault(text, []).append(part.label)
    return {text: ", ".join(names) for text, names in labels.items()}


def _cache(census: Census) -> str:
    cache = census.cache
    if cache.values is None:
        return f"{UNKNOWN}, as the base is." if cache.unknown == census.base.unknown else f"{UNKNOWN}: {cache.unknown}."
    how = f"{cache.form}: {cache.detail}"
    if cache.bytes is None:
        return f"{cache.values:,} values a token ({how}); bytes {UNKNOWN}: {cache.unknown}."
    return f"{cache.bytes:,} bytes a token in {cache.dtype} ({how})."


def _copies(census: Census) -> str:
    return f"{census.copies} separately merged {'copy' if census.copies == 1 else 'copies'}"


def _prompt_only(census: Census) -> str:
    prompts = [part.label for part in census.adapters if part.prompt_only]
    trained = len(census.adapters) - len(prompts)
    if not prompts:
        return ""
    merged = f"{trained} with an adapter merged in and " if trained else ""
    return f" The copies are {merged}the bare base, as only prompts stand for {', '.join(prompts)}."


def _values(part: Part) -> str:
    if part.prompt_only:
        return "prompt only"
    if part.values is None:
        return UNKNOWN
    return f"≈ {_compact(part.values)}" if part.rounded else f"{part.values:,}"


def _types(part: Part) -> str:
    if part.prompt_only:
        return ""
    if not part.dtypes:
        return UNKNOWN
    if len(part.dtypes) == 1:
        return next(iter(part.dtypes))
    shown = [f"{dtype} {_compact(count.values)}" for dtype, count in part.dtypes.items()]
    rest = f", {len(shown) - SHOWN_DTYPES} more" if len(shown) > SHOWN_DTYPES else ""
    return ", ".join(shown[:SHOWN_DTYPES]) + rest


def _bytes(size: int | None) -> str:
    return UNKNOWN if size is None else decimal(size)


def _compact(values: int | None) -> str:
    """Four significant digits, such as 774.8B; B is 10⁹ and T is 10¹²."""
    if values is None:
        return UNKNOWN
    for power, unit in enumerate(("", "K", "M", "B")):
        scaled = float(f"{values / 1000**power:.4g}")
        if scaled < 1000:
            return f"{scaled:g}{unit}"
    return f"{values / 1000**4:.4g}T"
