"""Steps for tests: one answer to one question, with everything that is not given derived from the id."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from macaron.conversation import Hop, Message, Step, Text, Usage


def said(text: str) -> tuple[Message, ...]:
    return (Message("user", (Text(text),)),)


def answered(text: str) -> tuple[Message, ...]:
    return (Message("assistant", (Text(text),)),)


def hop(prompt: int = 10, completion: int = 5) -> Hop:
    return Hop("answer", "L2", "rev", 1.0, 0.5, usage=Usage(prompt, completion))


def make(step_id: str, parent: Step | None = None, **fields: Any) -> Step:
    """A step named `step_id`, in the scope `t` and its parent's session, or one of its own."""
    step = Step(
        id=step_id,
        session=parent.session if parent else f"session-{step_id}",
        parent=parent.id if parent else None,
        turn=step_id,
        scope=parent.scope if parent else "t",
        depth=(parent.depth if parent else 0) + 2,
        digest=f"v1:d-{step_id}",
        asked=f"v1:a-{step_id}",
        head="head",
        label="L2",
        revision="rev",
        status="completed",
        finish="stop",
        generation=1,
        contract="contract",
        created=1.5,
        inputs=said(f"question {step_id}"),
        outputs=answered(f"answer {step_id}"),
        input_count=1,
        output_count=1,
        hops=(hop(),),
    )
    return replace(step, **fields)
