"""What a conversation is made of, without any wire format and without I/O.

An `Item` is one thing that was said, called or returned. A `Step` is one answer hop with the items that led to it and
the items it produced; steps form the tree that a session is. `AnswerEvent`s are what an engine streams. Whatever this
module does not understand it carries opaque, so that a newer client or engine loses nothing on the way through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

Role = Literal["system", "developer", "user", "assistant"]
StepStatus = Literal["completed", "incomplete", "cancelled", "failed"]
HopKind = Literal["route", "answer", "summary"]


class Text(Struct, frozen=True, tag="text"):
    """A part of a message that is text."""

    text: str


class Media(Struct, frozen=True, tag="media"):
    """A part that is not text, exactly as the client wrote it: an image, a file, sound."""

    kind: str
    raw: dict[str, Any]


Part = Text | Media


class Message(Struct, frozen=True, tag="message"):
    """Something a role said. `extra` holds fields that only the engine may understand."""

    role: Role
    parts: tuple[Part, ...]
    extra: dict[str, Any] = {}


class ToolCall(Struct, frozen=True, tag="call"):
    """The model's wish to have a tool run. `arguments` is the text the model wrote, normally JSON."""

    call_id: str
    name: str
    arguments: str
    kind: str = "function"


class ToolResult(Struct, frozen=True, tag="result"):
    """What a tool returned for the call with this id."""

    call_id: str
    parts: tuple[Part, ...]


class Reasoning(Struct, frozen=True, tag="reasoning"):
    """The model's thinking. Hidden state: it never decides which session a request belongs to."""

    text: str


class Opaque(Struct, frozen=True, tag="opaque"):
    """An item of a kind this version does not know, carried as it came."""

    kind: str
    raw: dict[str, Any]


Item = Message | ToolCall | ToolResult | Reasoning | Opaque


def text_of(parts: Sequence[Part]) -> str:
    """The text of some parts, joined by line ends; parts that are not text count for nothing."""
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return "\n".join(part.text for part in parts if isinstance(part, Text))


class Usage(Struct, frozen=True):
    """Tokens of one hop, as the engine counted them."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
            self.reasoning + other.reasoning,
        )


class Hop(Struct, frozen=True):
    """One call to the engine, for the trace. Times are seconds; `queued` is the part of `seconds` spent waiting."""

    kind: HopKind
    label: str
    revision: str
    started: float
    seconds: float
    queued: float = 0.0
    usage: Usage = Usage()
    outcome: str = "ok"


class Step(Struct, frozen=True):
    """One answer hop and what it produced: the unit that is committed.

    Attributes:
        id: also the response id the client sees.
        session: the tree this step belongs to.
        parent: the step it continues, None at a root.
        turn: id of the first step of the user turn this step is part of.
        scope: whose it is: tenant, and end user where the client names one.
        depth: canonical items from the root to the end of this step's outputs.
        digest: digest of the visible history up to the end of this step's outputs.
        asked: digest of the visible history up to the end of its inputs, which is the question that was routed; empty
            at a root, where no retry is looked for.
        head: digest of the client's leading system run and tools.
        inputs: items the request added after the parent; foreign ones first.
        outputs: items the client was given.
        generation: of registry and contract, when the step was made.
        contract: digest of the contract in force.
        created: Unix time in seconds.
        summary: the turn's summary once there is one; an answer short enough is its own.
        note: the text that stands for the turn ending here in other specialists' views, once it is frozen.
    """

    id: str
    session: str
    parent: str | None
    turn: str
    scope: str
    depth: int
    digest: str
    asked: str
    head: str
    label: str
    revision: str
    status: StepStatus
    finish: str
    generation: int
    contract: str
    created: float
    inputs: tuple[Item, ...] | None = ()
    outputs: tuple[Item, ...] | None = ()
    input_count: int = 0
    output_count: int = 0
    hops: tuple[Hop, ...] = ()
    summary: str | None = None
    note: str | None = None


class CallDelta(Struct, frozen=True):
    """A piece of a tool call: the first one of an index carries id and name."""

    index: int
    call_id: str | None = None
    name: str | None = None
    arguments: str = ""


class Delta(Struct, frozen=True):
    """A piece of one choice's answer, as it comes from the engine."""

    choice: int = 0
    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[CallDelta, ...] = ()
    logprobs: dict[str, Any] | None = None


class Finish(Struct, frozen=True):
    """One choice has ended: `stop`, `length`, `tool_calls`, `content_filter`, or what the engine calls it."""

    reason: str
    choice: int = 0


class Sampled(Struct, frozen=True):
    """The tokens of one choice as they were sampled; comes before its `Finish`, where a hop asks for them.

    Attributes:
        ids: token ids, the end token included where the engine tells it; empty where it tells none.
        logprobs: natural logarithms of their probabilities, before temperature, penalties and grammar.
        prompt: token ids of the prompt, where the engine gives them with the answer.
    """

    choice: int = 0
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    prompt: tuple[int, ...] = ()


AnswerEvent = Delta | Finish | Usage | Sampled


class Answer(Struct, frozen=True):
    """One choice, whole: what an answer hop said under one index."""

    choice: int
    text: str
    finish: str
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[ToolCall, ...] = ()
    logprobs: dict[str, Any] | None = None

    def items(self) -> tuple[Item, ...]:
        """The answer as items. An empty text beside calls is no item of its own, as in a client's history."""
        items: list[Item] = [Reasoning(self.reasoning)] if self.reasoning else []
        texts = [text for text in (self.text, self.refusal) if text] or [""]
        if not self.calls or any(map(str.strip, texts)):
            items.append(Message("assistant", tuple(map(Text, texts))))
        return (*items, *self.calls)
