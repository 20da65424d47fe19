"""What lies beside an adapter or a base and says where it comes from: the record of its training, its model card."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError

MAX_RUN_BYTES = 4_194_304
MAX_CARD_BYTES = 65_536


class Run(Struct, frozen=True):
    """What the record of an adapter's training, `run.json` beside it, says that matters here."""

    label: str = ""
    base_fingerprint: str = ""
    licence: str = ""


def read_run(folder: Path) -> Run:
    """The record of an adapter's training; empty where there is none.

    Raises:
        ConfigError: it cannot be read.
    """
    raw = _bounded(folder / "run.json", MAX_RUN_BYTES)
    if not raw:
        return Run()
    try:
        return msgspec.json.decode(raw, type=Run)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ConfigError(f"{folder / 'run.json'} is not the record of a run: {error}", param="adapter") from None


def card_licence(folder: Path) -> str:
    """What the model card, `README.md`, names between its first two lines of dashes."""
    text = _bounded(folder / "README.md", MAX_CARD_BYTES).decode("utf-8", "replace")
    if not text.startswith("---\n"):
        return ""
    head = text[4:].partition("\n---")[0]
    found = (line.partition(":")[2].strip(" '\"") for line in head.splitlines() if line.startswith("license:"))
    return next(found, "")[:100]


def _bounded(path: Path, limit: int) -> bytes:
    """The beginning of a file, empty where there is none."""
    try:
        with path.open("rb") as file:
            return file.read(limit)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
