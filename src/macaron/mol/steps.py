"""Steps made of answers: what is committed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from macaron.conversation import Answer, Hop, Step, StepStatus, Usage
from macaron.mol.identity import chain, visible_count
from macaron.mol.lookup import Found, TurnRequest
from macaron.mol.note import BYTES_PER_TOKEN
from macaron.registry.cards import Specialist


class Frame(NamedTuple):
    """What all the steps of one request share.

    Attributes:
        turn: id of the turn they belong to.
        keep: whether their items are kept, or only digests and counts.
        summary_tokens: an answer of at most this many tokens is its own summary.
    """

    request: TurnRequest
    found: Found
    specialist: Specialist
    head: str
    session: str
    turn: str
    generation: int
    contract: str
    keep: bool
    summary_tokens: int


def steps_from(
    frame: Frame, answers: Sequence[Answer], hops: tuple[Hop, ...], usage: Usage, status: StepStatus | None = None
) -> list[Step]:
    """One step a choice. `status` overrides what the finish reason says, for answers that were cut off."""
    return [_step(frame, answer, hops, usage, status) for answer in answers]


def step_id(response_id: str, choice: int) -> str:
    """The first choice carries the response's id; the others are its siblings."""
    return response_id if choice == 0 else f"{response_id}.{choice}"


def _step(frame: Frame, answer: Answer, hops: tuple[Hop, ...], usage: Usage, status: StepStatus | None) -> Step:
    request, found = frame.request, frame.found
    outputs = answer.items()
    status = status or ("incomplete" if answer.finish in ("length", "content_filter") else "completed")
    return Step(
        id=step_id(request.id, answer.choice),
        session=frame.session,
        parent=found.parent.id if found.parent else None,
        turn=frame.turn,
        scope=request.scope,
        depth=found.depth + visible_count(outputs),
        digest=chain(outputs, found.asked)[-1],
        asked=found.asked,
        head=frame.head,
        label=frame.specialist.label,
        revision=frame.specialist.revision,
        status=status,
        finish=answer.finish,
        generation=frame.generation,
        contract=frame.contract,
        created=time.time(),
        inputs=found.new if frame.keep else None,
        outputs=outputs if frame.keep else None,
        input_count=visible_count(found.new),
        output_count=visible_count(outputs),
        hops=hops,
        summary=_own_summary(frame, answer, usage) if status == "completed" else None,
    )


def _own_summary(frame: Frame, answer: Answer, usage: Usage) -> str | None:
    """A short answer that ended its turn needs no summary hop."""
    if not frame.keep or answer.calls or not answer.text.strip():
        return None
    tokens = usage.completion if usage.completion and frame.request.n == 1 else len(answer.text) // BYTES_PER_TOKEN
    return answer.text if tokens <= frame.summary_tokens else None
