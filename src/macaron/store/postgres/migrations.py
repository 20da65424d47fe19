"""The schema, as ordered migrations. Services that start at once take turns by an advisory lock of the database.

A migration must leave a service of the version before working: in a rolling restart both run on one schema.
"""

from __future__ import annotations

from macaron.errors import ConfigError
from macaron.store.postgres.database import SCHEMA, Connection, connected, failures
from macaron.store.postgres.failures import config_error
from macaron.store.postgres.url import check_url, redacted

LOCK = 0x6D61_6361_726F
"""Held while a service migrates."""

OLDEST_SERVER = 13
WAIT_SECONDS = 60

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # Texts are bytes here: a client's may hold NUL, which PostgreSQL's text cannot, and no collation is wanted.
        """CREATE TABLE sessions (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            scope bytea NOT NULL,
            name bytea NOT NULL,
            steps bigint NOT NULL,
            bytes bigint NOT NULL,
            prompt_tokens bigint NOT NULL,
            completion_tokens bigint NOT NULL,
            touched double precision NOT NULL,
            UNIQUE (scope, name)
        ) WITH (fillfactor = 80)""",
        "CREATE INDEX sessions_touched ON sessions (touched, id)",
        "CREATE SEQUENCE steps_seq AS bigint",
        # place stands for scope and digest, asked_key for asked, head_key for the head: the indexes stay small, and
        # the bytes beside them decide. A parent's number is smaller than its children's, and none is given twice.
        """CREATE TABLE steps (
            seq bigint PRIMARY KEY,
            session bigint NOT NULL,
            parent bigint,
            scope bytea NOT NULL,
            id bytea NOT NULL,
            digest bytea NOT NULL,
            asked bytea NOT NULL,
            place bigint NOT NULL,
            asked_key integer NOT NULL,
            head_key integer NOT NULL,
            bytes bigint NOT NULL,
            summary bytea,
            note bytea,
            hops bytea,
            deleted boolean NOT NULL DEFAULT false,
            body bytea NOT NULL,
            UNIQUE (scope, id)
        )""",
        "CREATE INDEX steps_place ON steps (place, head_key, seq)",
        "CREATE INDEX steps_session ON steps (session, place, head_key, seq)",
        "CREATE INDEX steps_retry ON steps (parent, asked_key) WHERE parent IS NOT NULL",
        # Everybody's totals are the sum over the rows: with one row, no two replicas could commit at once.
        """CREATE TABLE counters (
            shard integer PRIMARY KEY,
            steps bigint NOT NULL,
            sessions bigint NOT NULL,
            bytes bigint NOT NULL,
            prompt_tokens bigint NOT NULL,
            completion_tokens bigint NOT NULL
        ) WITH (fillfactor = 20)""",
        # Tokens of sessions that were evicted, of scopes that have others.
        """CREATE TABLE past (
            scope bytea PRIMARY KEY,
            prompt_tokens bigint NOT NULL,
            completion_tokens bigint NOT NULL
        )""",
        """CREATE TABLE config (
            id integer PRIMARY KEY CHECK (id = 0),
            generation bigint NOT NULL,
            document bytea NOT NULL
        )""",
        "INSERT INTO config (id, generation, document) VALUES (0, 0, '')",
    ),
    (
        # Responses and conversations. next is the position of the next entry, which is never given twice.
        """CREATE TABLE records (
            seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            scope bytea NOT NULL,
            id bytea NOT NULL,
            owner bytea NOT NULL,
            root bytea NOT NULL,
            parent bytea,
            created double precision NOT NULL,
            open boolean NOT NULL,
            lease double precision NOT NULL,
            touched double precision NOT NULL,
            bytes bigint NOT NULL,
            next bigint NOT NULL DEFAULT 0,
            body bytea NOT NULL,
            UNIQUE (scope, id)
        ) WITH (fillfactor = 80)""",
        "CREATE INDEX records_root ON records (scope, root)",
        "CREATE INDEX records_parent ON records (scope, parent) WHERE parent IS NOT NULL",
        "CREATE INDEX records_touched ON records (touched) WHERE root = id",
        """CREATE TABLE entries (
            record bigint NOT NULL,
            position bigint NOT NULL,
            id bytea NOT NULL,
            body bytea NOT NULL,
            PRIMARY KEY (record, position)
        )""",
        "CREATE INDEX entries_id ON entries (record, id) WHERE id <> ''",
        """CREATE TABLE kept (
            shard integer PRIMARY KEY,
            records bigint NOT NULL,
            bytes bigint NOT NULL
        ) WITH (fillfactor = 20)""",
    ),
)

VERSION = len(MIGRATIONS)


async def migrate(url: str) -> None:
    """Create the tables, in the schema `macaron` of the database, or bring them to this version.

    Raises:
        ConfigError: the server cannot be reached or is too old, the database is of a newer version, or the user lacks
            the right.
    """
    check_url(url)
    try:
        async with connected(url, command_seconds=WAIT_SECONDS) as connection:
            await check_server(url, connection)
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'")
                await connection.execute(f"SET LOCAL statement_timeout = '{WAIT_SECONDS}s'")
                await connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
                await _migrate(url, connection)
    except failures() as error:
        raise config_error(url, error) from error


async def check_server(url: str, connection: Connection) -> None:
    """Refuse a server that is too old.

    Raises:
        ConfigError: it is.
    """
    (number,) = await connection.fetchrow("SELECT current_setting('server_version_num')::int")
    if number < OLDEST_SERVER * 10_000:
        raise ConfigError(
            f"store {redacted(url)}: the server is PostgreSQL {number // 10_000}; use {OLDEST_SERVER} or newer",
            param="store.url",
        )


async def check_schema(url: str, connection: Connection) -> None:
    """Refuse a database that this version cannot work with.

    Raises:
        ConfigError: it was not migrated, or its schema is older or newer.
    """
    version = await _version(url, connection)
    if version < VERSION:
        raise ConfigError(
            f"store {redacted(url)} has schema {version}, this version needs {VERSION}: migrate it before workers "
            "start",
            param="store.url",
        )


async def _migrate(url: str, connection: Connection) -> None:
    version = await _version(url, connection)
    if version == 0:
        # IF NOT EXISTS asks for the right to create it even where it is there.
        if await connection.fetchrow("SELECT 1 FROM pg_namespace WHERE nspname = $1", SCHEMA) is None:
            await connection.execute(f"CREATE SCHEMA {SCHEMA}")
        await connection.execute("CREATE TABLE migrations (version integer PRIMARY KEY, applied timestamptz NOT NULL)")
    for number, statements in enumerate(MIGRATIONS[version:], version + 1):
        for statement in statements:
            await connection.execute(statement)
        await connection.execute("INSERT INTO migrations (version, applied) VALUES ($1, now())", number)


async def _version(url: str, connection: Connection) -> int:
    """The schema's version, 0 where there is none."""
    (there,) = await connection.fetchrow("SELECT to_regclass($1) IS NOT NULL", f"{SCHEMA}.migrations")
    if not there:
        return 0
    (version,) = await connection.fetchrow("SELECT coalesce(max(version), 0) FROM migrations")
    if version > VERSION:
        raise ConfigError(
            f"store {redacted(url)} has schema {version}, newer than this version's {VERSION}: update, "
            "or name another database",
            param="store.url",
        )
    return int(version)
