"""Steps made of answers: what is committed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct

from macaron.conversation import Answer, Hop, Step, StepStatus, Usage
from macaron.mol.identity import chain, visible_count
from macaron.mol.lookup import Found, TurnRequest
from macaron.mol.note import BYTES_PER_TOKEN
from macaron.registry.cards import Specialist


class Frame(Struct, frozen=True):
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
    """One step a choice.

    Args:
        status: of an answer that was cut off; choices that had ended before a cancel are whole all the same.
    """
    return [_step(frame, answer, hops, usage, status) for answer in answers]


def step_id(response_id: str, choice: int) -> str:
    """The first choice carries the response's id; the others are its siblings."""
    return response_id if choice == 0 else f"{response_id}.{choice}"


def own_summary(frame: Frame, answer: Answer, usage: Usage) -> str | None:
    """The answer where it ends its turn and is short enough to need no summary hop, else None."""
    if answer.calls:
        return None
    text = (answer.text + answer.refusal).strip()
    counted = usage.completion - usage.reasoning if frame.request.n == 1 else 0
    tokens = counted if counted > 0 else len(text.encode()) // BYTES_PER_TOKEN
    return text if not text or tokens <= frame.summary_tokens else None


def _step(frame: Frame, answer: Answer, hops: tuple[Hop, ...], usage: Usage, status: StepStatus | None) -> Step:
    request, found = frame.request, frame.found
    outputs = answer.items()
    said = visible_count(outputs)
    if status is None or (status == "cancelled" and answer.finish):
        status = "incomplete" if answer.finish in ("length", "content_filter") else "completed"
    return Step(
        id=step_id(request.id, answer.choice),
        session=frame.session,
        parent=found.parent.id if found.parent else None,
        turn=frame.turn,
        scope=request.scope,
        depth=found.depth + said,
        digest=chain(outputs, found.asked)[-1],
        asked=found.asked if found.parent else "",
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
        output_count=said,
        hops=hops,
        summary=own_summary(frame, answer, usage) or None if frame.keep and status == "completed" else None,
    )
