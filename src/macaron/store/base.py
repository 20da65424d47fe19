"""The Store protocol: what is kept between requests, in the words of the domain. No SQL above it."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from msgspec import Struct

from macaron.conversation import Hop, Step


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
        max_age: seconds since a tree was last used.
    """

    max_bytes: int = 2_147_483_648
    max_sessions: int = 2_000_000
    max_age: float = 30 * 86_400.0


class Totals(Struct, frozen=True):
    """What a scope, or the whole store, has used."""

    steps: int = 0
    sessions: int = 0
    bytes: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Store(Protocol):
    """Keeps steps, notes and the configuration. All methods raise `StoreError` when the store cannot do its work.

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
