"""What a turn tells the endpoint that runs it, in order."""

from __future__ import annotations

from msgspec import Struct

from macaron.conversation import Answer, Delta, Finish, Hop, Usage
from macaron.registry.cards import Specialist


class Chosen(Struct, frozen=True):
    """First event of a turn: who answers, and how that was decided; `carrier` is for the client to keep."""

    specialist: Specialist
    session: str
    reason: str
    hops: tuple[Hop, ...]
    carrier: str | None = None


class Answered(Struct, frozen=True):
    """The answer is whole but not durable yet: what tells the client so may be prepared, not sent."""

    answers: list[Answer]
    finishes: list[Finish]
    usage: Usage
    hops: tuple[Hop, ...]


class Done(Struct, frozen=True):
    """Last event of a turn: it is committed, and the client may know that it is complete."""


TurnEvent = Chosen | list[Delta] | Answered | Done
