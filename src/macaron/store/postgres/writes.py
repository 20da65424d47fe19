"""What is written, as functions of a connection. The cost of a step depends on its own items only.

Whoever changes steps locks their sessions first, in the order of their names, then steps, then a row of the counters:
so nobody waits for somebody who waits for him.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from macaron.conversation import Hop
from macaron.store.base import Config, Totals
from macaron.store.codec import Codec, size_of
from macaron.store.postgres.database import Connection
from macaron.store.postgres.rows import Row, raw, text

SHARDS = 64
"""Rows that everybody's totals are spread over; a process always adds to the same one."""

COUNT = """
INSERT INTO counters AS c (shard, steps, sessions, bytes, prompt_tokens, completion_tokens)
{values}
ON CONFLICT (shard) DO UPDATE SET steps = c.steps + excluded.steps, sessions = c.sessions + excluded.sessions,
    bytes = c.bytes + excluded.bytes, prompt_tokens = c.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = c.completion_tokens + excluded.completion_tokens"""

# One statement, so one round trip and one transaction. Numbers are given in the order of the rows. A session is new
# where all its steps are of this statement. Everybody's totals come back as they are with it.
PUT = f"""
WITH given AS MATERIALIZED (
    SELECT nextval('steps_seq') AS seq, ordered.* FROM (
        SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[],
            $7::bigint[], $8::int[], $9::int[], $10::bigint[], $11::bigint[], $12::bigint[],
            $13::bytea[], $14::bytea[], $15::bytea[], $16::int[]) WITH ORDINALITY AS g
            (scope, session, id, parent, digest, asked, place, asked_key, head_key, bytes, prompt_tokens,
            completion_tokens, summary, note, body, parent_at, at)
        ORDER BY at) AS ordered
), grown AS MATERIALIZED (
    SELECT scope, session, count(*) AS steps, sum(bytes)::bigint AS bytes, sum(prompt_tokens)::bigint AS prompt_tokens,
        sum(completion_tokens)::bigint AS completion_tokens
    FROM given GROUP BY scope, session
), used AS (
    INSERT INTO sessions AS s (scope, name, steps, bytes, prompt_tokens, completion_tokens, touched)
    SELECT grown.*, $17::float8 FROM grown ORDER BY scope, session
    ON CONFLICT (scope, name) DO UPDATE SET steps = s.steps + excluded.steps, bytes = s.bytes + excluded.bytes,
        prompt_tokens = s.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = s.completion_tokens + excluded.completion_tokens,
        touched = greatest(s.touched, excluded.touched)
    RETURNING s.id, s.scope, s.name, s.steps
), put AS (
    INSERT INTO steps (seq, session, parent, scope, id, digest, asked, place, asked_key, head_key, bytes, summary, note,
        body)
    SELECT given.seq, used.id,
        coalesce(beside.seq, (SELECT p.seq FROM steps p WHERE p.scope = given.scope AND p.id = given.parent)),
        given.scope, given.id, given.digest, given.asked, given.place, given.asked_key, given.head_key, given.bytes,
        given.summary, given.note, given.body
    FROM given JOIN used ON used.scope = given.scope AND used.name = given.session
        LEFT JOIN given AS beside ON beside.at = given.parent_at
    ORDER BY given.seq
), added AS MATERIALIZED (
    SELECT coalesce(sum(grown.steps), 0)::bigint AS steps,
        count(*) FILTER (WHERE used.steps = grown.steps) AS sessions,
        coalesce(sum(grown.bytes), 0)::bigint AS bytes,
        coalesce(sum(grown.prompt_tokens), 0)::bigint AS prompt_tokens,
        coalesce(sum(grown.completion_tokens), 0)::bigint AS completion_tokens
    FROM grown JOIN used ON used.scope = grown.scope AND used.name = grown.session
), counted AS ({COUNT.format(values="SELECT $18::int, added.* FROM added")})
SELECT (coalesce(sum(c.sessions), 0) + (SELECT sessions FROM added))::bigint AS sessions,
    (coalesce(sum(c.bytes), 0) + (SELECT bytes FROM added))::bigint AS bytes
FROM counters c"""

HOLD = "SELECT id FROM sessions WHERE id = (SELECT session FROM steps WHERE scope = $1 AND id = $2) FOR UPDATE"

