"""Eviction of whole sessions, least recently used first, by one process at a time, whichever replica it belongs to.

It goes in slices, so that no transaction is long. A step whose parent lived in an evicted session stays, and becomes
the first of what `path` returns. A session larger than a slice goes oldest steps first; one that is used in the
meantime is no longer the least recently used, and keeps what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from macaron.store.base import Limits
from macaron.store.postgres.database import Connection
from macaron.store.postgres.reads import EVERYBODY
from macaron.store.postgres.writes import COUNT

LOCK = 0x6D61_6361_726F_01
"""Held by who evicts, till the end of the transaction."""

SLICE = 2000
"""Most steps that one transaction evicts."""

SLICE_BYTES = 33_554_432
"""About the most bytes that it evicts, as far as the steps of a session are of one size."""

SESSIONS = 200
"""Most sessions that it evicts."""

# One that is in use at this moment is not the least recently used for long: it is passed over.
OLDEST = """
SELECT id, scope, steps, bytes, touched FROM sessions ORDER BY touched, id LIMIT $1 FOR UPDATE SKIP LOCKED"""

KEEP_TOKENS = """
INSERT INTO past AS p (scope, prompt_tokens, completion_tokens)
SELECT scope, sum(prompt_tokens)::bigint, sum(completion_tokens)::bigint FROM sessions WHERE id = ANY($1::bigint[])
GROUP BY scope
ON CONFLICT (scope) DO UPDATE SET prompt_tokens = p.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = p.completion_tokens + excluded.completion_tokens"""

FORGET_SCOPES = """
DELETE FROM past WHERE scope = ANY($1::bytea[])
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.scope = past.scope OFFSET 0)"""

SHORTEN = """
WITH gone AS (
    DELETE FROM steps WHERE seq IN (SELECT seq FROM steps WHERE session = $1 ORDER BY seq LIMIT $2) RETURNING bytes
), lost AS (SELECT count(*) AS steps, coalesce(sum(bytes), 0)::bigint AS bytes FROM gone)
UPDATE sessions SET steps = sessions.steps - lost.steps, bytes = sessions.bytes - lost.bytes
FROM lost WHERE id = $1 RETURNING lost.steps, lost.bytes"""

UNCOUNT = COUNT.format(values="VALUES ($1::int, $2::bigint, $3::bigint, $4::bigint, 0, 0)")


class Slice(NamedTuple):
    """What one slice did: sessions that are gone, and whether there may be more to do."""

    sessions: int
    more: bool


class Session(NamedTuple):
    """One of the least recently used sessions."""

    id: int
    scope: bytes
    steps: int
    size: int
    touched: float

    @property
    def share(self) -> float:
        """Its part of a slice."""
        return max(self.steps / SLICE, self.size / SLICE_BYTES, 1 / SESSIONS)


async def expire(connection: Connection, limits: Limits, now: float, shard: int) -> Slice:
    """Evict one slice of the sessions beyond the limits; nothing where another process does it."""
    async with connection.transaction():
        (mine,) = await connection.fetchrow(f"SELECT pg_try_advisory_xact_lock({LOCK})")
        if not mine:
            return Slice(0, False)
        _, sessions, size, _, _ = await connection.fetchrow(EVERYBODY)
        oldest = [Session(*row) for row in await connection.fetch(OLDEST, SESSIONS)]
        doomed = beyond(oldest, sessions, size, limits, now)
        if not doomed:
            return Slice(0, False)
        whole = within(doomed)
        if not whole:
            await _shorten(connection, doomed[0], shard)
            return Slice(0, True)
        await _evict(connection, whole, shard)
        return Slice(len(whole), len(whole) < len(doomed) or len(doomed) == len(oldest) == SESSIONS)


def beyond(oldest: Sequence[Session], sessions: int, size: int, limits: Limits, now: float) -> list[Session]:
    """Those of the oldest that must go for the limits to hold."""
    doomed = []
    for session in oldest:
        if size <= limits.max_bytes and sessions <= limits.max_sessions and session.touched >= now - limits.max_age:
            break
        doomed.append(session)
        sessions -= 1
        size -= session.size
    return doomed


def within(doomed: Sequence[Session]) -> list[Session]:
    """Those that fit into one slice whole; none where the first alone does not."""
    left, whole = 1.0, []
    for session in doomed:
        left -= session.share
        if left < -1e-9:
            break
        whole.append(session)
    return whole


async def _evict(connection: Connection, whole: Sequence[Session], shard: int) -> None:
    ids = [session.id for session in whole]
    await connection.execute(KEEP_TOKENS, ids)
    await connection.execute("DELETE FROM steps WHERE session = ANY($1::bigint[])", ids)
    await connection.execute("DELETE FROM sessions WHERE id = ANY($1::bigint[])", ids)
    await connection.execute(FORGET_SCOPES, list({session.scope for session in whole}))
    steps, size = sum(session.steps for session in whole), sum(session.size for session in whole)
    await connection.execute(UNCOUNT, shard, -steps, -len(whole), -size)


async def _shorten(connection: Connection, session: Session, shard: int) -> None:
    count = max(1, int(session.steps / session.share))
    steps, size = await connection.fetchrow(SHORTEN, session.id, count)
    await connection.execute(UNCOUNT, shard, -steps, 0, -size)
