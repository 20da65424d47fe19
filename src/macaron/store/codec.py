"""A step as bytes, and back. JSON, because clients' integers may exceed 64 bits and must return as they came."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from macaron.conversation import Hop, Item, Step, StepStatus
from macaron.errors import StoreError


class Body(Struct, frozen=True, array_like=True):
    """What of a step never changes and is never searched for. The order of the fields is the format on disk."""

    parent: str | None
    turn: str
    depth: int
    head: str
    label: str
    revision: str
    status: StepStatus
    finish: str
    generation: int
    contract: str
    created: float
    inputs: tuple[Item, ...] | None
    outputs: tuple[Item, ...] | None
    input_count: int
    output_count: int
    hops: tuple[Hop, ...]


class Names(NamedTuple):
    """What of a step never changes and has columns of its own."""

    scope: str
    session: str
    id: str
    digest: str
    asked: str


class Marks(NamedTuple):
    """What of a step may change after it was put: `hops` are encoded, those that came later than the step."""

    summary: str | None
    note: str | None
    hops: bytes | None
    deleted: int


class Codec:
    """Encoders and decoders. One per thread or lock: they keep buffers."""

    def __init__(self) -> None:
        self._encoder = msgspec.json.Encoder()
        self._body = msgspec.json.Decoder(Body)
        self._hops = msgspec.json.Decoder(tuple[Hop, ...])

    def encode(self, step: Step) -> bytes:
        """The body of a step.

        Raises:
            StoreError: it holds something that no JSON document can hold.
        """
        body = Body(
            step.parent,
            step.turn,
            step.depth,
            step.head,
            step.label,
            step.revision,
            step.status,
            step.finish,
            step.generation,
            step.contract,
            step.created,
            step.inputs,
            step.outputs,
            step.input_count,
            step.output_count,
            step.hops,
        )
        try:
            return self._encoder.encode(body)
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(f"step {step.id!r} cannot be stored: {error}") from error

    def decode(self, names: Names, body: bytes) -> Step:
        """The step as it was put, without what came later.

        Raises:
            StoreError: the bytes are not those of a step.
        """
        try:
            b = self._body.decode(body)
        except msgspec.MsgspecError as error:
            raise StoreError(f"step {names.id!r} is damaged in the store: {error}; restore a backup") from error
        return Step(
            names.id,
            names.session,
            b.parent,
            b.turn,
            names.scope,
            b.depth,
            names.digest,
            names.asked,
            b.head,
            b.label,
            b.revision,
            b.status,
            b.finish,
            b.generation,
            b.contract,
            b.created,
            b.inputs,
            b.outputs,
            b.input_count,
            b.output_count,
            b.hops,
        )

    def empty(self, body: bytes) -> bytes:
        """The body without what was said, for a step whose content was deleted."""
        return self._encoder.encode(replace(self._body.decode(body), inputs=None, outputs=None))

    def append_hop(self, hops: bytes | None, hop: Hop) -> bytes:
        """Hops that came later than the step, with one more."""
        return self._encoder.encode((*self._later(hops), hop))

    def mark(self, step: Step, marks: Marks) -> Step:
        """A step as it was put, with what came later."""
        if marks.deleted:
            step = forget(step)
        elif marks.hops is None and marks.summary == step.summary and marks.note == step.note:
            return step
        return replace(step, summary=marks.summary, note=marks.note, hops=step.hops + self._later(marks.hops))

    def _later(self, hops: bytes | None) -> tuple[Hop, ...]:
        return () if hops is None else self._hops.decode(hops)


def forget(step: Step) -> Step:
    """The step without what was said."""
    return replace(step, inputs=None, outputs=None)


def size_of(body: bytes, summary: str | None, note: str | None) -> int:
    """Bytes a step counts for in totals and limits."""
    return len(body) + text_size(summary) + text_size(note)


def text_size(text: str | None) -> int:
    """Bytes of a text in UTF-8; nothing for None."""
    return 0 if text is None else len(text.encode("utf-8", "surrogatepass"))
