"""What is kept of a turn, and what is found out about it later."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from macaron.conversation import Answer, Hop, StepStatus, Usage

ReactionKind = Literal["next", "tools", "retried", "none"]


class Consent(Struct, frozen=True):
    """On what ground turns are kept.

    Attributes:
        consent: what the tenant agreed to, in the operator's words.
        licence: what the turns may be used under; empty where nobody said.
    """

    tenant: str
    consent: str
    licence: str = ""


class Record(Struct, frozen=True, omit_defaults=True):
    """One answer hop, exactly: a turn is one of them, or several where it called tools.

    Attributes:
        id: of the step, which is also the response id.
        user: end user within the tenant, empty where the client names none.
        parent: the step that it continues.
        turn: id of the turn's first step.
        question: digest of the visible history that was answered.
        engine: kind of the engine.
        adapter: the engine's name of the adapter, None for the bare base.
        reason: how the specialist was chosen: `routed`, `sticky`, `pinned`, …
        given: how many of `messages` are the head: the specialist's identity and the client's own system run.
        system: the client's own system run alone.
        messages: the prompt in the Chat Completions shape, as the specialist was shown it.
        options: what the client asked of the engine: sampling parameters, tools. What is missing was the engine's.
        asked: the user's words that began this request; empty where it only brought tool results.
        usage: tokens of the answer hop, of all choices together.
        prompt_ids, ids, logprobs: tokens of the prompt and of the answer, and the logarithms of their probabilities
            before temperature and grammar. Empty where the engine does not tell, or did not tell them all; the end
            token may be missing.
    """

    id: str
    tenant: str
    user: str
    session: str
    parent: str | None
    turn: str
    question: str
    created: float
    label: str
    revision: str
    engine: str
    adapter: str | None
    contract: str
    generation: int
    reason: str
    status: StepStatus
    hops: tuple[Hop, ...]
    given: int
    system: tuple[str, ...]
    messages: tuple[dict[str, Any], ...]
    options: dict[str, Any]
    asked: str
    answer: Answer
    usage: Usage = Usage()
    prompt_ids: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()


class Reaction(Struct, frozen=True):
    """What followed: the user's `next` words, `tools` that were run, the same question `retried`, or `none` yet."""

    kind: ReactionKind
    text: str = ""


class Turn(Struct, frozen=True):
    """A record with what belongs to it."""

    record: Record
    consent: Consent
    reaction: Reaction


class Wanted(Struct, frozen=True):
    """Which turns; an empty tuple is all of them. Revisions may be shortened to a beginning."""

    tenants: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()
    reactions: tuple[ReactionKind, ...] = ()
    statuses: tuple[StepStatus, ...] = ()
