"""Creating and migrating the tables, by several services at once."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest

from macaron.errors import ConfigError
from macaron.store import taken
from macaron.store.base import Limits
from macaron.store.postgres import PostgresStore, migrate, migrations
from macaron.store.postgres.migrations import VERSION
from tests.postgres_server import PASSWORD, USER, PostgresServer
from tests.store.steps import make
from tests.store.test_records import make as record


async def test_services_that_start_at_once_take_turns(postgres: PostgresServer) -> None:
    name = postgres.fresh(migrated=False)
    url = postgres.url(name)
    await asyncio.gather(*(migrate(url) for _ in range(4)))
    applied = postgres.ask(name, "SELECT version FROM macaron.migrations")
    assert [row["version"] for row in applied] == list(range(1, VERSION + 1))
    store = PostgresStore(url, limits=Limits())
    await store.put_steps([make("s")])
    assert await store.path("t", "s") == (make("s"),)
    await store.close()


async def test_a_schema_of_the_version_before_is_brought_up_while_a_service_uses_it(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.url(postgres.fresh(migrated=False))
    with monkeypatch.context() as before:
        before.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:1])
        before.setattr(migrations, "VERSION", 1)
        await migrate(url)
        old = PostgresStore(url, limits=Limits())
        await old.put_steps([make("before")])
    await migrate(url)
    await old.put_steps([make("after", make("before"))])
    new = PostgresStore(url, limits=Limits())
    await new.put_record(record("r"))
    assert await new.record("t", "r") == record("r")
    assert [step.id for step in await new.path("t", "after")] == ["before", "after"]
    for store in (old, new):
        await store.close()


async def test_two_services_may_have_the_store_at_once(address: str) -> None:
    async with taken(address), taken(address):
        pass


async def test_a_database_that_was_not_migrated_is_refused(postgres: PostgresServer) -> None:
    store = PostgresStore(postgres.url("postgres"), limits=Limits())
    with pytest.raises(ConfigError, match=rf"has schema 0, this version needs {VERSION}"):
        await store.config()
    await store.close()


async def test_a_newer_schema_is_refused(postgres: PostgresServer) -> None:
    name = postgres.fresh()
    postgres.ask(name, "INSERT INTO macaron.migrations VALUES (99, now())")
    store = PostgresStore(postgres.url(name), limits=Limits())
    for entrance in (store.config, lambda: migrate(postgres.url(name))):
        with pytest.raises(ConfigError, match="has schema 99, newer than this version's"):
            await entrance()
    await store.close()


async def test_a_database_that_is_not_there_is_named_with_the_remedy(postgres: PostgresServer) -> None:
    with pytest.raises(ConfigError, match=r"/nowhere cannot be opened: .*3D000.*create the database"):
        await migrate(postgres.url("nowhere"))


async def test_a_wrong_password_is_refused_and_not_shown(postgres: PostgresServer) -> None:
    right = postgres.url("migrated", password=True)
    await migrate(right)
    wrong = right.replace(quote(PASSWORD, safe=""), "hunter2")
    with pytest.raises(ConfigError, match=r"//\*\*\*@127.0.0.1:\d+/migrated cannot be opened: .*check user") as told:
        await migrate(wrong)
    assert "hunter2" not in str(told.value)
    assert USER not in str(told.value).replace(f"{USER} serve", "")


async def test_a_server_that_does_not_run_is_named_with_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"cannot be opened: .*check that the server runs"):
        await migrate("postgresql://u:hunter2@127.0.0.1:1/d")
