"""What is kept between requests. The supervisor calls `acquire` and `migrate`, then every worker `open_store`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from macaron.errors import ConfigError
from macaron.hcp.schema import StoreSection
from macaron.store.base import Limits, Store
from macaron.store.lock import ServiceLock, acquire, lock_file
from macaron.store.memory import MemoryStore
from macaron.store.migrations import migrate
from macaron.store.sqlite import SqliteStore

__all__ = ["ServiceLock", "acquire", "database_path", "lock_file", "migrate", "open_store", "store_limits"]

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
    """Open a store; a file must have been migrated. It blocks: do it before the event loop runs or on a thread.

    Threads begin here, so a process that forks opens its store afterwards.

    Args:
        url: `sqlite:///absolute/path` or `memory:`.
        durability: `normal` survives a killed process, `full` also a power cut.
        cache_bytes: memory for steps kept between requests, in this process.
        busy_timeout: seconds to wait for another process that writes.
        clock: Unix time in seconds.

    Raises:
        ConfigError: the URL is not understood; the file is not there, damaged, not migrated, newer or not accessible.
    """
    path = database_path(url)
    if path is None:
        return MemoryStore(limits, clock)
    return SqliteStore(
        path, limits=limits, durability=durability, cache_bytes=cache_bytes, busy_timeout=busy_timeout, clock=clock
    )


def database_path(url: str) -> Path | None:
    """The file that a store's URL names, None for the store in memory.

    Raises:
        ConfigError: the URL is neither `memory:` nor `sqlite:///` with an absolute path.
    """
    if url == "memory:":
        return None
    path = url.removeprefix(_SQLITE)
    if path == url or not path.startswith("/") or path.endswith("/") or "\0" in path:
        raise ConfigError(
            f"[store] url {url!r} is not understood: use 'sqlite:///absolute/path' or 'memory:'", param="store.url"
        )
    return Path(path)
