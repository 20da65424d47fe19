"""What is read, as functions of a connection: one statement, and another for contents that this process has not.

A session may be evicted between the two; what is asked for is then looked up again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from macaron.conversation import Step
from macaron.errors import StoreError
from macaron.store.base import Config, Located, Lookup, Totals
from macaron.store.cache import StepCache
from macaron.store.codec import Codec, Marks, Names
from macaron.store.postgres.database import Connection
from macaron.store.postgres.rows import key_of, place_of, raw, text

DUPLICATES = 256
"""Steps of one digest and another head that are compared for their age."""

ATTEMPTS = 3

LARGE = 1_000_000
"""Bytes of contents that are decoded on a thread, since everybody else on the event loop would wait for them."""

MARKED = "seq, id, summary, note, hops, deleted"

# A place is looked for, and scope and digest only compared, in words for which no index is used: while a table has no
# statistics, the one that begins with the scope would look as good, and read all of a tenant's steps.
EXACT = "s.scope IS NOT DISTINCT FROM $1 AND s.digest IS NOT DISTINCT FROM"
SAME = f"s.place = longest.place AND {EXACT} longest.digest"
OWN = f"s.session = (SELECT id FROM sessions WHERE scope = $1 AND name = $4) AND {SAME}"
NEWEST = "ORDER BY s.seq DESC LIMIT 1"

# The longest digest that is known, in the order that is asked for; then the best of its steps: one of the session, one
# with an equal head, the newest. The first subquery that gives a row decides, the others are not run. Then the first
# step that continued it with the same question.
LOCATE = f"""
WITH longest AS MATERIALIZED (
    SELECT wanted.place, wanted.digest, wanted.position
    FROM unnest($2::bigint[], $3::bytea[]) WITH ORDINALITY AS wanted (place, digest, position)
    WHERE EXISTS (SELECT 1 FROM steps s WHERE s.place = wanted.place AND {EXACT} wanted.digest OFFSET 0)
    ORDER BY wanted.position LIMIT 1
), best AS MATERIALIZED (
    SELECT longest.position, coalesce(
        (SELECT s.seq FROM steps s WHERE {OWN} AND s.head_key = $5 {NEWEST}),
        (SELECT max(seq) FROM (SELECT s.seq FROM steps s WHERE {OWN} LIMIT {DUPLICATES}) AS own),
        (SELECT s.seq FROM steps s WHERE {SAME} AND s.head_key = $5 {NEWEST}),
        (SELECT max(seq) FROM (SELECT s.seq FROM steps s WHERE {SAME} LIMIT {DUPLICATES}) AS known)) AS seq
    FROM longest
)
(SELECT {MARKED}, best.position FROM best JOIN steps USING (seq))
UNION ALL
(SELECT {MARKED}, 0 FROM steps WHERE parent = (SELECT seq FROM best) AND asked_key = $6 AND asked = $7
 ORDER BY seq LIMIT 1)"""

WALK = f"""
WITH RECURSIVE walk AS (
    SELECT {MARKED}, parent FROM steps WHERE scope = $1 AND id = $2
    UNION ALL
    SELECT s.seq, s.id, s.summary, s.note, s.hops, s.deleted, s.parent
    FROM walk JOIN steps s ON s.seq = walk.parent
)
SELECT {MARKED} FROM walk ORDER BY seq"""

SESSION = f"""
SELECT {MARKED} FROM steps WHERE session = (SELECT id FROM sessions WHERE scope = $1 AND name = $2)
ORDER BY seq DESC LIMIT $3"""

BODIES = """
SELECT s.seq, sessions.name, s.id, s.digest, s.asked, s.body
FROM steps s JOIN sessions ON sessions.id = s.session WHERE s.seq = ANY($1::bigint[])"""

CONFIG = "SELECT generation, document FROM config"

EVERYBODY = """
SELECT coalesce(sum(steps), 0)::bigint, coalesce(sum(sessions), 0)::bigint, coalesce(sum(bytes), 0)::bigint,
    coalesce(sum(prompt_tokens), 0)::bigint, coalesce(sum(completion_tokens), 0)::bigint
