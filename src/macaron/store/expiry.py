"""Eviction of whole sessions, least recently used first, in slices short enough that no writer waits long.

A step whose parent lived in an evicted session stays, and becomes the first of what `path` returns: later notes and
labels of its own session are worth more than none. A session larger than a slice goes oldest steps first; one that is
used in the meantime is no longer the least recently used, and keeps what is left.
"""

from __future__ import annotations

from typing import NamedTuple

from macaron.store.base import Limits, Totals
from macaron.store.transaction import Transaction

SLICE = 500
"""Most steps that one transaction evicts."""

SLICE_BYTES = 16_777_216
"""About the most bytes that it evicts, as far as the steps of a session are of one size."""

OLDEST = "SELECT id, scope, steps, bytes, touched FROM sessions ORDER BY touched, id LIMIT 1"
DOOMED = "SELECT seq FROM steps WHERE session = ? ORDER BY seq LIMIT ?"


class Slice(NamedTuple):
    """What one slice did: sessions that are gone, and whether there may be more to do."""

    sessions: int
    more: bool


class Session(NamedTuple):
    """The least recently used session."""

    id: int
    scope: int
    steps: int
    bytes: int
    touched: float


def expire(tx: Transaction, limits: Limits) -> Slice:
    """Evict one slice of the sessions beyond the limits."""
    gone = 0
    left = 1.0
    tx.finish()
    while left > 0:
        row = tx.cursor.execute(OLDEST).fetchone()
        if row is None or not _beyond(tx, Session(*row), limits):
            return Slice(gone, False)
        session = Session(*row)
        whole = max(session.steps / SLICE, session.bytes / SLICE_BYTES)
        count = session.steps if whole <= left else max(1, int(session.steps * left / whole))
        gone += _evict(tx, session, count)
        left -= whole
    return Slice(gone, True)


def _beyond(tx: Transaction, oldest: Session, limits: Limits) -> bool:
    return (
        tx.total_bytes > limits.max_bytes
        or tx.total_sessions > limits.max_sessions
        or oldest.touched < tx.now - limits.max_age
    )


def _evict(tx: Transaction, session: Session, count: int) -> int:
    execute = tx.cursor.execute
    doomed = (session.id, count)
    (size,) = execute(f"SELECT total(bytes) FROM steps WHERE seq IN ({DOOMED})", doomed).fetchone()
    execute(f"DELETE FROM bodies WHERE seq IN ({DOOMED})", doomed)
    execute(f"DELETE FROM steps WHERE seq IN ({DOOMED})", doomed)
    whole = count == session.steps
    if whole:
        execute("DELETE FROM sessions WHERE id = ?", (session.id,))
    else:
        execute("UPDATE sessions SET steps = steps - ?, bytes = bytes - ? WHERE id = ?", (count, int(size), session.id))
    tx.charge(session.scope, Totals(steps=-count, sessions=-int(whole), bytes=-int(size)))
    tx.finish()
    tx.drop_empty(session.scope)
    return int(whole)
