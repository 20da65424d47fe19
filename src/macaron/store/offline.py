"""A store's file, looked at from outside of its service."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from macaron.conversation import Step
from macaron.store.cache import StepCache
from macaron.store.codec import KEPT
from macaron.store.connection import connect
from macaron.store.failures import config_error
from macaron.store.reads import Reads

SCOPES = "SELECT name FROM scopes s WHERE id > 0 AND EXISTS (SELECT 1 FROM steps WHERE scope = s.id AND id = ?)"
# The whole file is read: nothing that is served looks for revisions.
ANSWERS = f"SELECT count(*) FROM bodies WHERE json_extract(CAST(body AS TEXT), '$[{KEPT.index('revision')}]') = ?"
BUSY_SECONDS = 5.0


class StoreFile:
    """Open for reading until the block ends.

    Raises:
        ConfigError: it is not there or cannot be read; also from every method.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db = connect(path, "ro", "normal", BUSY_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def step(self, step_id: str) -> Step | None:
        """The step of a response id, whoever's it is; None where it is not known."""
        scopes = self._rows(SCOPES, step_id)
        if not scopes:
            return None
        path = Reads(StepCache(0)).path(self._db.cursor(), scopes[0][0], step_id)
        return path[-1] if path else None

    def answers(self, revision: str) -> int:
        """Steps of a revision that are kept."""
        count: int = self._rows(ANSWERS, revision)[0][0]
        return count

    def document(self) -> bytes:
        """The registry's document in force; empty where none was put."""
        document: bytes = self._rows("SELECT document FROM config")[0][0]
        return document

    def _rows(self, statement: str, *values: str) -> list[Any]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise config_error(self._path, error) from error