FROM counters"""

OF_SCOPE = """
SELECT coalesce(sum(steps), 0)::bigint, count(*), coalesce(sum(bytes), 0)::bigint,
    (coalesce(sum(prompt_tokens), 0) + coalesce((SELECT prompt_tokens FROM past WHERE scope = $1), 0))::bigint,
    (coalesce(sum(completion_tokens), 0) + coalesce((SELECT completion_tokens FROM past WHERE scope = $1), 0))::bigint
FROM sessions WHERE scope = $1"""


class Query(NamedTuple):
    """What `locate` is asked; `digests` are ordered longest first."""

    scope: str
    digests: Sequence[str]
    asked: str
    session: str | None
    head: str


class Gone(Exception):
    """A content that was to be read was evicted meanwhile."""


class Reads:
    """The reads of a store, with the cache of its process. Used from one event loop."""

    def __init__(self, cache: StepCache) -> None:
        self._cache = cache
        self._codec = Codec()

    async def locate(self, connection: Connection, query: Query) -> Lookup:
        """See `Store.locate`."""
        scope, digests, asked = raw(query.scope), [raw(digest) for digest in query.digests], raw(query.asked)
        values = (
            scope,
            [place_of(scope, digest) for digest in digests],
            digests,
            None if query.session is None else raw(query.session),
            key_of(raw(query.head)),
            key_of(asked),
            asked,
        )
        for _ in range(ATTEMPTS):
            rows = await connection.fetch(LOCATE, *values)
            if not rows:
                return Lookup(None, None)
            # The step itself comes with its position, which counts from 1.
            rows.sort(key=lambda row: -row["position"])
            try:
                steps = await self._load(connection, query.scope, rows)
            except Gone:
                continue
            position = len(digests) - rows[0]["position"]
            return Lookup(Located(steps[0], position), steps[1] if len(steps) > 1 else None)
        raise _unsettled()

    async def steps(self, connection: Connection, scope: str, sql: str, *values: object) -> tuple[Step, ...]:
        """The steps that a statement finds, oldest first."""
        for _ in range(ATTEMPTS):
            rows = await connection.fetch(sql, *values)
            rows.sort(key=lambda row: row["seq"])
            try:
                return await self._load(connection, scope, rows)
            except Gone:
                continue
        raise _unsettled()

    async def _load(self, connection: Connection, scope: str, rows: Sequence[Any]) -> tuple[Step, ...]:
        """The steps of some rows, in their order."""
        marks = {
            row["seq"]: Marks(text(row["summary"]), text(row["note"]), row["hops"], row["deleted"]) for row in rows
        }
        steps: dict[int, Step] = {}
        for row in rows:
            kept = self._cache.get((scope, text(row["id"]) or ""), marks[row["seq"]], self._codec)
            if kept is not None:
                steps[row["seq"]] = kept
        missing = [seq for seq in marks if seq not in steps]
        if missing:
            found = await connection.fetch(BODIES, missing)
            if len(found) < len(missing):
                raise Gone
            for seq, put in await self._decoded(scope, found):
                self._cache.put(put)
                steps[seq] = self._codec.mark(put, marks[seq])
        return tuple(steps[row["seq"]] for row in rows)

    async def _decoded(self, scope: str, found: Sequence[Any]) -> list[tuple[int, Step]]:
        if sum(len(row["body"]) for row in found) < LARGE:
            return _decode(scope, found, self._codec)
        return await asyncio.to_thread(_decode, scope, found, Codec())


def _decode(scope: str, found: Sequence[Any], codec: Codec) -> list[tuple[int, Step]]:
    steps = []
    for seq, session, step_id, digest, asked, body in found:
        names = Names(scope, text(session) or "", text(step_id) or "", text(digest) or "", text(asked) or "")
        steps.append((seq, codec.decode(names, body)))
    return steps


def _unsettled() -> StoreError:
    return StoreError("the conversation is being evicted from the store; try again", retry_after=1.0)


async def config(connection: Connection) -> Config:
    """The configuration in force."""
    return Config(*await connection.fetchrow(CONFIG))


async def totals(connection: Connection, scope: str | None) -> Totals:
    """A scope's totals, or everybody's."""
    if scope is None:
        return Totals(*await connection.fetchrow(EVERYBODY))
    return Totals(*await connection.fetchrow(OF_SCOPE, raw(scope)))
