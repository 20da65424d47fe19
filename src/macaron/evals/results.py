"""Results of cases, kept in a file while they come, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec
from msgspec.structs import replace

from macaron.errors import ConfigError
from macaron.evals.record import CaseResult

OUTPUT_CHARACTERS = 8000
ASKED = "asked"
MAX_FILE_BYTES = 1_073_741_824


def asked_digest(*parts: Any) -> str:
    """16 hex digits that name a question and who was asked; a result is used again only where they are the same."""
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:16]


class Results:
    """The results of one evaluation. Use it as a context manager; one process at a time.

    Raises:
        ConfigError: on entering, where the file cannot be used, a line of it is broken, or another process has it.
    """

    def __init__(self, path: Path | None) -> None:
        """`path` of a JSON Lines file that is made or gone on with; None keeps the results in memory only."""
        self._path = path
        self._file: IO[bytes] | None = None
        self._known: dict[tuple[str, str], CaseResult] = {}

    def __enter__(self) -> Results:
        if self._path is not None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("a+b")
            except OSError as error:
                raise ConfigError(f"{self._path} cannot be used: {error.strerror}; choose another --out") from None
            try:
                self._load(self._path, self._file)
            except BaseException:
                self._file.close()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def __iter__(self) -> Iterator[CaseResult]:
        """The latest result of every subject and case, the oldest first."""
        return iter(self._known.values())

    def find(self, subject: str, case: str, asked: str) -> CaseResult | None:
        """The result of a case that was asked in exactly this way, None where there is none."""
        found = self._known.get((subject, case))
        return found if found is not None and found.detail.get(ASKED) == asked else None

    def add(self, result: CaseResult, asked: str) -> CaseResult:
        """Keep a result; it is in the file when this returns. Gives it back as it is kept.

        Raises:
            ConfigError: the file cannot be written.
        """
        kept = replace(result, output=result.output[:OUTPUT_CHARACTERS], detail={**result.detail, ASKED: asked})
        if self._file is not None:
            try:
                self._file.write(msgspec.json.encode(kept) + b"\n")
                self._file.flush()
            except OSError as error:
                reason = f"{self._path} cannot be written: {error.strerror}; what is in it is kept, run it again"
                raise ConfigError(reason) from None
        self._known[kept.subject, kept.case] = kept
        return kept

    def _load(self, path: Path, file: IO[bytes]) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(f"{path} is being written by another process; wait for it or choose another") from None
        file.seek(0)
        raw = file.read(MAX_FILE_BYTES)
        whole = raw.rfind(b"\n") + 1
        # A process that was killed may have left half a line.
        file.truncate(whole)
        for number, line in enumerate(raw[:whole].splitlines(), 1):
            try:
                result = msgspec.json.decode(line, type=CaseResult)
            except msgspec.MsgspecError as error:
                raise ConfigError(f"{path}, line {number} is not a result: {error}; remove the line") from None
            self._known[result.subject, result.case] = result
