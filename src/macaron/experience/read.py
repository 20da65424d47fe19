"""Reading recorded turns, and deleting them, beside a service that goes on recording."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from macaron.experience.base import Consent, Reaction, ReactionKind, Record, Turn, Wanted
from macaron.experience.file import connect, file_error

CHUNK = 200
MAX_SESSIONS = 100_000

HEAD = "t.seq, t.id, t.tenant, t.session, t.label, t.revision, t.status, t.consent"

# One look at everything: what continued a step first, and who else was asked the same question.
NEXT = (
    """CREATE TEMP TABLE followed AS
        SELECT parent AS id, min(seq) AS next FROM turns WHERE parent IS NOT NULL GROUP BY 1""",
    "CREATE INDEX temp.followed_id ON followed (id)",
    """CREATE TEMP TABLE again AS
        SELECT question, tenant, max(seq) AS last FROM turns GROUP BY 1, 2 HAVING count(DISTINCT turn) > 1""",
    "CREATE INDEX temp.again_question ON again (question, tenant)",
)
FORGET = ("DROP TABLE IF EXISTS temp.followed", "DROP TABLE IF EXISTS temp.again")
PAGE = f"""
SELECT {HEAD}, n.seq, n.turn = t.turn, a.last > t.seq
FROM turns t
LEFT JOIN temp.followed f ON f.id = t.id LEFT JOIN turns n ON n.seq = f.next
LEFT JOIN temp.again a ON a.question = t.question AND a.tenant = t.tenant
WHERE t.seq > ? ORDER BY t.seq LIMIT ?"""
ONE = f"""
SELECT {HEAD}, n.seq, n.turn = t.turn,
    EXISTS (SELECT 1 FROM turns a
        WHERE a.question = t.question AND a.tenant = t.tenant AND a.seq > t.seq AND a.turn <> t.turn)
FROM turns t LEFT JOIN turns n ON n.seq = (SELECT min(seq) FROM turns WHERE parent = t.id)
WHERE t.id = ?"""
SESSIONS = """
SELECT tenant, session, count(*), count(DISTINCT turn), group_concat(DISTINCT label), min(created), max(created),
    sum(bytes)
FROM turns WHERE (:tenant = '' OR tenant = :tenant) GROUP BY 1, 2 ORDER BY max(seq) DESC LIMIT :limit"""


class SessionUse(NamedTuple):
    """What is recorded of a session: answers, turns, the labels that gave them, Unix times, bytes."""

    tenant: str
    session: str
    answers: int
    turns: int
    labels: str
    first: float
    last: float
    bytes: int


class Totals(NamedTuple):
    """What the file holds."""

    turns: int
    bytes: int


class _Head(NamedTuple):
    seq: int
    id: str
    tenant: str
    session: str
    label: str
    revision: str
    status: str
    consent: int
    next: int | None
    goes_on: int | None
    again: int | None

    @property
    def kind(self) -> ReactionKind:
        """What followed."""
        if self.next is not None:
            return "tools" if self.goes_on else "next"
        return "retried" if self.again else "none"


class ExperienceFile:
    """A file of recorded turns, open until the block ends.

    Raises:
        ConfigError: it is not there or cannot be read; also from every method.
    """

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        self._path = path
        self._db = connect(path, "rw" if writable else "ro")
        self._decoder = msgspec.msgpack.Decoder(Record)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def totals(self) -> Totals:
        """Answers and bytes that are kept."""
        return Totals(*self._rows("SELECT turns, bytes FROM totals")[0])

    def sessions(self, tenant: str = "", limit: int = MAX_SESSIONS) -> list[SessionUse]:
        """Sessions, the one that was recorded last first."""
        return [SessionUse(*row) for row in self._rows(SESSIONS, {"tenant": tenant, "limit": limit})]

    def turns(self, wanted: Wanted | None = None) -> Iterator[Turn]:
        """The turns that are wanted, oldest first. What is recorded meanwhile may be among them."""
        wanted = wanted or Wanted()
        for statement in (*FORGET, *NEXT):
            self._rows(statement)
        consents = self._consents()
        last = 0
        while page := [_Head(*row) for row in self._rows(PAGE, (last, CHUNK))]:
            last = page[-1].seq
            found = (self._turn(head, consents) for head in page if _matches(head, wanted))
            yield from (turn for turn in found if turn is not None)

    def find(self, turn_id: str) -> Turn | None:
        """The turn of a response id, None where it is not kept."""
        rows = self._rows(ONE, (turn_id,))
        return self._turn(_Head(*rows[0]), self._consents()) if rows else None

    def ids(self) -> frozenset[str]:
        """The ids of everything that is kept."""
        return frozenset(row[0] for row in self._rows("SELECT id FROM turns"))

    def count(self, revision: str) -> int:
        """Answers of a revision that are kept."""
        found: int = self._rows("SELECT count(*) FROM turns WHERE revision = ?", (revision,))[0][0]
        return found

    def delete(self, tenant: str, session: str = "") -> int:
        """Delete and overwrite what is kept of a tenant, or of one of its sessions. Returns how many answers went."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            where, values = ("tenant = ? AND session = ?", (tenant, session)) if session else ("tenant = ?", (tenant,))
            self._db.execute(f"DELETE FROM bodies WHERE seq IN (SELECT seq FROM turns WHERE {where})", values)
            gone = self._db.execute(f"DELETE FROM turns WHERE {where}", values).rowcount
            rest = "SELECT count(*), coalesce(sum(bytes), 0) FROM turns"
            self._db.execute(f"UPDATE totals SET (turns, bytes) = ({rest})")
            self._db.execute("COMMIT")
            # The log still holds what was deleted.
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise file_error(self._path, error) from error
        return gone

    def _turn(self, head: _Head, consents: dict[int, Consent]) -> Turn | None:
        record = self._record(head.seq)
        if record is None:
            return None
        followed = self._record(head.next) if head.kind == "next" and head.next is not None else None
        consent = consents.get(head.consent) or Consent(head.tenant, "")
        return Turn(record, consent, Reaction(head.kind, followed.asked if followed else ""))

    def _record(self, seq: int) -> Record | None:
        """None where it was deleted meanwhile."""
        rows = self._rows("SELECT body FROM bodies WHERE seq = ?", (seq,))
        try:
            return self._decoder.decode(rows[0][0]) if rows else None
        except msgspec.MsgspecError as error:
            raise file_error(self._path, ValueError(f"turn {seq} is damaged: {error}")) from error

    def _consents(self) -> dict[int, Consent]:
        return {row[0]: Consent(*row[1:]) for row in self._rows("SELECT id, tenant, consent, licence FROM consents")}

    def _rows(self, statement: str, values: Any = ()) -> list[Any]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise file_error(self._path, error) from error


def _matches(head: _Head, wanted: Wanted) -> bool:
    if wanted.revisions and not any(map(head.revision.startswith, wanted.revisions)):
        return False
    asked: tuple[tuple[str, tuple[str, ...]], ...] = (
        (head.tenant, wanted.tenants),
        (head.session, wanted.sessions),
        (head.label, wanted.labels),
        (head.status, wanted.statuses),
        (head.kind, wanted.reactions),
    )
    return all(not allowed or value in allowed for value, allowed in asked)
