"""What a data set is made of, and reading one back: nothing that is not whole is ever read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError
from macaron.models import sha256_of, silent
from macaron.train.data.packages import Wheel
from macaron.train.data.read import read_rows
from macaron.train.data.recipe import SPLITS, Split
from macaron.train.data.rows import AnyRow

MANIFEST = "manifest.json"
MAX_MANIFEST = 16_777_216
FORMAT = 1


class FileUse(Struct, frozen=True):
    """A file of rows: how many, how many bytes, and their SHA-256 in hex."""

    rows: int
    bytes: int
    sha256: str


class ConsentUse(Struct, frozen=True):
    """The ground on which a tenant's recorded turns were used, its licence, and how many rows were given on it."""

    tenant: str
    consent: str
    licence: str
    rows: int


class SourceUse(Struct, frozen=True, omit_defaults=True):
    """What became of a source of the recipe.

    Attributes:
        origin: the builder, the path or the file of recorded turns, as the recipe writes it.
        sha256: of the file at `path`; empty for a builder; over the ids of the turns that were given.
        packages: the wheels that were read, with their hashes.
        given: rows the source gave, broken ones included.
        kept: rows by split.
        dropped: rows by reason: `broken`, `exact duplicate`, `near duplicate`, `group held out`, `overlap`.
        scrubbed: replacements of personal data by kind, in kept and dropped rows.
        consents: of recorded turns.
        turns: response ids of the recorded turns that were kept.
    """

    name: str
    origin: str
    licence: str
    note: str
    sha256: str
    packages: tuple[Wheel, ...]
    given: int
    kept: dict[Split, int]
    dropped: dict[str, int]
    scrubbed: dict[str, int]
    consents: tuple[ConsentUse, ...] = ()
    turns: tuple[str, ...] = ()


class Overlap(Struct, frozen=True):
    """A held-out row that a training row contains, and how much of it, from 0 to 1."""

    held_out: str
    split: Split
    train: str
    containment: float
    text: str


class AuditResult(Struct, frozen=True):
    """The audit of held-out rows against training rows.

    Attributes:
        checked: held-out rows.
        overlapping: held-out rows that a training row contained.
        dropped: training rows dropped for it.
        highest: containment that is left, over all held-out rows.
        examples: the worst overlaps that were found, at most a few.
    """

    max_containment: float
    action: Literal["refuse", "drop"]
    checked: int
    overlapping: int
    dropped: int
    highest: float
    examples: tuple[Overlap, ...]


class Manifest(Struct, frozen=True):
    """`manifest.json`.

    Attributes:
        format: version of this record.
        recipe: what the recipe says, defaults filled in; `recipe_sha256` is the hash of its canonical form.
        versions: of the packages that decide the bytes.
    """

    format: int
    name: str
    seed: int
    recipe_sha256: str
    sources: tuple[SourceUse, ...]
    files: dict[Split, FileUse]
    audit: AuditResult
    versions: dict[str, str]
    recipe: dict[str, Any]


class DataSet(Struct, frozen=True):
    """A data set that was found whole.

    Attributes:
        sha256: of its manifest, in hex.
    """

    folder: Path
    manifest: Manifest
    sha256: str

    def rows(self, split: Split) -> Iterator[AnyRow]:
        """The rows of a split.

        Raises:
            BadRowError: the file was changed after the data set was opened.
        """
        return read_rows(self.folder / f"{split}.jsonl")


def open_data_set(folder: Path) -> DataSet:
    """Open a data set, checking the hash of every file of rows.

    Raises:
        ConfigError: it is none, or not whole.
    """
    raw = _read(folder)
    manifest = _decode(raw, folder)
    for split in SPLITS:
        _check_file(folder / f"{split}.jsonl", manifest.files.get(split), folder)
    return DataSet(folder, manifest, hashlib.sha256(raw).hexdigest())


def load_manifest(folder: Path) -> Manifest:
    """The manifest of a data set, once all its files are found to be those it names.

    Raises:
        ConfigError: it is none, or not whole.
    """
    return open_data_set(folder).manifest


def encode_manifest(manifest: Manifest) -> bytes:
    """The bytes of `manifest.json`, the same for the same manifest, readable by people."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="sorted"), indent=2) + b"\n"


def _read(folder: Path) -> bytes:
    path = folder / MANIFEST
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_MANIFEST + 1)
    except FileNotFoundError:
        reason = f"{folder} is no data set: it has no {MANIFEST}"
        raise ConfigError(f"{reason}; make one with `macaron data build`", code="no_data_set") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) > MAX_MANIFEST:
        raise ConfigError(f"{path} is over {MAX_MANIFEST} bytes and no manifest")
    return raw


def _decode(raw: bytes, folder: Path) -> Manifest:
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ConfigError(f"{folder / MANIFEST} is no manifest of a data set: {error}", code="no_data_set") from None
    if manifest.format != FORMAT:
        raise ConfigError(
            f"{folder / MANIFEST} has format {manifest.format}, this version reads {FORMAT}; build it anew"
        )
    return manifest


def _check_file(path: Path, use: FileUse | None, folder: Path) -> None:
    remedy = f"{folder} is not whole; build it anew"
    if use is None or not path.is_file():
        raise ConfigError(f"{path} is missing: {remedy}", code="damaged_data_set")
    if path.stat().st_size != use.bytes or sha256_of(path, silent) != use.sha256:
        raise ConfigError(f"{path} is not the file that the manifest names: {remedy}", code="damaged_data_set")
