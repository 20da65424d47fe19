"""A step as the columns of its table, and the small numbers that its indexes are made of."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple
from zlib import crc32

from macaron.conversation import Step
from macaron.errors import StoreError
from macaron.store.codec import Codec, size_of

Key = tuple[bytes, bytes]


class Row(NamedTuple):
    """A step ready to be written; the names are those of the statement that puts it."""

    scope: bytes
    session: bytes
    id: bytes
    parent: bytes | None
    digest: bytes
    asked: bytes
    place: int
    asked_key: int
    head_key: int
    size: int
    prompt_tokens: int
    completion_tokens: int
    summary: bytes | None
    note: bytes | None
    body: bytes


def row_of(step: Step, codec: Codec) -> Row:
    """A step's columns.

    Raises:
        StoreError: it holds what cannot be encoded.
    """
    body = codec.encode(step)
    scope, digest, asked = raw(step.scope), raw(step.digest), raw(step.asked)
    return Row(
        scope=scope,
        session=raw(step.session),
        id=raw(step.id),
        parent=None if step.parent is None else raw(step.parent),
        digest=digest,
        asked=asked,
        place=place_of(scope, digest),
        asked_key=key_of(asked),
        head_key=key_of(raw(step.head)),
        size=size_of(body, step.summary, step.note),
        prompt_tokens=sum(hop.usage.prompt for hop in step.hops),
        completion_tokens=sum(hop.usage.completion for hop in step.hops),
        summary=None if step.summary is None else raw(step.summary),
        note=None if step.note is None else raw(step.note),
        body=body,
    )


def raw(text: str) -> bytes:
    """A text as it is stored. An unpaired surrogate is nothing to fail for: a client may ask for such a name."""
    return text.encode("utf-8", "surrogatepass")


def text(stored: bytes | None) -> str | None:
    """The text of what was stored.

    Raises:
        StoreError: it is no text.
    """
    if stored is None:
        return None
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise StoreError(f"a text in the store is damaged: {error.reason}; restore a backup") from error


def place_of(scope: bytes, digest: bytes) -> int:
    """What steps of a scope with a digest are looked for by: 64 bits, signed."""
    return int.from_bytes(blake2b(scope + b"\0" + digest, digest_size=8).digest(), "big", signed=True)


def key_of(value: bytes) -> int:
    """A checksum as the server's signed integer of 32 bits."""
    return crc32(value) - 0x8000_0000
