"""The runs that are known here, their data sets, and the recorded turns in those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from macaron.errors import ConfigError
from macaron.lineage.base import DataLine, RunLine, SourceLine
from macaron.train.data.manifest import MANIFEST, Manifest
from macaron.train.inputs import data_digest
from macaron.train.record import RunRecord
from macaron.train.runs.read import list_runs

MAX_JSON = 67_108_864
MAX_SETS = 10_000

Shape = TypeVar("Shape")


class KnownRun(NamedTuple):
    """A run's record and where it was found; `folder` is the run's own, None where an adapter alone has the record."""

    record: RunRecord
    place: Path
    folder: Path | None


def known_runs(root: Path) -> list[KnownRun]:
    """The runs in a folder; none where it is not there."""
    if not root.is_dir():
        return []
    return [KnownRun(run.record, run.path, run.path) for run in list_runs(root) if run.record is not None]


def run_beside(adapter: Path) -> KnownRun | None:
    """The run whose record lies beside an adapter."""
    record = _json(adapter / "run.json", RunRecord)
    return None if record is None else KnownRun(record, adapter, None)


def manifests_of(run: KnownRun) -> Iterator[tuple[str, str, Manifest | None]]:
    """Path, hash and manifest of each data set of a run; None where the data set is gone or is another one now."""
    kept = _json(run.folder / "data.json", dict[str, Any]) if run.folder is not None else None
    manifests = kept.get("manifests") if kept is not None else None
    for use in run.record.data:
        found = manifests.get(use.path) if isinstance(manifests, Mapping) else None
        yield use.path, use.sha256, _converted(found) if found else _at(Path(use.path), use.sha256)


def line_of(run: KnownRun) -> RunLine:
    """A run as a lineage shows it."""
    record = run.record
    return RunLine(
        id=record.id,
        path=str(run.place),
        status=record.status,
        created=record.created,
        base=record.base_fingerprint or record.base,
        parent=record.parent,
        revision=record.adapter.revision if record.adapter is not None else "",
        data=tuple(_data_line(*item) for item in manifests_of(run)),
    )


def turns_in(manifest: Manifest) -> Iterator[str]:
    """Response ids of the recorded turns in a data set."""
    for source in manifest.sources:
        yield from source.turns


def data_sets(root: Path) -> Iterator[tuple[Path, Manifest]]:
    """The data sets in a folder, by their manifests alone."""
    if root.is_dir():
        for path in sorted(root.glob(f"*/{MANIFEST}"))[:MAX_SETS]:
            manifest = _json(path, Manifest)
            if manifest is not None:
                yield path.parent, manifest


def with_parents(run: KnownRun, runs: Sequence[KnownRun]) -> Iterator[KnownRun]:
    """A run and the ones it went on from, as far as they are here."""
    seen: set[str] = set()
    following: KnownRun | None = run
    while following is not None and following.record.id not in seen:
        seen.add(following.record.id)
        yield following
        parent = following.record.parent
        following = next((other for other in runs if parent and other.record.id == parent), None)


def _data_line(path: str, sha256: str, manifest: Manifest | None) -> DataLine:
    if manifest is None:
        return DataLine(path, sha256, known=False)
    sources = tuple(
        SourceLine(
            name=source.name,
            origin=source.origin,
            licence=source.licence,
            rows=sum(source.kept.values()),
            turns=len(source.turns),
            consents=tuple(
                f"{item.tenant}: {item.consent}" + (f" ({item.licence})" if item.licence else "")
                for item in source.consents
            ),
        )
        for source in manifest.sources
    )
    return DataLine(path, sha256, True, manifest.name, manifest.recipe_sha256, sources)


def _at(folder: Path, sha256: str) -> Manifest | None:
    with suppress(OSError, ConfigError):
        if data_digest(folder) == sha256:
            return _json(folder / MANIFEST, Manifest)
    return None


def _converted(value: Any) -> Manifest | None:
    try:
        return msgspec.convert(value, Manifest)
    except msgspec.ValidationError:
        return None


def _json(path: Path, shape: type[Shape]) -> Shape | None:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_JSON + 1)
        return msgspec.json.decode(raw, type=shape) if len(raw) <= MAX_JSON else None
    except (OSError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
