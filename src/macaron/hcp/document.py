"""Reading a document: bounded, UTF-8, TOML."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from macaron.errors import ConfigError
from macaron.hcp.lines import KeyPath, dotted, key_lines, line_of

MAX_DOCUMENT = 262_144
MAX_TEXT = 1_048_576
_AT_LINE = re.compile(r"\(at line (\d{1,9}), column \d{1,9}\)$")


class Problem(NamedTuple):
    """One thing that is wrong, and where."""

    path: KeyPath
    message: str


class Document(Struct, frozen=True):
    """A document as it was written. `path` is absolute and free of symbolic links."""

    path: Path
    table: Mapping[str, Any]
    lines: Mapping[KeyPath, int]

    @property
    def folder(self) -> Path:
        """Where the document's relative paths begin."""
        return self.path.parent

    def refuse(self, problems: Iterable[Problem]) -> ConfigError:
        """One error that lists every problem, in the order of the document's lines."""
        placed = sorted(((line_of(item.path, self.lines) or 0, item) for item in problems), key=lambda pair: pair[0])
        listed = [f"  {_place(line)}{dotted(item.path)}: {item.message}" for line, item in placed]
        count = "1 problem" if len(listed) == 1 else f"{len(listed)} problems"
        head = f"{self.path} cannot be used, {count}:"
        return ConfigError("\n".join([head, *listed]), param=dotted(placed[0][1].path))


def read_document(path: str | os.PathLike[str]) -> Document:
    """Read and parse a document.

    Raises:
        ConfigError: it cannot be read, is over 256 KiB, is not UTF-8, or is not TOML.
    """
    real = Path(path).expanduser().resolve()
    raw = read_bytes(real, MAX_DOCUMENT)
    try:
        text = raw.decode("utf-8")
        table = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{real} is not UTF-8: byte {error.start} cannot be decoded") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{real} is not TOML: {_AT_LINE.sub(_line_only, str(error))}") from None
    except RecursionError:
        raise ConfigError(f"{real} is nested too deeply to be a contract") from None
    return Document(path=real, table=table, lines=key_lines(text.replace("\r\n", "\n")))


def read_bytes(path: Path, limit: int) -> bytes:
    """Read a regular file; `path` must not be a symbolic link by now, so that it cannot be exchanged for one."""
    try:
        # A pipe would block the open, and a link put here after the check would lead elsewhere.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ConfigError(f"{path} is not a regular file")
    with open(handle, "rb") as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise ConfigError(f"{path} is over {limit} bytes, the most that is read")
    return raw


def _place(line: int) -> str:
    return f"line {line}: " if line else ""


def _line_only(match: re.Match[str]) -> str:
    return f"(line {match[1]})"
