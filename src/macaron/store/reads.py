"""What is read, as functions of a cursor inside one snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from macaron.conversation import Step
from macaron.errors import StoreError
from macaron.store.base import Config, Located, Lookup, Totals
from macaron.store.cache import StepCache
from macaron.store.codec import Codec, Marks, Names

CHUNK = 500
"""Most digests, or bodies, of one query."""

FIRST_CHUNK = 32
"""Most conversations have few items after the last known step."""

DUPLICATES = 256
"""Steps of one digest and another head that are compared for their age."""

SCOPE = "(SELECT id FROM scopes WHERE name = :scope)"
MARKED = "seq, id, summary, note, hops, deleted"

# The linear recursion gives the steps in order, from the last one to the root.
WALK = f"""
WITH RECURSIVE walk (seq, id, summary, note, hops, deleted, parent) AS (
    SELECT {MARKED}, parent FROM steps WHERE scope = {SCOPE} AND id = :id
    UNION ALL
    SELECT s.seq, s.id, s.summary, s.note, s.hops, s.deleted, s.parent
    FROM walk JOIN steps s ON s.seq = walk.parent
)
SELECT {MARKED} FROM walk"""

SESSION = f"""
SELECT {MARKED} FROM steps
WHERE session = (SELECT id FROM sessions WHERE scope = {SCOPE} AND name = :session)
ORDER BY seq DESC LIMIT :limit"""

BODIES = """
SELECT seq, sessions.name, steps.id, digest, asked, body
FROM bodies JOIN steps USING (seq) JOIN sessions ON sessions.id = steps.session
WHERE seq IN (SELECT value FROM json_each(?))"""

# json_each keeps the order of the array, so the first row is the longest, and the search ends there.
KNOWN = f"""
SELECT key FROM json_each(:crcs)
WHERE EXISTS (SELECT 1 FROM steps WHERE digest_crc = value AND scope = {SCOPE}) LIMIT 1"""

TOTALS = "SELECT steps, sessions, bytes, prompt_tokens, completion_tokens FROM scopes WHERE "


MATCH = "digest_crc = :crc AND digest = :digest"
OWN = f"session = (SELECT id FROM sessions WHERE scope = {SCOPE} AND name = :session) AND {MATCH}"
NEWEST = "ORDER BY seq DESC LIMIT 1"

# The best step of a digest: one of the session, then one with an equal head, then the newest. The first subquery that
# gives a row decides, the others are not run. Each is one search in an index.
PICK = f"""
SELECT {MARKED} FROM steps WHERE seq = coalesce(
    (SELECT seq FROM steps WHERE {OWN} AND head_crc = :head {NEWEST}),
    (SELECT max(seq) FROM (SELECT seq FROM steps WHERE {OWN} LIMIT {DUPLICATES})),
    (SELECT seq FROM steps WHERE scope = {SCOPE} AND {MATCH} AND head_crc = :head {NEWEST}),
    (SELECT max(seq) FROM (SELECT seq FROM steps WHERE scope = {SCOPE} AND {MATCH} LIMIT {DUPLICATES})))"""

ASKED = f"""
SELECT {MARKED} FROM steps
WHERE parent = :parent AND asked_crc = :crc AND asked = :asked ORDER BY seq LIMIT 1"""


class Marked(NamedTuple):
    """A step's number and what may have changed in it."""

    seq: int
    id: str
    marks: Marks


class Query(NamedTuple):
    """Whose steps are looked for, and which are preferred."""

    scope: str
    session: str | None
    head: str


