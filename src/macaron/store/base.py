"""The Store protocol: what is kept between requests, in the words of the domain. No SQL above it."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from msgspec import Struct

from macaron.conversation import Hop, Step
from macaron.errors import StoreError


class Located(Struct, frozen=True):
    """Where a visible history was found.

    Attributes:
        step: the step whose outputs end the longest known prefix.
        position: index into the digests that were asked for.
    """

    step: Step
    position: int


class Lookup(Struct, frozen=True):
    """What is known about a request's visible history.

    Attributes:
        prefix: the longest known prefix, None for a new conversation.
        asked: the first step that continued this prefix with exactly this question, for its label: a retry.
    """

    prefix: Located | None
    asked: Step | None


class Config(Struct, frozen=True):
    """Registry and contract in force. `document` is opaque to the store; `generation` only grows, from 0 (nothing)."""

    generation: int
    document: bytes


class Limits(Struct, frozen=True):
    """Bounds of a store; the least recently used trees go first.

    Attributes:
        max_bytes: of all the steps' contents together.
        max_sessions: trees.
        max_age: seconds since a tree, of steps or of records, was last used.
        max_records: records; beyond it, new ones are refused.
        max_record_bytes: of all records and their entries, likewise.
    """

    max_bytes: int = 2_147_483_648
    max_sessions: int = 2_000_000
    max_age: float = 30 * 86_400.0
    max_records: int = 1_000_000
    max_record_bytes: int = 2_147_483_648


class Totals(Struct, frozen=True):
    """What a scope, or the whole store, has used."""

    steps: int = 0
    sessions: int = 0
    bytes: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Record(Struct, frozen=True):
    """A response or a conversation, as its API shows it.

    Attributes:
        scope: the tenant; an API that names a record by its id names no end user.
        user: the end user, empty where none is named.
        root: id of the record whose use keeps all of a tree: its own, or its parent's or conversation's root.
        parent: the record it continues.
        created: Unix time in seconds.
        body: JSON, opaque to the store; empty where it was deleted.
        open: whether it may still be revised.
        lease: Unix time until which somebody works on it; 0 where nobody has to.
    """

    scope: str
    id: str
    user: str
    root: str
    parent: str | None
    created: float
    body: bytes
    open: bool = False
    lease: float = 0.0

    @property
    def deleted(self) -> bool:
        """Whether its content is gone, and only its place in the tree is left."""
        return not self.body


class Entry(Struct, frozen=True):
    """One of the parts of a record that come one after another: an event of a response, an item of a conversation.

    Attributes:
        body: bytes, opaque to the store.
        id: names it within its record; empty where nothing has to.
        position: its place, counted from 0; the store gives it, and no other entry of the record ever gets it.
    """

    body: bytes
    id: str = ""
    position: int = -1


class Append(Struct, frozen=True):
    """Entries to be added to the end of a record."""

    record: str
    entries: tuple[Entry, ...]


class StoreFull(StoreError):
    """There is no room for a new record."""

    default_code = "store_full"


class Store(Protocol):
    """Keeps steps, notes, records and the configuration. All methods raise `StoreError` when it cannot do its work.

    A method that writes returns once the record is durable in the sense of the contract's `[store] durability`.
    `scope` isolates: nothing stored under one scope is ever returned for another.
    """

    def put_steps(self, steps: Sequence[Step]) -> Awaitable[None]:
        """Keep the sibling steps of one request, all or none. Written bytes do not depend on the history's length.

        The write may be under way when this returns; they are durable once the result was awaited.
        """
        ...

    async def locate(
        self, scope: str, digests: Sequence[str], *, asked: str, session: str | None = None, head: str = ""
    ) -> Lookup:
        """Find the longest of `digests` (ordered shortest first) that ends a step, in one batched look-up.

        Among several steps with that digest: one in `session`, then one with an equal `head`, then the newest.
        `asked` is looked up among the steps that continue the one found.
        """
        ...

    async def path(self, scope: str, step_id: str) -> tuple[Step, ...]:
        """The steps from the root to `step_id`; empty where it is not known to the scope."""
        ...

    async def session(self, scope: str, session_id: str, limit: int = 200) -> tuple[Step, ...]:
        """The newest `limit` steps of a session, oldest first."""
        ...

    async def put_summary(self, scope: str, step_id: str, summary: str | None, hop: Hop | None) -> None:
        """Add the summary of the turn ending at a step, and the hop that made it (kept also where it failed)."""
        ...

    async def freeze_note(self, scope: str, step_id: str, note: str) -> str:
        """Decide the note of the turn ending at a step, once; returns the note in force, be it an earlier one."""
        ...

    async def delete_step(self, scope: str, step_id: str) -> bool:
        """Remove a step's content; its descendants keep the chain with an empty note. False where it is not known."""
        ...

    async def config(self) -> Config:
        """The configuration in force."""
        ...

    async def compare_and_set(self, generation: int, document: bytes) -> Config:
        """Replace the configuration if `generation` is still in force; returns the one in force afterwards."""
        ...

    async def put_record(self, record: Record) -> None:
        """Keep a new record, and count it as a use of its tree.

        Raises:
            StoreFull: the limits of records are reached, and none is old enough to go.
        """
        ...

    async def record(self, scope: str, record_id: str) -> Record | None:
        """A record, None where it is not known to the scope. A deleted one is known."""
        ...

    async def lineage(self, scope: str, record_id: str, max_bytes: int) -> tuple[Record, ...]:
        """The records from the root to this one along `parent`; it begins later where more than `max_bytes` of bodies
        would be read, and is empty where the record is not known."""
        ...

    async def revise_record(
        self, scope: str, record_id: str, body: bytes, *, open: bool, appends: Sequence[Append] = ()
    ) -> bool:
        """Replace the body of a record that is open, and add entries to records of the scope, all or none.

        With `open` false it can never be revised again. False, and nothing is done, where it is not open or not known.
        """
        ...

    async def append(self, scope: str, append: Append, *, bounded: bool = False) -> bool:
        """Add entries to a record; False where it is not known or deleted.

        Raises:
            StoreFull: `bounded`, and the limits of records are reached.
        """
        ...

    async def entries(
        self, scope: str, record_id: str, *, after: int = -1, limit: int = 1000, newest_first: bool = False
    ) -> tuple[Entry, ...]:
        """Entries of a record from the one after the position `after` on; with `newest_first`, from the one before it
        on downwards, or from the last where `after` is negative."""
        ...

    async def entry(self, scope: str, record_id: str, entry_id: str) -> Entry | None:
        """The entry of a record with this id."""
        ...

    async def delete_entry(self, scope: str, record_id: str, entry_id: str) -> bool:
        """Remove an entry. False where it is not known."""
        ...

    async def renew_leases(self, leased: Sequence[tuple[str, str]], until: float) -> frozenset[tuple[str, str]]:
        """Go on working on some records, by scope and id; returns those that are still open."""
        ...

    async def delete_record(self, scope: str, record_id: str) -> bool:
        """Remove a record's body and entries; its place in the tree stays while another continues it.

        False where it is not known or deleted.
        """
        ...

    async def totals(self, scope: str | None = None) -> Totals:
        """What a scope has used, or everybody."""
        ...

    async def expire(self) -> int:
        """Apply the limits, whole trees at a time, least recently used first. Returns how many trees went."""
        ...

    async def ping(self) -> None:
        """Prove that the store can be written."""
        ...

    async def close(self) -> None:
        """Flush and release."""
        ...
