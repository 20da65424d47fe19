"""Records and their entries in PostgreSQL.

Rows are locked in this order: a record, the conversation it is part of, a row of the counters. What all records take is
the sum of those rows; with one, no two replicas could commit at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from macaron.store.base import Append, Entry, Limits, Record
from macaron.store.postgres.database import Connection, Database
from macaron.store.postgres.rows import raw, text
from macaron.store.records import ENTRY_BYTES, RECORD_BYTES, SLICE, full

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

DROP_ENTRY = """
DELETE FROM entries WHERE record = (SELECT seq FROM records WHERE scope = $1 AND id = $2 FOR UPDATE)
    AND id = $3 AND id <> '' RETURNING record, length(body)"""

RENEW = """
UPDATE records SET lease = $3 FROM unnest($1::bytea[], $2::bytea[]) AS held (scope, id)
WHERE records.scope = held.scope AND records.id = held.id AND records.open RETURNING records.scope, records.id"""

CHILD = "SELECT 1 FROM records WHERE scope = $1 AND parent = $2 LIMIT 1"

COUNT = """
INSERT INTO kept AS k (shard, records, bytes) VALUES ($1::int, $2::bigint, $3::bigint)
ON CONFLICT (shard) DO UPDATE SET records = k.records + excluded.records, bytes = k.bytes + excluded.bytes"""

TOTAL = "SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM kept"

EXPIRE = """
WITH old AS (
    SELECT scope, id FROM records WHERE root = id AND touched < $1 ORDER BY touched LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM records USING old WHERE records.scope = old.scope AND records.root = old.id
    RETURNING records.seq, records.bytes
), emptied AS (DELETE FROM entries USING gone WHERE entries.record = gone.seq)
SELECT count(*), coalesce(sum(bytes), 0)::bigint, (SELECT count(*) FROM old) FROM gone"""


class PostgresRecords:
    """Implements the records of `Store`."""

    def __init__(self, database: Database, limits: Limits, clock: Callable[[], float], shard: int) -> None:
        self._records_in = database
        self._record_limits = limits
        self._record_clock = clock
        self._record_shard = shard

    async def put_record(self, record: Record) -> None:
        """See `Store.put_record`."""

        async def put(connection: Connection) -> None:
            async with connection.transaction():
                await self._check_room(connection)
                now = self._record_clock()
                touch = "UPDATE records SET touched = $3 WHERE scope = $1 AND id = $2"
                scope, root = raw(record.scope), raw(record.root)
                touched = await connection.execute(touch, scope, root, now)
                if touched.endswith(" 0"):
                    root = raw(record.id)
                parent = None if record.parent is None else raw(record.parent)
                size = RECORD_BYTES + len(record.body)
                named = (scope, raw(record.id), raw(record.user), root, parent)
                rest = (record.created, record.body, record.open, record.lease, now, size)
                await connection.execute(PUT, *named, *rest)
                await self._count(connection, 1, size)

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
                await self._count(connection, 0, grown)
                return True

        return await self._records_in.run(revise)

    async def append(self, scope: str, append: Append, *, bounded: bool = False) -> bool:
        """See `Store.append`."""

        async def add(connection: Connection) -> bool:
            async with connection.transaction():
                if bounded:
                    await self._check_room(connection)
                grown = await _append(connection, scope, append)
                if grown:
                    await self._count(connection, 0, grown)
                return grown is not None

        return await self._records_in.run(add)

    async def entries(
        self, scope: str, record_id: str, *, after: int = -1, limit: int = 1000, newest_first: bool = False
    ) -> tuple[Entry, ...]:
        """See `Store.entries`."""
        where = "position > $3 ORDER BY position LIMIT $4"
        if newest_first:
            where = "($3::bigint < 0 OR position < $3) ORDER BY position DESC LIMIT $4"

        async def read(connection: Connection) -> tuple[Entry, ...]:
            rows = await connection.fetch(ENTRIES + where, raw(scope), raw(record_id), after, limit)
            return tuple(map(_entry, rows))

        return await self._records_in.run(read, again=True)

    async def entry(self, scope: str, record_id: str, entry_id: str) -> Entry | None:
        """See `Store.entry`."""

        async def read(connection: Connection) -> Entry | None:
            where = "id = $3 AND id <> ''"
            row = await connection.fetchrow(ENTRIES + where, raw(scope), raw(record_id), raw(entry_id))
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
                    await self._count(connection, 0, -size)
                return bool(gone)

        return await self._records_in.run(drop)

    async def renew_leases(self, leased: Sequence[tuple[str, str]], until: float) -> frozenset[tuple[str, str]]:
        """See `Store.renew_leases`."""

        async def renew(connection: Connection) -> frozenset[tuple[str, str]]:
            keys = sorted((raw(scope), raw(name)) for scope, name in leased)
            scopes, names = [scope for scope, _ in keys], [name for _, name in keys]
            rows = await connection.fetch(RENEW, scopes, names, until)
            return frozenset((text(row[0]) or "", text(row[1]) or "") for row in rows)

        return await self._records_in.run(renew)

    async def delete_record(self, scope: str, record_id: str) -> bool:
        """See `Store.delete_record`."""

        async def delete(connection: Connection) -> bool:
            async with connection.transaction():
                find = "SELECT seq, bytes FROM records WHERE scope = $1 AND id = $2 AND body <> '' FOR UPDATE"
                found = await connection.fetchrow(find, raw(scope), raw(record_id))
                if found is None:
                    return False
                seq, size = found
                await connection.execute("DELETE FROM entries WHERE record = $1", seq)
                if await connection.fetchrow(CHILD, raw(scope), raw(record_id)) is None:
                    await connection.execute("DELETE FROM records WHERE seq = $1", seq)
                    await self._count(connection, -1, -size)
                else:
                    empty = "UPDATE records SET body = '', open = false, bytes = $2 WHERE seq = $1"
                    await connection.execute(empty, seq, RECORD_BYTES)
                    await self._count(connection, 0, RECORD_BYTES - size)
                return True

        return await self._records_in.run(delete)

    async def _expire_records(self) -> None:
        """Evict the trees that nobody has used for too long."""

        async def evict(connection: Connection) -> bool:
            async with connection.transaction():
                return await self._evict_records(connection)

        while await self._records_in.run(evict):
            pass

    async def _evict_records(self, connection: Connection) -> bool:
        oldest = self._record_clock() - self._record_limits.max_age
        row = await connection.fetchrow(EXPIRE, oldest, SLICE)
        assert row is not None
        count, size, trees = row
        if count:
            await self._count(connection, -count, -size)
        return bool(trees == SLICE)

    async def _check_room(self, connection: Connection) -> None:
        limits = self._record_limits
        for last in (False, True):
            row = await connection.fetchrow(TOTAL)
            assert row is not None
            count, size = row
            if count < limits.max_records and size < limits.max_record_bytes:
                return
            if last:
                raise full(count, size)
            await self._evict_records(connection)

    async def _count(self, connection: Connection, records: int, size: int) -> None:
        await connection.execute(COUNT, self._record_shard, records, size)


async def _append(connection: Connection, scope: str, append: Append) -> int | None:
    """Add entries; returns by how much the record has grown, None where it is not known or deleted."""
    size = sum(ENTRY_BYTES + len(entry.body) for entry in append.entries)
    found = await connection.fetchrow(PLACE, raw(scope), raw(append.record), len(append.entries), size)
    if found is None:
        return None
    ids, bodies = [raw(entry.id) for entry in append.entries], [entry.body for entry in append.entries]
    await connection.execute(ADD, found[0], found[1], ids, bodies)
    return size


def _record(row: Any) -> Record:
    scope, name, user, root, parent, created, body, is_open, lease = row
    names = (text(scope) or "", text(name) or "", text(user) or "", text(root) or "", text(parent))
    return Record(*names, created, bytes(body), is_open, lease)


def _entry(row: Any) -> Entry:
    return Entry(bytes(row[0]), text(row[1]) or "", row[2])