FIND = """
SELECT seq, bytes, summary, note, hops, deleted, CASE WHEN $3::bool THEN body END AS body
FROM steps WHERE scope = $1 AND id = $2"""

CHANGE = f"""
WITH changed AS (
    UPDATE steps SET summary = $2, note = $3, hops = $4, deleted = $5, body = coalesce($6, body), bytes = bytes + $7
    WHERE seq = $1 RETURNING session
), grown AS (
    UPDATE sessions SET bytes = bytes + $7, prompt_tokens = prompt_tokens + $8,
        completion_tokens = completion_tokens + $9
    WHERE id = (SELECT session FROM changed)
)
{COUNT.format(values="VALUES ($10::int, 0, 0, $7::bigint, $8::bigint, $9::bigint)")}"""

SET_CONFIG = """
UPDATE config SET generation = generation + 1, document = $2 WHERE generation = $1 RETURNING generation, document"""


class Found(NamedTuple):
    """The columns of a step that changes look at; `body` only where it was asked for."""

    seq: int
    size: int
    summary: bytes | None
    note: bytes | None
    hops: bytes | None
    deleted: bool
    body: bytes | None


class Change(Struct, frozen=True):
    """What becomes of a step. `body` is None where it stays; `grown` and the tokens are what is added."""

    summary: bytes | None
    note: bytes | None
    hops: bytes | None
    deleted: bool
    grown: int
    body: bytes | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


Edit = Callable[[Found], Change | None]


async def put(connection: Connection, rows: Sequence[Row], now: float, shard: int) -> Totals:
    """Write steps, all or none; returns everybody's sessions and bytes afterwards."""
    at = {(row.scope, row.id): number for number, row in enumerate(rows, 1)}
    beside = [at.get((row.scope, row.parent)) if row.parent is not None else None for row in rows]
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in Row._fields]
    sessions, size = await connection.fetchrow(PUT, *columns, beside, now, shard)
    return Totals(sessions=sessions, bytes=size)


async def change(
    connection: Connection, scope: str, step_id: str, edit: Edit, shard: int, *, body: bool = False
) -> Found | None:
    """Apply `edit` to a step that nobody else changes meanwhile; None from it leaves the step. Returns the step as it
    was, None where it is gone."""
    key = raw(scope), raw(step_id)
    async with connection.transaction():
        if await connection.fetchrow(HOLD, *key) is None:
            return None
        row = await connection.fetchrow(FIND, *key, body)
        if row is None:
            return None
        found = Found(*row)
        new = edit(found)
        if new is not None:
            kept = (found.seq, new.summary, new.note, new.hops, new.deleted, new.body)
            await connection.execute(CHANGE, *kept, new.grown, new.prompt_tokens, new.completion_tokens, shard)
    return found


def summarised(found: Found, codec: Codec, summary: str | None, hop: Hop | None) -> Change:
    """With a summary and a hop more. None leaves an earlier summary; a deleted step takes none."""
    hops = found.hops if hop is None else codec.append_hop(found.hops, hop)
    kept = found.summary if summary is None or found.deleted else raw(summary)
    grown = _size(kept) - _size(found.summary) + _size(hops) - _size(found.hops)
    prompt, completion = (hop.usage.prompt, hop.usage.completion) if hop else (0, 0)
    return Change(kept, found.note, hops, found.deleted, grown, prompt_tokens=prompt, completion_tokens=completion)


def noted(found: Found, note: str) -> Change | None:
    """With a note, where there is none."""
    if found.note is not None:
        return None
    stored = raw(note)
    return Change(found.summary, stored, found.hops, found.deleted, len(stored))


def emptied(found: Found, codec: Codec) -> Change | None:
    """Without content, summary and note, where that was not done before."""
    if found.deleted or found.body is None:
        return None
    body = codec.empty(found.body)
    return Change(None, b"", found.hops, True, size_of(body, None, None) + _size(found.hops) - found.size, body)


def note_of(found: Found | None, note: str) -> str:
    """The note in force after `noted`."""
    return note if found is None or found.note is None else text(found.note) or ""


async def compare_and_set(connection: Connection, generation: int, document: bytes) -> Config:
    """Replace the configuration of this generation; returns the one in force."""
    row: Any = await connection.fetchrow(SET_CONFIG, generation, document)
    return Config(*(row or await connection.fetchrow("SELECT generation, document FROM config")))


def _size(stored: bytes | None) -> int:
    return 0 if stored is None else len(stored)
