"""What of a response is kept: its object and its own input items."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from macaron.errors import NotFound, Unavailable
from macaron.store.base import Record, Store
from macaron.wire.responses_answer import Body, failure
from macaron.wire.responses_items import WireItem

RESPONSE, CONVERSATION = "resp_", "conv_"


class Document(Struct, frozen=True):
    """The body of a response's record. `streamed` says whether its events are kept."""

    response: msgspec.Raw
    input: msgspec.Raw
    streamed: bool = False


def document(response: Body, items: msgspec.Raw, *, streamed: bool = False) -> bytes:
    """A response as its record keeps it, with its input items, which may be many, as JSON."""
    encode = msgspec.json.encode
    return encode(Document(msgspec.Raw(encode(response)), items, streamed))


def read(record: Record) -> Document:
    """The document of a record that is not deleted."""
    return msgspec.json.decode(record.body, type=Document)


def response_of(record: Record) -> Body:
    """The response object of a record."""
    body: Body = msgspec.json.decode(read(record).response)
    return body


def items_of(record: Record) -> list[WireItem]:
    """A response's own items: its input and its output."""
    kept = read(record)
    given: list[WireItem] = msgspec.json.decode(kept.input)
    body: Body = msgspec.json.decode(kept.response)
    return given + list(body["output"])


def revised(record: Record, **fields: Any) -> bytes:
    """A record's body with other fields in its response object."""
    kept = read(record)
    body: Body = msgspec.json.decode(kept.response)
    return msgspec.json.encode(Document(msgspec.Raw(msgspec.json.encode(body | fields)), kept.input, kept.streamed))


async def find(store: Store, tenant: str, response_id: str, now: float) -> Record:
    """A response; one whose worker is gone has failed.

    Raises:
        NotFound: it is not known to the tenant, or deleted.
    """
    known = await store.record(tenant, response_id) if response_id.startswith(RESPONSE) else None
    if known is not None and known.open and known.lease < now:
        gone = Unavailable("The worker that made this response is gone.", code="interrupted")
        await store.revise_record(tenant, known.id, revised(known, status="failed", error=failure(gone)), open=False)
        known = await store.record(tenant, response_id)
    if known is None or known.deleted:
        raise NotFound(f"There is no response `{response_id[:80]}`.", param="response_id", code="response_not_found")
    return known