class Reads:
    """The reads of a store. Used by the reader thread only."""

    def __init__(self, cache: StepCache) -> None:
        self._cache = cache
        self._codec = Codec()

    def locate(self, cursor: sqlite3.Cursor, query: Query, digests: Sequence[str], asked: str) -> Lookup:
        """See `Store.locate`."""
        for position in _known(cursor, query.scope, digests):
            row = _pick(cursor, query, digests[position])
            if row is not None:
                parameters = {"parent": row[0], "asked": asked, "crc": crc32(asked.encode())}
                again = cursor.execute(ASKED, parameters).fetchone()
                steps = self._load(cursor, query.scope, [row] if again is None else [again, row])
                return Lookup(Located(steps[0], position), steps[1] if again else None)
        return Lookup(None, None)

    def path(self, cursor: sqlite3.Cursor, scope: str, step_id: str) -> tuple[Step, ...]:
        """See `Store.path`."""
        return self._load(cursor, scope, cursor.execute(WALK, {"scope": scope, "id": step_id}).fetchall())

    def session(self, cursor: sqlite3.Cursor, scope: str, session_id: str, limit: int) -> tuple[Step, ...]:
        """See `Store.session`."""
        parameters = {"scope": scope, "session": session_id, "limit": limit}
        return self._load(cursor, scope, cursor.execute(SESSION, parameters).fetchall())

    def _load(self, cursor: sqlite3.Cursor, scope: str, rows: Sequence[tuple[object, ...]]) -> tuple[Step, ...]:
        """The steps of some rows, which come newest first, oldest first."""
        marked = [Marked(row[0], row[1], Marks(*row[2:])) for row in reversed(rows)]  # type: ignore[arg-type]
        kept = {m.seq: self._cache.get((scope, m.id), m.marks, self._codec) for m in marked}
        missing = [m for m in marked if kept[m.seq] is None]
        fetched = self._fetch(cursor, scope, missing) if missing else {}
        try:
            return tuple(kept[m.seq] or fetched[m.seq] for m in marked)
        except KeyError as error:
            raise StoreError(
                f"the content of step number {error} is missing from the store; restore a backup"
            ) from error

    def _fetch(self, cursor: sqlite3.Cursor, scope: str, missing: Sequence[Marked]) -> dict[int, Step]:
        marks = {m.seq: m.marks for m in missing}
        steps = {}
        for start in range(0, len(missing), CHUNK):
            numbers = msgspec.json.encode([m.seq for m in missing[start : start + CHUNK]]).decode()
            for seq, session, step_id, digest, asked, body in cursor.execute(BODIES, (numbers,)):
                step = self._codec.decode(Names(scope, session, step_id, digest, asked), body)
                self._cache.put(step)
                steps[seq] = self._codec.mark(step, marks[seq])
        return steps


def _known(cursor: sqlite3.Cursor, scope: str, digests: Sequence[str]) -> Iterator[int]:
    """Positions of digests that are probably known, longest first. Looks for more only while it is iterated."""
    end = len(digests)
    size = FIRST_CHUNK
    while end > 0:
        start = max(0, end - size)
        crcs = msgspec.json.encode([crc32(digest.encode()) for digest in reversed(digests[start:end])]).decode()
        row = cursor.execute(KNOWN, {"crcs": crcs, "scope": scope}).fetchone()
        if row is None:
            end = start
            size = CHUNK
        else:
            end -= 1 + row[0]
            yield end


def _pick(cursor: sqlite3.Cursor, query: Query, digest: str) -> tuple[Any, ...] | None:
    parameters = {
        "scope": query.scope,
        "session": query.session,
        "head": crc32(query.head.encode()),
        "crc": crc32(digest.encode()),
        "digest": digest,
    }
    row: tuple[Any, ...] | None = cursor.execute(PICK, parameters).fetchone()
    return row


def config(cursor: sqlite3.Cursor) -> Config:
    """The configuration in force."""
    return Config(*cursor.execute("SELECT generation, document FROM config").fetchone())


def totals(cursor: sqlite3.Cursor, scope: str | None) -> Totals:
    """A scope's totals, or everybody's."""
    if scope is None:
        return Totals(*cursor.execute(TOTALS + "id = 0").fetchone())
    row = cursor.execute(TOTALS + "name = ?", (scope,)).fetchone()
    return Totals(*row) if row else Totals()
