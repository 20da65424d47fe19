"""A write transaction, and the totals that every one of them keeps."""

from __future__ import annotations

import sqlite3
from functools import reduce

from msgspec.structs import astuple

from macaron.conversation import Step
from macaron.store.base import Totals

EVERYBODY = 0
"""Number of the row with everybody's totals."""

CHARGE = """
UPDATE scopes SET steps = steps + ?, sessions = sessions + ?, bytes = bytes + ?, prompt_tokens = prompt_tokens + ?,
    completion_tokens = completion_tokens + ? WHERE id IN (?, ?) RETURNING id, sessions, bytes"""


class Transaction:
    """A write transaction: what it adds to the totals is written once, by `finish`.

    Attributes:
        now: Unix time in seconds.
        put: steps added, for the cache once they are durable.
        unexpired: eviction that the store began by itself has more to do.
        total_sessions, total_bytes: everybody's, after `finish`.
    """

    def __init__(self, cursor: sqlite3.Cursor, now: float) -> None:
        self.cursor = cursor
        self.now = now
        self.put: list[Step] = []
        self.unexpired = False
        self.total_sessions = 0
        self.total_bytes = 0
        self._scopes: dict[str, int] = {}
        self._charges: dict[int, Totals] = {}

    def scope(self, name: str) -> int:
        """The number of a scope, which is created where it is new."""
        number = self._scopes.get(name)
        if number is None:
            row = self.cursor.execute("SELECT id FROM scopes WHERE name = ?", (name,)).fetchone()
            if row is None:
                row = self.cursor.execute("INSERT INTO scopes (name) VALUES (?) RETURNING id", (name,)).fetchone()
            number = self._scopes[name] = row[0]
        return number

    def know_scope(self, name: str, number: int) -> None:
        """Remember a scope's number for the rest of the transaction."""
        self._scopes[name] = number

    def charge(self, scope: int, more: Totals) -> None:
        """Add to a scope's totals, and to everybody's."""
        old = self._charges.get(scope)
        self._charges[scope] = more if old is None else add(old, more)

    def finish(self) -> None:
        """Write the totals. Everybody's are written also where nothing changed: that proves that it can be done."""
        everybody = reduce(add, self._charges.values(), Totals())
        alone = next(iter(self._charges), EVERYBODY) if len(self._charges) < 2 else EVERYBODY
        for scope, more in self._charges.items():
            if scope != alone:
                self.cursor.execute(CHARGE, (*astuple(more), scope, scope))
        # One scope alone has grown by as much as everybody.
        rows = self.cursor.execute(CHARGE, (*astuple(everybody), EVERYBODY, alone)).fetchall()
        ((_, self.total_sessions, self.total_bytes),) = (row for row in rows if row[0] == EVERYBODY)
        self._charges.clear()

    def drop_empty(self, scope: int) -> None:
        """Forget a scope that has no steps. Clients name end users, so scopes must not pile up."""
        self._scopes.clear()
        self.cursor.execute("DELETE FROM scopes WHERE id = ? AND steps = 0", (scope,))


def add(a: Totals, b: Totals) -> Totals:
    """The sum of two totals."""
    return Totals(
        a.steps + b.steps,
        a.sessions + b.sessions,
        a.bytes + b.bytes,
        a.prompt_tokens + b.prompt_tokens,
        a.completion_tokens + b.completion_tokens,
    )
