"""Connections to a PostgreSQL server: bounded in number and in time, opened when they are needed, replaced when they
are lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Protocol, TypeVar

from macaron.errors import ConfigError, MacaronError, StoreError
from macaron.store.postgres.failures import lost, store_error
from macaron.store.postgres.url import check_url

CONNECTIONS = 8
"""Most connections of one process; with workers and replicas they share the server's `max_connections`."""

WAITING = 4096
"""Most operations that wait for a connection, after which new ones are refused."""

CONNECT_SECONDS = 5.0
COMMAND_SECONDS = 10.0
"""For a connection, and for one statement's answer; the server gives up on its own before the second."""

IDLE_SECONDS = 300.0

SCHEMA = "macaron"

SETTINGS = {
    "application_name": "macaron",
    "search_path": SCHEMA,
    "default_transaction_isolation": "read committed",
    "statement_timeout": "8000",
    "lock_timeout": "5000",
    "idle_in_transaction_session_timeout": "15000",
    # Every statement of a request is a few searches in indexes: planning them again costs more than running them, and
    # a fresh table's statistics must not lead the planner elsewhere.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}

FLUSHED = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
"""A commit that is acknowledged is on the server's disk, whatever the server's default is."""

T = TypeVar("T")


class Connection(Protocol):
    """What is used of the driver's connections."""

    async def fetch(self, query: str, *values: object) -> list[Any]:
        """All rows."""
        ...

    async def fetchrow(self, query: str, *values: object) -> Any:
        """The first row, None where there is none."""
        ...

    async def execute(self, query: str, *values: object) -> str:
        """Run a statement for what it does."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Everything within it, or nothing."""
        ...


def driver() -> Any:
    """The module `asyncpg`.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import asyncpg
    except ImportError:
        raise ConfigError(
            "--store postgresql://… needs the package asyncpg: install it with `pip install 'macaron[postgres]'`",
            param="store.url",
        ) from None
    return asyncpg


def failures() -> tuple[type[Exception], ...]:
    """What the driver raises where the server or the way to it is at fault."""
    asyncpg = driver()
    # A connection that is closed as it is taken out of the pool may be an `InternalClientError`.
    return (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)


@asynccontextmanager
async def connected(url: str, *, command_seconds: float) -> AsyncGenerator[Connection, None]:
    """One connection, outside any pool. Raises what `failures` lists."""
    connection = await driver().connect(
        url, timeout=CONNECT_SECONDS, command_timeout=command_seconds, server_settings=SETTINGS
    )
    try:
        yield connection
    finally:
        with suppress(*failures()):
            await connection.close(timeout=CONNECT_SECONDS)


class Database:
    """A bounded pool, opened by its first use. Used from one event loop."""

    def __init__(self, url: str, check: Callable[[Connection], Awaitable[None]]) -> None:
        """`check` is run once on the first connection, and raises a `ConfigError` where the schema does not fit.

        Raises:
            ConfigError: the address is not understood, or the driver is not there.
        """
        check_url(url)
        self._url = url
        self._check = check
        self._failures = failures()
        self._pool: Any = None
        self._opening = asyncio.Lock()
        self._waiting = 0
        self._closed = False

    def check_open(self) -> None:
        """Raise a `StoreError` once the store is closed."""
        if self._closed:
            raise StoreError("the store is closed")

    async def run(self, work: Callable[[Connection], Awaitable[T]], *, again: bool = False) -> T:
        """Give `work` a connection; `again` says that it may be repeated where its connection was lost.

        Raises:
            StoreError: the server did not do it, or not in time; the cause is the driver's error.
        """
        self.check_open()
        if self._waiting >= WAITING:
            raise StoreError(f"{WAITING} operations wait for the store; try again later", retry_after=1.0)
        self._waiting += 1
        try:
            # The server may have closed all of the pool's connections, and each is noticed by its own failure only.
            for _ in range(CONNECTIONS if again else 0):
                try:
                    return await self._attempt(work)
                except StoreError as error:
                    if not lost(error.__cause__):
                        raise
            return await self._attempt(work)
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """Let what runs finish, and close all connections."""
        self._closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                await asyncio.wait_for(pool.close(), COMMAND_SECONDS)
            except self._failures:
                pool.terminate()

    async def _attempt(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        try:
            pool = self._pool or await self._open()
            async with pool.acquire(timeout=CONNECT_SECONDS) as connection:
                return await work(connection)
        except MacaronError:
            raise
        except self._failures as error:
            self.check_open()
            raise store_error(self._url, error) from error

    async def _open(self) -> Any:
        async with self._opening:
            if self._pool is None:
                pool = await driver().create_pool(
                    self._url,
                    min_size=0,
                    max_size=CONNECTIONS,
                    max_inactive_connection_lifetime=IDLE_SECONDS,
                    max_cached_statement_lifetime=0,
                    timeout=CONNECT_SECONDS,
                    command_timeout=COMMAND_SECONDS,
                    server_settings=SETTINGS,
                    init=_begin,
                    reset=_keep,
                )
                try:
                    async with pool.acquire(timeout=CONNECT_SECONDS) as connection:
                        await self._check(connection)
                except BaseException:
                    pool.terminate()
                    raise
                self._pool = pool
            return self._pool


async def _begin(connection: Connection) -> None:
    await connection.fetch(FLUSHED)


async def _keep(connection: Connection) -> None:
    """Nothing to reset: no statement here leaves anything in a session, and asking costs a round trip."""
