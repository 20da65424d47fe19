"""What a merged model was made of, as it is written beside it."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

RECORD_FILE = "macaron-merge.json"
METHOD = "W + scale * (B @ A), computed in float32"
UNKNOWN = "unknown"


class Merged(Struct, frozen=True):
    """What a merge has done.

    Attributes:
        format: of the base and of the result.
        base_sha256: over the base's weights, in hex: of the file, or of the lines `<hash>  <name>` of its files.
        scale: how often B·A counted.
        dtypes: how many changed tensors were written in which type.
        tensors: of the base; the others were copied byte by byte.
        files: SHA-256 of every file with weights.
    """

    format: str
    base_sha256: str
    rank: int
    scale: float
    dtypes: dict[str, int]
    tensors: int
    files: dict[str, str]


class Part(Struct, frozen=True):
    """A base or an adapter: its name, its fingerprint or revision, and its licence as its own files name it."""

    name: str
    revision: str
    licence: str = UNKNOWN


class MergeRecord(Struct, frozen=True):
    """The file `macaron-merge.json`."""

    base: Part
    adapter: Part
    profile: str
    digest: str
    merged: Merged
    method: str = METHOD
    version: int = 1


def write_record(folder: Path, record: MergeRecord) -> None:
    """Write the record into the folder of the merged model.

    Raises:
        OSError: it cannot be written.
    """
    (folder / RECORD_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
