"""Creating, migrating, opening and locking a store's file."""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.store import acquire, database_path, lock_file, migrate, migrations, open_store
from macaron.store.base import Limits

NOBODY = 65534


def open_at(path: Path) -> None:
    open_store(f"sqlite://{path}", limits=Limits(), durability="normal")


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder that this user, no longer root, may not write."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        migrate(path / "store.db")
        path.chmod(0o555)
        (path / "store.db").chmod(0o444)
        root = os.geteuid() == 0
        if root:
            os.seteuid(NOBODY)
        try:
            yield path / "store.db"
        finally:
            if root:
                os.seteuid(0)
            path.chmod(0o755)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_can_read_the_file_and_its_new_folder(database: Path) -> None:
    assert (mode(database), mode(database.parent)) == (0o600, 0o700)


async def test_only_the_owner_can_read_the_files_beside_it(database: Path) -> None:
    store = open_store(f"sqlite://{database}", limits=Limits(), durability="normal")
    await store.ping()
    assert {mode(path) for path in database.parent.iterdir()} == {0o600}
    assert len(list(database.parent.iterdir())) == 3
    await store.close()


def test_migrating_again_changes_nothing(database: Path) -> None:
    before = database.read_bytes()
    migrate(database)
    assert database.read_bytes() == before


def test_a_first_document_which_was_a_digest_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    with monkeypatch.context() as first:
        first.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:1])
        migrate(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE config SET generation = 3, document = 'hcp1:00'")
    migrate(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT generation, document FROM config").fetchone() == (3, b"")


def test_a_migrated_file_is_in_wal_mode(database: Path) -> None:
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_opening_does_not_create_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.db cannot be opened"):
        open_at(tmp_path / "nothing.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.db").touch()
    with pytest.raises(ConfigError, match=rf"store\.db has schema 0, this version needs {migrations.VERSION}"):
        open_at(tmp_path / "store.db")


@pytest.mark.parametrize("entrance", [open_at, migrate])
def test_a_newer_schema_is_refused(database: Path, entrance: type) -> None:
    with closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigError, match=f"schema 99, newer than this version's {migrations.VERSION}"):
        entrance(database)


@pytest.mark.parametrize("entrance", [open_at, migrate])
def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path, entrance: type) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="another program"):
        entrance(path)
    assert path.read_bytes() == before


def test_an_old_sqlite_is_refused(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(ConfigError, match=r"use one with 3\.35\.0 or newer"):
        open_at(database)


@pytest.mark.parametrize("entrance", [open_at, migrate])
@pytest.mark.parametrize("offset", [0, 100])
def test_a_damaged_file_is_named_with_the_remedy(database: Path, entrance: type, offset: int) -> None:
    with database.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xa5" * 3000)
    with pytest.raises(ConfigError, match=r"store\.db cannot be opened.*restore a backup"):
        entrance(database)


def test_a_read_only_folder_is_named_with_the_remedy(read_only: Path) -> None:
    for entrance in (open_at, migrate, acquire):
        with pytest.raises(ConfigError, match=r"store\.db cannot be opened: .*; make the file and its folder writable"):
            entrance(read_only)


@pytest.mark.parametrize(
    "url", ["", "sqlite://", "sqlite:///", "sqlite://relative.db", "postgres://x/y", "/x", "memory"]
)
def test_a_url_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="use 'sqlite:///absolute/path', 'postgresql://"):
        database_path(url)


def test_a_url_names_its_file() -> None:
    assert database_path("sqlite:///a b/ü?#%41.db") == Path("/a b/ü?#%41.db")
    assert database_path("memory:") is None


async def test_a_file_with_an_odd_name_is_opened_as_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=memory#%41.db"
    migrate(path)
    store = open_store(f"sqlite://{path}", limits=Limits(), durability="full")
    await store.ping()
    await store.close()
    assert os.listdir(tmp_path) == [path.name]


def test_a_second_service_is_refused_with_the_first_ones_process(database: Path) -> None:
    with acquire(database), pytest.raises(ConfigError, match=rf"store\.db is in use .* process {os.getpid()}:"):
        acquire(database)


def test_a_released_store_can_be_taken_again(database: Path) -> None:
    acquire(database).release()
    with acquire(database):
        assert lock_file(database).read_text() == f"{os.getpid()}\n"
    assert mode(lock_file(database)) == 0o600
