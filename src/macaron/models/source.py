"""Reading files that somebody else wrote: real files, inside the folder that was named, bounded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from macaron.errors import ConfigError
from macaron.models.document import DuplicateKeyError, NotAnObjectError, parse_object

MAX_DOCUMENT_BYTES = 4_194_304


def root_of(path: Path) -> Path:
    """The folder, free of links, that links in the folder `path` must not lead out of: itself, or that of all snapshots
    where `path` is one of a hub's cache, which keeps the files beside its snapshots.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return real.parent.parent if real.parent.name == "snapshots" else real


@contextmanager
def opened(path: Path, root: Path | None = None, *, buffering: int = 0) -> Iterator[tuple[IO[bytes], int]]:
    """A file, read without read-ahead unless `buffering` says so, and its size.

    Args:
        root: as from `root_of`; None where a person named this very file.

    Raises:
        ConfigError: it is not there, no regular file, or a link leads out of `root`.
    """
    try:
        real = path.resolve(strict=True)
        if root is not None and not real.is_relative_to(root):
            remedy = "put the file itself there, or name the folder it is in"
            raise ConfigError(f"{path} is a link out of {root}, to {real}; {remedy}", code="link_out_of_folder")
        with open(real, "rb", buffering=buffering, opener=_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ConfigError(f"{path} is not a regular file")
            yield file, status.st_size
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def read_object(path: Path, root: Path | None = None, limit: int = MAX_DOCUMENT_BYTES) -> dict[str, Any]:
    """A JSON object of at most `limit` bytes.

    Raises:
        ConfigError: it cannot be read, or is not that.
    """
    with opened(path, root) as (file, size):
        if size > limit:
            raise ConfigError(f"{path} has {size} bytes, more than the {limit} that such a file can need")
        raw = read_at(file, path, 0, size)
    try:
        return parse_object(raw)
    except (NotAnObjectError, DuplicateKeyError) as error:
        raise ConfigError(f"{path} is no usable JSON object: {printable(str(error), 160)}") from None


def read_at(file: IO[bytes], path: Path, start: int, size: int) -> bytes:
    """Exactly `size` bytes of `file`, which is the one at `path`, from `start` on.

    Raises:
        ConfigError: the file has become shorter; its code is `changed`.
    """
    file.seek(start)
    raw = file.read(size)
    # An unbuffered read may give less than is there.
    while len(raw) < size:
        if not (part := file.read(size - len(raw))):
            raise changed(path)
        raw += part
    return raw


def changed(path: Path) -> ConfigError:
    """The error that a file is no longer the one whose beginning was read."""
    return ConfigError(f"{path} changed while it was read; start again when it is complete", code="changed")


def printable(text: str, length: int = 80) -> str:
    """Text that a file names, safe for a terminal."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in text[: length + 1])
    return clean if len(clean) <= length else f"{clean[: length - 1]}…"


def _without_waiting(path: str, flags: int) -> int:
    """Opening a pipe would wait for its writer."""
    return os.open(path, flags | os.O_NONBLOCK)
