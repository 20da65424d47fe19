"""The file of recorded turns: SQLite in WAL mode, made by one process before others open it."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal

from macaron.errors import ConfigError

APPLICATION_ID = 0x4D616345
VERSION = 1
BUSY_SECONDS = 5.0
SUFFIX = ".experience"

SCHEMA = (
    """CREATE TABLE consents (
        id INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL,
        consent TEXT NOT NULL,
        licence TEXT NOT NULL,
        UNIQUE (tenant, consent, licence)
    )""",
    # What turns are looked for and counted by. No index: a command that looks for one turn may read them all, and each
    # index costs every turn that is served.
    """CREATE TABLE turns (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        tenant TEXT NOT NULL,
        session TEXT NOT NULL,
        parent TEXT,
        turn TEXT NOT NULL,
        question TEXT NOT NULL,
        label TEXT NOT NULL,
        revision TEXT NOT NULL,
        status TEXT NOT NULL,
        created REAL NOT NULL,
        consent INTEGER NOT NULL,
        bytes INTEGER NOT NULL
    )""",
    "CREATE TABLE bodies (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE totals (id INTEGER PRIMARY KEY CHECK (id = 0), turns INTEGER NOT NULL, bytes INTEGER NOT NULL)",
    "INSERT INTO totals VALUES (0, 0, 0)",
)


def experience_path(store: Path) -> Path:
    """Where the recorded turns of a service lie, by its store's file."""
    return store.with_suffix(SUFFIX)


def create(path: Path) -> None:
    """Make the file (mode 0600, in a new folder 0700) where it is not there. What a killed process left in its log is
    taken over.

    Raises:
        ConfigError: it is damaged, not of this kind, newer, or may not be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)) as db:
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                _check(path, db)
                return
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute("COMMIT")
    except (sqlite3.Error, OSError) as error:
        raise file_error(path, error) from error


def connect(path: Path, mode: Literal["rw", "ro"]) -> sqlite3.Connection:
    """Open a file that `create` has made.

    Raises:
        ConfigError: it is not there, damaged, not of this kind, or of another version.
    """
    if not path.is_file():
        raise ConfigError(
            f"there are no recorded turns at {path}: a service records where its contract has "
            "[[experience.tenants]] and its store is a file",
            code="no_experience",
        )
    try:
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        db = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            _check(path, db)
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA secure_delete = ON")
            # As the store's: moving the log into the file takes milliseconds.
            db.execute("PRAGMA wal_autocheckpoint = 4096")
        except BaseException:
            db.close()
            raise
    except sqlite3.Error as error:
        raise file_error(path, error) from error
    return db


def file_error(path: Path, error: Exception) -> ConfigError:
    """What went wrong with the file, and what to do."""
    full = getattr(error, "sqlite_errorname", "") == "SQLITE_FULL" or getattr(error, "errno", 0) == errno.ENOSPC
    remedy = "free disk space" if full else "make it accessible, or move it away to begin with an empty one"
    return ConfigError(f"the recorded turns in {path} cannot be used: {error}; {remedy}", code="bad_experience")


def _check(path: Path, db: sqlite3.Connection) -> None:
    owner = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if owner != APPLICATION_ID:
        raise ConfigError(f"{path} is no file of recorded turns; name another one", code="bad_experience")
    if version != VERSION:
        reason = f"{path} has version {version} of recorded turns, this Macaron reads {VERSION}"
        raise ConfigError(f"{reason}; update, or move it away", code="bad_experience")
