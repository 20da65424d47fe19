"""A step as bytes, and back. JSON, because clients' integers may exceed 64 bits and must return as they came."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from types import GenericAlias
from typing import Final, NamedTuple, get_type_hints

import msgspec
from msgspec.structs import replace

from macaron.conversation import Hop, Step
from macaron.errors import StoreError


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


CHANGING: Final = ("summary", "note")
"""What of a step may be another after it was put; the last of its fields."""

KEPT: Final = tuple(name for name in Step.__struct_fields__ if name not in (*Names._fields, *CHANGING))
"""What of a step never changes and is never searched for: the body. The order, as in `Step`, is the format on disk."""

_kept_of: Final = attrgetter(*KEPT)
_in_steps_order: Final = itemgetter(*map((*Names._fields, *KEPT).index, Step.__struct_fields__[: -len(CHANGING)]))


class Codec:
    """Encoders and decoders. One per thread or lock: they keep buffers."""

    def __init__(self) -> None:
        self._encoder = msgspec.json.Encoder()
        types = get_type_hints(Step)
        self._body = msgspec.json.Decoder(GenericAlias(tuple, tuple(types[name] for name in KEPT)))
        self._hops = msgspec.json.Decoder(tuple[Hop, ...])

    def encode(self, step: Step) -> bytes:
        """The body of a step.

        Raises:
            StoreError: it holds something that no JSON document can hold.
        """
        try:
            return self._encoder.encode(_kept_of(step))
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(f"step {step.id!r} cannot be stored: {error}") from error

    def decode(self, names: Names, body: bytes) -> Step:
        """The step as it was put, without what came later.

        Raises:
            StoreError: the bytes are not those of a step.
        """
        try:
            kept = self._body.decode(body)
        except msgspec.MsgspecError as error:
            raise StoreError(f"step {names.id!r} is damaged in the store: {error}; restore a backup") from error
        return Step(*_in_steps_order(names + kept))

    def empty(self, body: bytes) -> bytes:
        """The body without what was said, for a step whose content was deleted."""
        kept = dict(zip(KEPT, self._body.decode(body), strict=True))
        return self._encoder.encode(tuple({**kept, "inputs": None, "outputs": None}.values()))

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
