"""The data sets of a run: their rows, and whether what is trained on is also held out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from macaron.errors import ConfigError
from macaron.models import sha256_of, silent
from macaron.train.data.read import BrokenRow, ReadReport, read_rows
from macaron.train.data.rows import AnyRow

Part = Literal["train", "dev", "test"]


class Placed(NamedTuple):
    """A row, the data set it is from, where it stands for people, and whose specialist's it is."""

    row: AnyRow
    folder: str
    place: str
    label: str


class Inputs(NamedTuple):
    """What a run reads.

    Attributes:
        train, dev: rows of all data sets.
        folders: SHA-256 over the manifest and the parts that are read, by the path of the data set.
        manifests: the manifests, by the same path.
        broken: lines that are no rows.
    """

    train: list[Placed]
    dev: list[Placed]
    folders: dict[str, str]
    manifests: dict[str, Any]
    broken: list[BrokenRow]


def read_inputs(entries: Sequence[str], label: str, *, skip_broken: bool = False) -> Inputs:
    """Read some data sets.

    Args:
        entries: folders; `LABEL=FOLDER` holds rows of another specialist than `label`, so that one adapter can be
            trained on the data of several.

    Raises:
        ConfigError: a folder is no data set, a line is no row, or a row that is trained on is also held out.
    """
    inputs = Inputs([], [], {}, {}, [])
    held_out: dict[bytes, str] = {}
    report = ReadReport()
    for name in entries:
        owner, folder = _divided(name, label)
        if not (folder / "train.jsonl").is_file():
            reason = f"{folder} is no data set: it has no train.jsonl; build one with `macaron data build`"
            raise ConfigError(reason, param="data")
        inputs.folders[name] = data_digest(folder)
        inputs.manifests[name] = _manifest(folder)
        parts = {part: list(_rows(name, folder, owner, part, skip_broken, report)) for part in _PARTS}
        inputs.train.extend(parts["train"])
        inputs.dev.extend(parts["dev"])
        held_out |= {content(item.row): item.place for item in (*parts["dev"], *parts["test"])}
    _refuse_overlap(inputs.train, held_out)
    inputs.broken.extend(report.named)
    return inputs


def _divided(entry: str, label: str) -> tuple[str, Path]:
    named = re.match(r"([A-Z][A-Za-z0-9_-]{0,31})=(?=.)", entry)
    return (named[1], Path(entry[named.end() :]).expanduser()) if named else (label, Path(entry).expanduser())


_PARTS: tuple[Part, ...] = ("train", "dev", "test")


def content(row: AnyRow) -> bytes:
    """A hash of what a row says, whatever its name and origin."""
    bare = replace(row, id="", source="", group="", language="")
    return hashlib.sha256(msgspec.json.encode(bare, order="deterministic")).digest()


def _refuse_overlap(train: Iterable[Placed], held_out: dict[bytes, str]) -> None:
    pairs = [(item.place, held_out[key]) for item in train if (key := content(item.row)) in held_out]
    if pairs:
        shown = "; ".join(f"{one} is {other}" for one, other in pairs[:3])
        raise ConfigError(
            f"{len(pairs)} rows are trained on and held out: {shown}; build the data sets again, split by group",
            param="data",
            code="overlap",
        )


def _rows(name: str, folder: Path, label: str, part: Part, skip_broken: bool, report: ReadReport) -> Iterator[Placed]:
    path = folder / f"{part}.jsonl"
    if path.is_file():
        for row in read_rows(path, skip_broken=skip_broken, report=report):
            yield Placed(row, name, f"{path}, row {row.id!r}", label)


def data_digest(folder: Path) -> str:
    """What a run notes of a data set: SHA-256 over its manifest and the parts that are read."""
    files = [folder / name for name in ("manifest.json", "train.jsonl", "dev.jsonl")]
    lines = "".join(f"{sha256_of(file, silent)}  {file.name}\n" for file in files if file.is_file())
    return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def _manifest(folder: Path) -> Any:
    path = folder / "manifest.json"
    try:
        return msgspec.json.decode(path.read_bytes()) if path.is_file() else {}
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path} is not JSON: {error}", param="data") from None
