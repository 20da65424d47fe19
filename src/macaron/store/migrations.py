"""The schema, as ordered migrations, and who may run them: one process, before any worker opens the file.

Two processes that both turn a fresh file to WAL fail with "database is locked" whatever the time-out, so opening a
store never migrates.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from macaron.errors import ConfigError
from macaron.store.failures import config_error

APPLICATION_ID = 0x4D61634F
"""Marks the file as a store of ours, in SQLite's header."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # Row 0 is everybody. AUTOINCREMENT: a number that another process remembers never means another scope.
        """CREATE TABLE scopes (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT UNIQUE,
            steps INTEGER NOT NULL DEFAULT 0,
            sessions INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 0,
            prompt_tokens INTEGER NOT NULL DEFAULT 0,
            completion_tokens INTEGER NOT NULL DEFAULT 0
        )""",
        "INSERT INTO scopes (id, name) VALUES (0, NULL)",
        """CREATE TABLE sessions (
            id INTEGER PRIMARY KEY,
            scope INTEGER NOT NULL,
            name TEXT NOT NULL,
            steps INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            touched REAL NOT NULL,
            UNIQUE (scope, name)
        )""",
        "CREATE INDEX sessions_touched ON sessions (touched)",
        # The columns *_crc keep the indexes small; the texts beside them decide. A parent's number is always smaller
        # than its children's, and numbers are given upwards, so while a child is there its parent's is not reused.
        """CREATE TABLE steps (
            seq INTEGER PRIMARY KEY,
            scope INTEGER NOT NULL,
            session INTEGER NOT NULL,
            parent INTEGER,
            id TEXT NOT NULL,
            digest TEXT NOT NULL,
            asked TEXT NOT NULL,
            digest_crc INTEGER NOT NULL,
            asked_crc INTEGER NOT NULL,
            head_crc INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            summary TEXT,
            note TEXT,
            hops BLOB,
            deleted INTEGER NOT NULL DEFAULT 0,
            UNIQUE (scope, id)
        )""",
        "CREATE INDEX steps_digest ON steps (digest_crc, scope, head_crc)",
        "CREATE INDEX steps_session_digest ON steps (session, digest_crc, head_crc)",
        # A retry stands beside what it repeats. Parents are mostly recent, so this index grows at one end; one of the
        # questions alone would grow at random places, which costs twice as much.
        "CREATE INDEX steps_retry ON steps (parent, asked_crc) WHERE parent IS NOT NULL",
        # Apart from `steps`, so that a note or summary does not rewrite the content, and a path is walked densely.
        "CREATE TABLE bodies (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        """CREATE TABLE config (
            id INTEGER PRIMARY KEY CHECK (id = 0),
            generation INTEGER NOT NULL,
            document BLOB NOT NULL
        )""",
        "INSERT INTO config (id, generation, document) VALUES (0, 0, x'')",
    ),
    # The document was the contract's digest alone; it is written anew by the first worker.
    ("UPDATE config SET document = x''",),
    (
        # Responses and conversations. `next` is the position of the next entry, which is never given twice.
        """CREATE TABLE records (
            seq INTEGER PRIMARY KEY,
            scope TEXT NOT NULL,
            id TEXT NOT NULL,
            user TEXT NOT NULL,
            root TEXT NOT NULL,
            parent TEXT,
            created REAL NOT NULL,
            open INTEGER NOT NULL,
            lease REAL NOT NULL,
            touched REAL NOT NULL,
            bytes INTEGER NOT NULL,
            next INTEGER NOT NULL DEFAULT 0,
            body BLOB NOT NULL,
            UNIQUE (scope, id)
        )""",
        "CREATE INDEX records_root ON records (scope, root)",
        "CREATE INDEX records_parent ON records (scope, parent) WHERE parent IS NOT NULL",
        "CREATE INDEX records_touched ON records (touched) WHERE root = id",
        """CREATE TABLE entries (
            record INTEGER NOT NULL,
            position INTEGER NOT NULL,
            id TEXT NOT NULL,
            body BLOB NOT NULL,
            PRIMARY KEY (record, position)
        ) WITHOUT ROWID""",
        "CREATE INDEX entries_id ON entries (record, id) WHERE id != ''",
        "CREATE TABLE kept (records INTEGER NOT NULL, bytes INTEGER NOT NULL)",
        "INSERT INTO kept VALUES (0, 0)",
    ),
)

VERSION = len(MIGRATIONS)

OLDEST_SQLITE = (3, 35, 0)
"""The first with RETURNING."""


def migrate(path: Path) -> None:
    """Create the store's file (mode 0600, in a new folder 0700) or bring it to this version's schema.

    Raises:
        ConfigError: the file is damaged, not a store, of a newer version, or may not be written.
    """
    try:
        create_private(path)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=5.0)) as db:
            _check_owner(path, db)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("BEGIN IMMEDIATE")
            version = _version(path, db)
            for number, statements in enumerate(MIGRATIONS[version:], version + 1):
                for statement in statements:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute("COMMIT")
    except (sqlite3.Error, OSError) as error:
        raise config_error(path, error) from error


def check_schema(path: Path, db: sqlite3.Connection) -> None:
    """Refuse a file that this version cannot work with.

    Raises:
        ConfigError: it is not a store, or its schema is older or newer.
    """
    _check_owner(path, db)
    version = _version(path, db)
    if version < VERSION:
        raise ConfigError(
            f"store {path} has schema {version}, this version needs {VERSION}: migrate it before workers start",
            param="store.url",
        )


def create_private(path: Path) -> None:
    """Create an empty file that only its owner can read, and its folder likewise, where they are not there.

    Raises:
        OSError: the folder may not be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _check_owner(path: Path, db: sqlite3.Connection) -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise ConfigError(f"this Python has SQLite {sqlite3.sqlite_version}: use one with {needed} or newer")
    owner = db.execute("PRAGMA application_id").fetchone()[0]
    fresh = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if owner != APPLICATION_ID and not fresh:
        raise ConfigError(f"{path} is a database of another program: give [store] url another file", param="store.url")


def _version(path: Path, db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise ConfigError(
            f"store {path} has schema {version}, newer than this version's {VERSION}: update, or give another file",
            param="store.url",
        )
    return version
