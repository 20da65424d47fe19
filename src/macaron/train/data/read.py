"""Reading rows: one JSON object a line, every line checked, a wrong one named by its number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from macaron.errors import ConfigError
from macaron.train.data.check import MAX_ROW, row_problem
from macaron.train.data.rows import AnyRow

CHUNK = 65_536
MAX_NAMED = 20


class BadRowError(ConfigError):
    """A row cannot be used."""

    default_code = "bad_row"


class BrokenRow(NamedTuple):
    """Where a row is, as `file:line` or a builder's name and number, and why it cannot be used."""

    place: str
    reason: str


@dataclass
class ReadReport:
    """What a reader met: rows that were given on, and broken ones, of which the first are named."""

    rows: int = 0
    broken: int = 0
    named: list[BrokenRow] = field(default_factory=list)

    def refuse(self, place: str, reason: str, skip_broken: bool) -> None:
        """Count a broken row.

        Raises:
            BadRowError: unless broken rows are to be skipped.
        """
        if not skip_broken:
            message = f"{place}: {reason}; correct it, or go on without such rows with --skip-broken"
            raise BadRowError(message, param=place)
        self.broken += 1
        if len(self.named) < MAX_NAMED:
            self.named.append(BrokenRow(place, reason))


def read_rows(path: Path, *, skip_broken: bool = False, report: ReadReport | None = None) -> Iterator[AnyRow]:
    """The rows of a JSONL file. Memory is bounded by the longest row and the ids; blank lines hold nothing.

    Args:
        skip_broken: leave out lines that are no rows, instead of stopping at the first.
        report: counts what is met.

    Raises:
        ConfigError: the file cannot be read.
        BadRowError: a line is longer than `MAX_ROW` bytes, is not a row, or its id was there before.
    """
    report = report if report is not None else ReadReport()
    decoder = msgspec.json.Decoder(AnyRow)
    first_lines: dict[str, int] = {}
    with _opened(path) as file:
        for number, line in enumerate(_lines(file), start=1):
            if not line.strip():
                continue
            found = _decoded(line, decoder)
            if not isinstance(found, str) and found.id in first_lines:
                found = f"the id {found.id!r} was already on line {first_lines[found.id]}"
            if isinstance(found, str):
                report.refuse(f"{path}:{number}", found, skip_broken)
                continue
            first_lines[found.id] = number
            report.rows += 1
            yield found


def _opened(path: Path) -> IO[bytes]:
    if not path.is_file():
        reason = "is not a regular file" if path.exists() else "does not exist"
        raise ConfigError(f"{path} {reason}; name a file of rows, one JSON object a line")
    try:
        return path.open("rb")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines; of one that is too long, only enough to see that it is."""
    while line := file.readline(MAX_ROW + 2):
        rest = line
        while len(line) > MAX_ROW and rest and not rest.endswith(b"\n"):
            rest = file.readline(CHUNK)
        yield line


def _decoded(line: bytes, decoder: msgspec.json.Decoder[AnyRow]) -> AnyRow | str:
    """The row, or why it is none."""
    if len(line.rstrip(b"\r\n")) > MAX_ROW:
        return f"the row is longer than {MAX_ROW} bytes, the most a row may have"
    try:
        row = decoder.decode(line)
    except msgspec.MsgspecError as error:
        return f"the row is not valid: {error}"
    except RecursionError:
        return "the row is nested too deeply"
    return row_problem(row) or row
