"""What is written, as functions of a transaction. The cost of a step depends on its own items only."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple
from zlib import crc32

from msgspec import Struct

from macaron.conversation import Hop, Step, Usage
from macaron.store.base import Config, Totals
from macaron.store.codec import Codec, size_of, text_size
from macaron.store.transaction import Transaction, add

ROWS = (32, 16, 8, 4, 2, 1)
"""Rows of one INSERT. SQLite's module gives the interpreter lock away for every statement, and taking it back from a
busy event loop can take milliseconds, so rows go in together; a few fixed sizes keep the statements prepared."""


def _inserts(head: str, row: str, tail: str = "") -> dict[int, str]:
    return {rows: f"{head} VALUES {', '.join([row] * rows)} {tail}" for rows in ROWS}


# Whatever else has to be known comes along: a question of its own would cost as much again as this statement.
ADD_SESSIONS = _inserts(
    "INSERT INTO sessions (scope, name, steps, bytes, touched)",
    "((SELECT id FROM scopes WHERE name = ?), ?, ?, ?, ?)",
    """ON CONFLICT (scope, name) DO UPDATE SET steps = steps + excluded.steps, bytes = bytes + excluded.bytes,
    touched = max(touched, excluded.touched)
    RETURNING (SELECT scopes.name FROM scopes WHERE scopes.id = scope), scope, name, id, steps,
    (SELECT ifnull(max(seq), 0) FROM steps)""",
)
ADD_STEPS = _inserts(
    """INSERT INTO steps
    (seq, scope, session, parent, id, digest, asked, digest_crc, asked_crc, head_crc, bytes, summary, note)""",
    "(?, ?, ?, coalesce(?, (SELECT seq FROM steps WHERE scope = ? AND id = ?)), ?, ?, ?, ?, ?, ?, ?, ?, ?)",
)
ADD_BODIES = _inserts("INSERT INTO bodies (seq, body)", "(?, ?)")

FIND_STEP = """
SELECT seq, scope, session, bytes, summary, note, hops, deleted FROM steps
WHERE scope = (SELECT id FROM scopes WHERE name = ?) AND id = ?"""


class Row(Struct, frozen=True):
    """A step ready to be written."""

    step: Step
    body: bytes
    totals: Totals


def row_of(step: Step, body: bytes) -> Row:
    """A step ready to be written, with what it counts for."""
    prompt = completion = 0
    for hop in step.hops:
        prompt += hop.usage.prompt
        completion += hop.usage.completion
    return Row(step, body, Totals(1, 0, size_of(body, step.summary, step.note), prompt, completion))


class Found(NamedTuple):
    """The columns of a step that writes look at."""

    seq: int
    scope: int
    session: int
    size: int
    summary: str | None
    note: str | None
    hops: bytes | None
    deleted: int


class Put(Struct, frozen=True):
    """Steps to write, all or none."""

    rows: tuple[Row, ...]


def put_steps(tx: Transaction, rows: Sequence[Row]) -> None:
    """Write the steps of any number of requests."""
    sessions, last = _put_sessions(tx, rows)
    numbers = {(row.step.scope, row.step.id): seq for seq, row in enumerate(rows, last + 1)}
    columns = [_columns(tx, row, sessions, numbers) for row in rows]
    _insert(tx, ADD_STEPS, columns)
    _insert(tx, ADD_BODIES, [(seq, row.body) for seq, row in enumerate(rows, last + 1)])
    tx.put.extend(row.step for row in rows)


def _put_sessions(tx: Transaction, rows: Sequence[Row]) -> tuple[dict[tuple[str, str], int], int]:
    """Count the steps into their sessions and scopes; returns the sessions' numbers, and that of the newest step."""
    grown: dict[tuple[str, str], Totals] = {}
    for row in rows:
        key = (row.step.scope, row.step.session)
        grown[key] = add(grown[key], row.totals) if key in grown else row.totals
    values = [(scope, name, more.steps, more.bytes, tx.now) for (scope, name), more in grown.items()]
    numbers = {}
    returned = _insert(tx, ADD_SESSIONS, values, partial(_add_scopes, tx))
    for scope, scope_number, name, number, steps, _ in returned:
        more = grown[scope, name]
        tx.know_scope(scope, scope_number)
        tx.charge(scope_number, add(more, Totals(sessions=int(steps == more.steps))))
        numbers[scope, name] = number
    return numbers, returned[-1][-1]


def _add_scopes(tx: Transaction, sessions: Sequence[tuple[Any, ...]]) -> None:
    """Sessions could not be written: the scope of one is new."""
    for scope in {session[0] for session in sessions}:
        tx.scope(scope)


