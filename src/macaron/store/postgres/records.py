"""Records and their entries in PostgreSQL.

Rows are locked in this order: a record, the conversation it is part of, a row of the counters. Leases are renewed in
the order of the records' numbers, and eviction waits for no record, so nobody waits for somebody who waits for him.
What all records take is the sum of the counters: with one row no two writes could commit at once, so each takes one by
chance.

The limits of records hold but for what is being written while they are looked at.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from macaron.store.base import Append, Entry, Limits, Record
from macaron.store.postgres.database import Connection, Database
from macaron.store.postgres.expiry import LOCK
from macaron.store.postgres.rows import raw, text
from macaron.store.postgres.writes import SHARDS
from macaron.store.records import ENTRY_BYTES, RECORD_BYTES, full

SLICE = 200
"""Most records that one transaction evicts, and most trees that it looks at."""

COLUMNS = "scope, id, owner, root, parent, created, body, open, lease"

GET = f"SELECT {COLUMNS} FROM records WHERE scope = $1 AND id = $2"

LINEAGE = f"""
WITH RECURSIVE walk AS (
    SELECT {COLUMNS}, 0 AS depth, length(body)::bigint AS total FROM records WHERE scope = $1 AND id = $2
    UNION ALL
    SELECT r.scope, r.id, r.owner, r.root, r.parent, r.created, r.body, r.open, r.lease,
        walk.depth + 1, walk.total + length(r.body)
    FROM walk JOIN records r ON r.scope = $1 AND r.id = walk.parent WHERE walk.total + length(r.body) <= $3
)
SELECT {COLUMNS} FROM walk ORDER BY depth DESC"""

TOUCH = "UPDATE records SET touched = greatest(touched, $3) WHERE scope = $1 AND id = $2 RETURNING seq"

PUT = f"""
INSERT INTO records ({COLUMNS}, touched, bytes)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"""

REVISE = """
UPDATE records SET body = $3, open = $4, bytes = bytes + length($3::bytea) - length(records.body)
FROM (SELECT seq, length(body) AS old FROM records WHERE scope = $1 AND id = $2 AND open FOR UPDATE) AS found
WHERE records.seq = found.seq RETURNING length($3::bytea) - found.old"""

PLACE = """
UPDATE records SET next = next + $3, bytes = bytes + $4 WHERE scope = $1 AND id = $2 AND body <> ''
RETURNING seq, next - $3"""

ADD = """
INSERT INTO entries (record, position, id, body)
SELECT $1, $2::bigint + given.at - 1, given.id, given.body
FROM unnest($3::bytea[], $4::bytea[]) WITH ORDINALITY AS given (id, body, at)"""

ENTRIES = """
SELECT body, id, position FROM entries
WHERE record = (SELECT seq FROM records WHERE scope = $1 AND id = $2) AND """

FORWARD = f"{ENTRIES} position > $3 ORDER BY position LIMIT $4"
BACKWARD = f"{ENTRIES} ($3::bigint < 0 OR position < $3) ORDER BY position DESC LIMIT $4"
ENTRY = f"{ENTRIES} id = $3 AND id <> ''"

DROP_ENTRY = """
DELETE FROM entries WHERE record = (SELECT seq FROM records WHERE scope = $1 AND id = $2 FOR UPDATE)
    AND id = $3 AND id <> '' RETURNING record, length(body)"""

RENEW = """
WITH held AS MATERIALIZED (
    SELECT r.seq FROM unnest($1::bytea[], $2::bytea[]) AS leased (scope, id)
        JOIN records r ON r.scope = leased.scope AND r.id = leased.id
    WHERE r.open ORDER BY r.seq FOR UPDATE OF r
)
UPDATE records SET lease = $3 FROM held WHERE records.seq = held.seq RETURNING records.scope, records.id"""

FIND = "SELECT seq, bytes FROM records WHERE scope = $1 AND id = $2 AND body <> '' FOR UPDATE"

# A root stays also for those of its tree whose parent was deleted while they were made: they grow old by it.
NEEDED = """
SELECT EXISTS (SELECT 1 FROM records WHERE scope = $1 AND parent = $2 OFFSET 0)
    OR EXISTS (SELECT 1 FROM records WHERE scope = $1 AND root = $2 AND id <> root OFFSET 0)"""

COUNT = """
INSERT INTO kept AS k (shard, records, bytes) VALUES ($1::int, $2::bigint, $3::bigint)
ON CONFLICT (shard) DO UPDATE SET records = k.records + excluded.records, bytes = k.bytes + excluded.bytes"""

TOTAL = "SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM kept"

# The newest first, so that what is left of a tree larger than a slice is one that still has its root.
DOOMED = """
SELECT r.seq, tree.seq AS root FROM (
    SELECT seq, scope, id FROM records WHERE root = id AND touched < $1 ORDER BY touched LIMIT $2
) AS tree JOIN records r ON r.scope = tree.scope AND r.root = tree.id
ORDER BY r.seq DESC LIMIT $3"""

# Who has the root keeps new records out of its tree.
HOLD = "SELECT seq FROM records WHERE seq = ANY($1::bigint[]) FOR UPDATE SKIP LOCKED"

# What was used before its root was held is not old any more.
DROP = """
WITH gone AS (
    DELETE FROM records r WHERE r.seq = ANY($1::bigint[]) AND EXISTS (
        SELECT 1 FROM records tree WHERE tree.scope = r.scope AND tree.id = r.root AND tree.touched < $2 OFFSET 0)
    RETURNING r.seq, r.bytes
), emptied AS (DELETE FROM entries USING gone WHERE entries.record = gone.seq)
SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM gone"""


class PostgresRecords:
    """Implements the records of `Store`."""

    def __init__(self, database: Database, limits: Limits, clock: Callable[[], float]) -> None:
        self._records_in = database
        self._record_limits = limits
        self._record_clock = clock

    async def put_record(self, record: Record) -> None:
        """See `Store.put_record`."""

        async def put(connection: Connection) -> None:
            now = self._record_clock()
            scope, name, root = raw(record.scope), raw(record.id), raw(record.root)
            parent = None if record.parent is None else raw(record.parent)
            size = RECORD_BYTES + len(record.body)
            rest = (parent, record.created, record.body, record.open, record.lease, now, size)
            await self._make_room(connection)
            async with connection.transaction():
                if await connection.fetchrow(TOUCH, scope, root, now) is None:
                    root = name
                await connection.execute(PUT, scope, name, raw(record.user), root, *rest)
                await _count(connection, 1, size)

        await self._records_in.run(put)

    async def record(self, scope: str, record_id: str) -> Record | None:
        """See `Store.record`."""

        async def get(connection: Connection) -> Record | None:
            row = await connection.fetchrow(GET, raw(scope), raw(record_id))
            return None if row is None else _record(row)

        return await self._records_in.run(get, again=True)

    async def lineage(self, scope: str, record_id: str, max_bytes: int) -> tuple[Record, ...]:
        """See `Store.lineage`."""

        async def walk(connection: Connection) -> tuple[Record, ...]:
            return tuple(map(_record, await connection.fetch(LINEAGE, raw(scope), raw(record_id), max_bytes)))

        return await self._records_in.run(walk, again=True)

    async def revise_record(
        self, scope: str, record_id: str, body: bytes, *, open: bool, appends: Sequence[Append] = ()
    ) -> bool:
        """See `Store.revise_record`."""

        async def revise(connection: Connection) -> bool:
            async with connection.transaction():
                row = await connection.fetchrow(REVISE, raw(scope), raw(record_id), body, open)
                if row is None:
                    return False
                grown = row[0]
                for each in appends:
                    grown += await _append(connection, scope, each) or 0
                await _count(connection, 0, grown)
                return True

        return await self._records_in.run(revise)

    async def append(self, scope: str, append: Append, *, bounded: bool = False) -> bool:
        """See `Store.append`."""

        async def add(connection: Connection) -> bool:
            if bounded:
                await self._make_room(connection)
            async with connection.transaction():
                grown = await _append(connection, scope, append)
                if grown:
                    await _count(connection, 0, grown)
                return grown is not None

        return await self._records_in.run(add)

    async def entries(
        self, scope: str, record_id: str, *, after: int = -1, limit: int = 1000, newest_first: bool = False
    ) -> tuple[Entry, ...]:
        """See `Store.entries`."""
        sql = BACKWARD if newest_first else FORWARD

        async def read(connection: Connection) -> tuple[Entry, ...]:
            rows = await connection.fetch(sql, raw(scope), raw(record_id), after, limit)
            return tuple(map(_entry, rows))

        return await self._records_in.run(read, again=True)

    async def entry(self, scope: str, record_id: str, entry_id: str) -> Entry | None:
        """See `Store.entry`."""

        async def read(connection: Connection) -> Entry | None:
            row = await connection.fetchrow(ENTRY, raw(scope), raw(record_id), raw(entry_id))
            return None if row is None else _entry(row)

        return await self._records_in.run(read, again=True)

    async def delete_entry(self, scope: str, record_id: str, entry_id: str) -> bool:
        """See `Store.delete_entry`."""

        async def drop(connection: Connection) -> bool:
            async with connection.transaction():
                gone = await connection.fetch(DROP_ENTRY, raw(scope), raw(record_id), raw(entry_id))
                size = sum(ENTRY_BYTES + row[1] for row in gone)
                if gone:
                    await connection.execute("UPDATE records SET bytes = bytes - $2 WHERE seq = $1", gone[0][0], size)
                    await _count(connection, 0, -size)
                return bool(gone)

        return await self._records_in.run(drop)

    async def renew_leases(self, leased: Sequence[tuple[str, str]], until: float) -> frozenset[tuple[str, str]]:
        """See `Store.renew_leases`."""

        async def renew(connection: Connection) -> frozenset[tuple[str, str]]:
            scopes, names = [raw(scope) for scope, _ in leased], [raw(name) for _, name in leased]
            rows = await connection.fetch(RENEW, scopes, names, until)
            return frozenset((text(row[0]) or "", text(row[1]) or "") for row in rows)

        return await self._records_in.run(renew)

    async def delete_record(self, scope: str, record_id: str) -> bool:
        """See `Store.delete_record`."""

        async def delete(connection: Connection) -> bool:
            key = raw(scope), raw(record_id)
            async with connection.transaction():
                found = await connection.fetchrow(FIND, *key)
                if found is None:
                    return False
                seq, size = found
                await connection.execute("DELETE FROM entries WHERE record = $1", seq)
                (needed,) = await connection.fetchrow(NEEDED, *key)
                if needed:
                    empty = "UPDATE records SET body = '', open = false, bytes = $2 WHERE seq = $1"
                    await connection.execute(empty, seq, RECORD_BYTES)
                    await _count(connection, 0, RECORD_BYTES - size)
                else:
                    await connection.execute("DELETE FROM records WHERE seq = $1", seq)
                    await _count(connection, -1, -size)
                return True

        return await self._records_in.run(delete)

    async def _expire_records(self) -> None:
        """Evict the trees that nobody has used for too long."""
        while await self._records_in.run(self._evict):
            pass

    async def _evict(self, connection: Connection) -> bool:
        """Evict a slice of them; whether there may be more to do. Nothing where another process does it."""
        oldest = self._record_clock() - self._record_limits.max_age
        async with connection.transaction():
            (mine,) = await connection.fetchrow(f"SELECT pg_try_advisory_xact_lock({LOCK})")
            doomed = await connection.fetch(DOOMED, oldest, SLICE, SLICE) if mine else []
            if not doomed:
                return False
            numbers = await _held(connection, doomed)
            count, size = await connection.fetchrow(DROP, numbers, oldest)
            await _count(connection, -count, -size)
            return bool(count)

    async def _make_room(self, connection: Connection) -> None:
        """Evict what is too old where the limits are reached. What went stays gone also where it is not enough.

        Raises:
            StoreFull: it is not enough.
        """
        limits, more = self._record_limits, True
        while True:
            count, size = await connection.fetchrow(TOTAL)
            if count < limits.max_records and size < limits.max_record_bytes:
                return
            if not more:
                raise full(count, size)
            more = await self._evict(connection)


async def _append(connection: Connection, scope: str, append: Append) -> int | None:
    """Add entries; returns by how much the record has grown, None where it is not known or deleted."""
    size = sum(ENTRY_BYTES + len(entry.body) for entry in append.entries)
    found = await connection.fetchrow(PLACE, raw(scope), raw(append.record), len(append.entries), size)
    if found is None:
        return None
    ids, bodies = [raw(entry.id) for entry in append.entries], [entry.body for entry in append.entries]
    await connection.execute(ADD, found[0], found[1], ids, bodies)
    return size


async def _held(connection: Connection, doomed: Sequence[Any]) -> list[int]:
    """The numbers of those that are locked now. A tree of which somebody uses anything at this moment is left alone."""
    wanted = {number for row in doomed for number in row}
    held = {row[0] for row in await connection.fetch(HOLD, list(wanted))}
    in_use = {root for number, root in doomed if number not in held or root not in held}
    return [number for number, root in doomed if root not in in_use]


async def _count(connection: Connection, records: int, size: int) -> None:
    """Add to what everybody takes: the last of a transaction, since others wait for the row."""
    await connection.execute(COUNT, random.randrange(SHARDS), records, size)


def _record(row: Any) -> Record:
    scope, name, user, root, parent, created, body, is_open, lease = row
    names = (text(scope) or "", text(name) or "", text(user) or "", text(root) or "", text(parent))
    return Record(*names, created, bytes(body), is_open, lease)


def _entry(row: Any) -> Entry:
    return Entry(bytes(row[0]), text(row[1]) or "", row[2])
