"""PostgreSQL as a store: one database for several proxies behind one address."""

from __future__ import annotations

from macaron.store.postgres.migrations import migrate
from macaron.store.postgres.store import PostgresStore
from macaron.store.postgres.url import SCHEME, check_url, redacted

__all__ = ["SCHEME", "PostgresStore", "check_url", "migrate", "redacted"]