def _columns(
    tx: Transaction, row: Row, sessions: dict[tuple[str, str], int], numbers: dict[tuple[str, str], int]
) -> tuple[object, ...]:
    step = row.step
    scope = tx.scope(step.scope)
    return (
        numbers[step.scope, step.id],
        scope,
        sessions[step.scope, step.session],
        None if step.parent is None else numbers.get((step.scope, step.parent)),
        scope,
        step.parent,
        step.id,
        step.digest,
        step.asked,
        crc32(step.digest.encode()),
        crc32(step.asked.encode()),
        crc32(step.head.encode()),
        row.totals.bytes,
        step.summary,
        step.note,
    )


def _insert(
    tx: Transaction,
    sql: dict[int, str],
    rows: Sequence[tuple[object, ...]],
    mend: Callable[[Sequence[tuple[Any, ...]]], None] | None = None,
) -> list[tuple[Any, ...]]:
    """Insert rows; where a constraint refuses some, `mend` may do something about it before they are tried again."""
    returned: list[tuple[Any, ...]] = []
    start = 0
    while start < len(rows):
        size = next(size for size in ROWS if size <= len(rows) - start)
        some = rows[start : start + size]
        parameters = tuple(chain.from_iterable(some))
        try:
            returned += tx.cursor.execute(sql[size], parameters).fetchall()
        except sqlite3.IntegrityError:
            if mend is None:
                raise
            mend(some)
            returned += tx.cursor.execute(sql[size], parameters).fetchall()
        start += size
    return returned


def put_summary(tx: Transaction, codec: Codec, scope: str, step_id: str, summary: str | None, hop: Hop | None) -> None:
    """Add a summary and a hop to a step that is still there; the hop's tokens count in any case."""
    found = _find(tx, scope, step_id)
    if found is None:
        return
    hops = found.hops if hop is None else codec.append_hop(found.hops, hop)
    kept = found.summary if summary is None or found.deleted else summary
    grown = text_size(kept) - text_size(found.summary) + len(hops or b"") - len(found.hops or b"")
    tx.cursor.execute(
        "UPDATE steps SET summary = ?, hops = ?, bytes = bytes + ? WHERE seq = ?", (kept, hops, grown, found.seq)
    )
    usage = hop.usage if hop else Usage()
    _grow(tx, found, Totals(bytes=grown, prompt_tokens=usage.prompt, completion_tokens=usage.completion))


def freeze_note(tx: Transaction, scope: str, step_id: str, note: str) -> str:
    """Set a note where there is none. A step that is not there any more takes the note without keeping it."""
    found = _find(tx, scope, step_id)
    if found is None:
        return note
    if found.note is not None:
        return found.note
    size = text_size(note)
    tx.cursor.execute("UPDATE steps SET note = ?, bytes = bytes + ? WHERE seq = ?", (note, size, found.seq))
    _grow(tx, found, Totals(bytes=size))
    return note


def delete_step(tx: Transaction, codec: Codec, scope: str, step_id: str) -> bool:
    """Empty a step's content, summary and note; False where it is not there or was emptied before."""
    found = _find(tx, scope, step_id)
    if found is None or found.deleted:
        return False
    (body,) = tx.cursor.execute("SELECT body FROM bodies WHERE seq = ?", (found.seq,)).fetchone()
    body = codec.empty(body)
    size = size_of(body, None, None) + len(found.hops or b"")
    tx.cursor.execute("UPDATE bodies SET body = ? WHERE seq = ?", (body, found.seq))
    tx.cursor.execute(
        "UPDATE steps SET summary = NULL, note = '', deleted = 1, bytes = ? WHERE seq = ?", (size, found.seq)
    )
    _grow(tx, found, Totals(bytes=size - found.size))
    return True


def compare_and_set(tx: Transaction, generation: int, document: bytes) -> Config:
    """Replace the configuration of this generation; returns the one in force."""
    tx.cursor.execute(
        "UPDATE config SET generation = generation + 1, document = ? WHERE generation = ?", (document, generation)
    )
    return Config(*tx.cursor.execute("SELECT generation, document FROM config").fetchone())


def _find(tx: Transaction, scope: str, step_id: str) -> Found | None:
    row = tx.cursor.execute(FIND_STEP, (scope, step_id)).fetchone()
    return None if row is None else Found(*row)


def _grow(tx: Transaction, found: Found, more: Totals) -> None:
    """Count into its session and scope what a step has grown by."""
    tx.cursor.execute("UPDATE sessions SET bytes = bytes + ? WHERE id = ?", (more.bytes, found.session))
    tx.charge(found.scope, more)
