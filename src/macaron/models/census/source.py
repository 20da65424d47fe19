"""Reading the beginning of a file that somebody else wrote: a real file, inside the folder looked at, bounded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from macaron.errors import ConfigError

MAX_CONFIG_BYTES = 4_194_304


@contextmanager
def opened(path: Path, root: Path) -> Iterator[tuple[IO[bytes], int]]:
    """A file without read-ahead, and its size.

    Raises:
        ConfigError: it is not there, no regular file, or a link leads out of `root`, which is without links itself.
    """
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(root):
            remedy = "put the file itself there, or name the folder it is in"
            raise ConfigError(f"{path} is a link out of {root}, to {real}; {remedy}", code="link_out_of_folder")
        # Opening a pipe would wait for its writer.
        descriptor = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb", buffering=0) as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ConfigError(f"{path} is not a regular file")
            yield file, status.st_size
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path} cannot be read: {reason}") from None


def read_object(path: Path, root: Path, limit: int = MAX_CONFIG_BYTES) -> dict[str, Any]:
    """A JSON object of at most `limit` bytes.

    Raises:
        ConfigError: it cannot be read, or is not that.
    """
    with opened(path, root) as (file, size):
        if size > limit:
            raise ConfigError(f"{path} has {size} bytes, more than the {limit} that such a file can need")
        raw = file.read(limit)
    table: dict[str, Any] = decoded(raw, dict[str, Any], path)
    return table


def decoded(raw: bytes, kind: Any, path: Path) -> Any:
    """JSON as a type.

    Raises:
        ConfigError: it is not JSON of that type, or is nested too deeply.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply to be what it should be") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not usable: {error}; fetch or save it again") from None


def printable(text: str, length: int = 80) -> str:
    """Text that a file names, safe for a terminal."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in text[: length + 1])
    return clean if len(clean) <= length else f"{clean[: length - 1]}…"
