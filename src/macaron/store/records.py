"""Records and their entries in SQLite, as functions of a cursor or a transaction.

What they take is counted in one row, so that a limit costs one look. Age is that of a tree: the record that is its root
carries the time of its last use.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from macaron.store.base import Append, Entry, Limits, Record, StoreFull
from macaron.store.transaction import Transaction

SLICE = 200
"""Most trees of records that one transaction evicts."""

ENTRY_BYTES = 48
RECORD_BYTES = 256
"""What a row takes beside its content."""

COLUMNS = "scope, id, user, root, parent, created, body, open, lease"

GET = f"SELECT {COLUMNS} FROM records WHERE scope = ? AND id = ?"

LINEAGE = f"""
WITH RECURSIVE walk AS (
    SELECT {COLUMNS}, 0 AS depth, length(body) AS total FROM records WHERE scope = :scope AND id = :id
    UNION ALL
    SELECT r.scope, r.id, r.user, r.root, r.parent, r.created, r.body, r.open, r.lease,
        walk.depth + 1, walk.total + length(r.body)
    FROM walk JOIN records r ON r.scope = :scope AND r.id = walk.parent WHERE walk.total + length(r.body) <= :most
)
SELECT {COLUMNS} FROM walk ORDER BY depth DESC"""

NUMBER = "SELECT seq, length(body) FROM records WHERE scope = ? AND id = ?"

ENTRIES = """
SELECT body, entries.id, position FROM entries
WHERE record = (SELECT seq FROM records WHERE scope = :scope AND records.id = :id) """

CHILD = "SELECT 1 FROM records WHERE scope = ? AND parent = ? LIMIT 1"

OLDEST = "SELECT scope, id FROM records WHERE root = id AND touched < ? ORDER BY touched LIMIT ?"


def record(cursor: sqlite3.Cursor, scope: str, record_id: str) -> Record | None:
    """See `Store.record`."""
    row = cursor.execute(GET, (scope, record_id)).fetchone()
    return None if row is None else _record(row)


def lineage(cursor: sqlite3.Cursor, scope: str, record_id: str, max_bytes: int) -> tuple[Record, ...]:
    """See `Store.lineage`."""
    rows = cursor.execute(LINEAGE, {"scope": scope, "id": record_id, "most": max_bytes})
    return tuple(map(_record, rows))


def entries(
    cursor: sqlite3.Cursor, scope: str, record_id: str, after: int, limit: int, newest_first: bool
) -> tuple[Entry, ...]:
    """See `Store.entries`."""
    where = (
        "AND (:after < 0 OR position < :after) ORDER BY position DESC"
        if newest_first
        else ("AND position > :after ORDER BY position")
    )
    parameters = {"scope": scope, "id": record_id, "after": after, "limit": limit}
    return tuple(Entry(*row) for row in cursor.execute(f"{ENTRIES} {where} LIMIT :limit", parameters))


def entry(cursor: sqlite3.Cursor, scope: str, record_id: str, entry_id: str) -> Entry | None:
    """See `Store.entry`."""
    parameters = {"scope": scope, "id": record_id, "entry": entry_id}
    row = cursor.execute(f"{ENTRIES} AND entries.id = :entry AND entries.id != ''", parameters).fetchone()
    return None if row is None else Entry(*row)


def put_record(tx: Transaction, new: Record, limits: Limits) -> None:
    """See `Store.put_record`."""
    _check_room(tx, limits)
    touched = tx.cursor.execute(
        "UPDATE records SET touched = ? WHERE scope = ? AND id = ?", (tx.now, new.scope, new.root)
    ).rowcount
    root = new.root if touched else new.id
    size = RECORD_BYTES + len(new.body)
    values = (new.scope, new.id, new.user, root, new.parent, new.created, new.body, new.open, new.lease, tx.now, size)
    places = ", ".join("?" * len(values))
    tx.cursor.execute(f"INSERT INTO records ({COLUMNS}, touched, bytes) VALUES ({places})", values)
    _count(tx, 1, size)


def revise_record(
    tx: Transaction, scope: str, record_id: str, body: bytes, stays_open: bool, appends: Sequence[Append]
) -> bool:
    """See `Store.revise_record`."""
    found = tx.cursor.execute(
        "SELECT seq, length(body) FROM records WHERE scope = ? AND id = ? AND open = 1", (scope, record_id)
    ).fetchone()
    if found is None:
        return False
    seq, old = found
    grown = len(body) - old
    tx.cursor.execute(
        "UPDATE records SET body = ?, open = ?, bytes = bytes + ? WHERE seq = ?", (body, stays_open, grown, seq)
    )
    _count(tx, 0, grown)
    for each in appends:
        append(tx, scope, each)
    return True


def append(tx: Transaction, scope: str, more: Append, limits: Limits | None = None) -> bool:
    """See `Store.append`; `limits` where it is bounded."""
    if limits is not None:
        _check_room(tx, limits)
    found = tx.cursor.execute(NUMBER, (scope, more.record)).fetchone()
    if found is None or not found[1]:
        return False
    seq = found[0]
    (start,) = tx.cursor.execute(
        "UPDATE records SET next = next + ? WHERE seq = ? RETURNING next - ?",
        (len(more.entries), seq, len(more.entries)),
    ).fetchone()
    rows = [(seq, start + place, each.id, each.body) for place, each in enumerate(more.entries)]
    tx.cursor.executemany("INSERT INTO entries (record, position, id, body) VALUES (?, ?, ?, ?)", rows)
    size = sum(ENTRY_BYTES + len(each.body) for each in more.entries)
    _grow(tx, seq, size)
    return True


def delete_entry(tx: Transaction, scope: str, record_id: str, entry_id: str) -> bool:
    """See `Store.delete_entry`."""
    found = tx.cursor.execute(NUMBER, (scope, record_id)).fetchone()
    if found is None or not entry_id:
        return False
    gone = tx.cursor.execute(
        "DELETE FROM entries WHERE record = ? AND id = ? RETURNING length(body)", (found[0], entry_id)
    ).fetchall()
    _grow(tx, found[0], -sum(ENTRY_BYTES + size for (size,) in gone))
    return bool(gone)


def renew_leases(tx: Transaction, records: Sequence[tuple[str, str]], until: float) -> frozenset[tuple[str, str]]:
    """See `Store.renew_leases`."""
    renew = "UPDATE records SET lease = ? WHERE scope = ? AND id = ? AND open = 1"
    return frozenset(key for key in records if tx.cursor.execute(renew, (until, *key)).rowcount)


def delete_record(tx: Transaction, scope: str, record_id: str) -> bool:
    """See `Store.delete_record`."""
    found = tx.cursor.execute(
        "SELECT seq, bytes FROM records WHERE scope = ? AND id = ? AND body != x''", (scope, record_id)
    ).fetchone()
    if found is None:
        return False
    seq, size = found
    tx.cursor.execute("DELETE FROM entries WHERE record = ?", (seq,))
    if tx.cursor.execute(CHILD, (scope, record_id)).fetchone() is None:
        tx.cursor.execute("DELETE FROM records WHERE seq = ?", (seq,))
        _count(tx, -1, -size)
        return True
    tx.cursor.execute("UPDATE records SET body = x'', open = 0, bytes = ? WHERE seq = ?", (RECORD_BYTES, seq))
    _count(tx, 0, RECORD_BYTES - size)
    return True


def expire_records(tx: Transaction, limits: Limits) -> bool:
    """Evict a slice of the trees that nobody has used for too long; whether there may be more."""
    roots = tx.cursor.execute(OLDEST, (tx.now - limits.max_age, SLICE)).fetchall()
    for scope, root in roots:
        doomed = tx.cursor.execute(
            "SELECT seq, bytes FROM records WHERE scope = ? AND root = ?", (scope, root)
        ).fetchall()
        numbers = [(seq,) for seq, _ in doomed]
        tx.cursor.executemany("DELETE FROM entries WHERE record = ?", numbers)
        tx.cursor.executemany("DELETE FROM records WHERE seq = ?", numbers)
        _count(tx, -len(doomed), -sum(size for _, size in doomed))
    return len(roots) == SLICE


def _check_room(tx: Transaction, limits: Limits) -> None:
    count, size = tx.cursor.execute("SELECT records, bytes FROM kept").fetchone()
    if count < limits.max_records and size < limits.max_record_bytes:
        return
    expire_records(tx, limits)
    count, size = tx.cursor.execute("SELECT records, bytes FROM kept").fetchone()
    if count >= limits.max_records or size >= limits.max_record_bytes:
        raise full(count, size)


def full(count: int, size: int) -> StoreFull:
    """The error of a store that has no room for a new record."""
    return StoreFull(
        f"{count} responses and conversations with {size} bytes are kept, and no more fit; delete some, send "
        "`store: false`, or have the operator raise [store] max_responses or max_response_bytes."
    )


def _grow(tx: Transaction, seq: int, size: int) -> None:
    tx.cursor.execute("UPDATE records SET bytes = bytes + ? WHERE seq = ?", (size, seq))
    _count(tx, 0, size)


def _count(tx: Transaction, records: int, size: int) -> None:
    tx.cursor.execute("UPDATE kept SET records = records + ?, bytes = bytes + ?", (records, size))


def _record(row: Sequence[object]) -> Record:
    *first, is_open, lease = row
    return Record(*first, bool(is_open), lease)  # type: ignore[arg-type, call-arg]
