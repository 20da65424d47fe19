"""What SQLite's errors mean to an operator."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from macaron.errors import ConfigError, MacaronError, StoreError

_ACCESS = "make the file and its folder writable for this user"

_SPACE = "free disk space, or lower [store] max_bytes"

_PRIMARY = 0xFF
"""Mask of the primary result code in an extended one."""


def store_error(path: Path, error: Exception) -> MacaronError:
    """The error of one operation on an open store, chained to its cause."""
    if isinstance(error, MacaronError):
        return error
    failure = StoreError(f"store {path}: {error or type(error).__name__}; {_remedy(error)}")
    failure.__cause__ = error
    return failure


def config_error(path: Path, error: Exception) -> ConfigError:
    """The error of a store that cannot be opened."""
    return ConfigError(f"store {path} cannot be opened: {error}; {_remedy(error)}", param="store.url")


def _remedy(error: Exception) -> str:
    if isinstance(error, OSError):
        return _SPACE if error.errno == errno.ENOSPC else _ACCESS
    match getattr(error, "sqlite_errorcode", 0) & _PRIMARY:
        case sqlite3.SQLITE_FULL:
            return _SPACE
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "another program holds the database: end it"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return "the file is damaged: restore a backup, or move it away to begin with an empty store"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return _ACCESS
        case sqlite3.SQLITE_IOERR:
            return "check the disk and the free space on it"
        case _:
            return "see the message of the database"
