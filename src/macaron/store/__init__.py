"""What is kept between requests. The supervisor takes a store with `taken`, then every worker calls `open_store`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from macaron.errors import ConfigError
from macaron.hcp.schema import StoreSection
from macaron.store import postgres
from macaron.store.base import Limits, Store
from macaron.store.lock import ServiceLock, acquire, lock_file
from macaron.store.memory import MemoryStore
from macaron.store.migrations import migrate
from macaron.store.postgres import PostgresStore
from macaron.store.sqlite import SqliteStore

__all__ = [
    "ServiceLock",
    "acquire",
    "database_path",
    "is_shared",
    "lock_file",
    "migrate",
    "open_store",
    "store_limits",
    "taken",
]

_SQLITE = "sqlite://"


def store_limits(section: StoreSection) -> Limits:
    """The bounds that a contract sets."""
    return Limits(
        max_bytes=section.max_bytes,
        max_sessions=section.max_sessions,
        max_age=section.max_age,
        max_records=section.max_responses,
        max_record_bytes=section.max_response_bytes,
    )


def open_store(
    url: str,
    *,
    limits: Limits,
    durability: Literal["normal", "full"],
    cache_bytes: int = 8_388_608,
    busy_timeout: float = 5.0,
    clock: Callable[[], float] = time.time,
) -> Store:
    """Open a store that was migrated. It blocks: do it before the event loop runs or on a thread.

    Threads begin here, so a process that forks opens its store afterwards. A server is connected by the first use.

    Args:
        url: `sqlite:///absolute/path`, `postgresql://…/database` or `memory:`.
        durability: of a file: `normal` survives a killed process, `full` also a power cut. A server always writes what
            it acknowledges to its disk.
        cache_bytes: memory for steps kept between requests, in this process.
        busy_timeout: seconds to wait for another process that writes a file.
        clock: Unix time in seconds.

    Raises:
        ConfigError: the URL is not understood; the file is not there, damaged, not migrated, newer or not accessible;
            the driver of the server is not installed.
    """
    if is_shared(url):
        return PostgresStore(url, limits=limits, cache_bytes=cache_bytes, clock=clock)
    path = database_path(url)
    if path is None:
        return MemoryStore(limits, clock)
    return SqliteStore(
        path, limits=limits, durability=durability, cache_bytes=cache_bytes, busy_timeout=busy_timeout, clock=clock
    )


@asynccontextmanager
async def taken(url: str) -> AsyncGenerator[None, None]:
    """Take a store for this service, and bring it to this version's schema. A file has one service; a server has any
    number of them.

    Raises:
        ConfigError: another service has the file, or the store cannot be opened or migrated.
    """
    if is_shared(url):
        await postgres.migrate(url)
        yield
        return
    path = database_path(url)
    if path is None:
        yield
        return
    with acquire(path):
        await asyncio.to_thread(migrate, path)
        yield


def is_shared(url: str) -> bool:
    """Whether several services may use the store at once, on as many machines."""
    return url.startswith(postgres.SCHEME)


def database_path(url: str) -> Path | None:
    """The file that a store's URL names, None for a store that is no file.

    Raises:
        ConfigError: the URL is none that is understood.
    """
    if url == "memory:":
        return None
    if is_shared(url):
        postgres.check_url(url)
        return None
    path = url.removeprefix(_SQLITE)
    if path == url or not path.startswith("/") or path.endswith("/") or "\0" in path:
        raise ConfigError(
            f"[store] url {postgres.redacted(url)!r} is not understood: use 'sqlite:///absolute/path', "
            "'postgresql://user@host:port/database' or 'memory:'",
            param="store.url",
        )
    return Path(path)
