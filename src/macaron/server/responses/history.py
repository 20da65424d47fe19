"""What a request continues: the items before its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from macaron.errors import BadRequest, Conflict, NotFound
from macaron.server.responses.documents import CONVERSATION, find, items_of, response_of
from macaron.store.base import Record, Store
from macaron.wire.responses import ResponsesRequest
from macaron.wire.responses_items import Reference, WireItem, owner_of

PARENT_SECONDS = 30.0
"""A request waits this long for the response that it continues to be finished."""

LOOK_SECONDS = 0.05

MAX_HISTORY_BYTES = 33_554_432
"""More is refused rather than read into memory; no model's context holds as much."""

PAGE = 500


class History(Struct, frozen=True):
    """What a request continues, and its own input with the references in it resolved.

    Attributes:
        before: the items before its own.
        input: its own.
        user: the end user that it has inherited, empty for none.
        root, parent: its place among the records; empty and None where it begins a tree.
    """

    before: list[WireItem]
    input: list[WireItem]
    user: str = ""
    root: str = ""
    parent: str | None = None


async def history(store: Store, tenant: str, request: ResponsesRequest) -> History:
    """The history of a request.

    Raises:
        BadRequest: what it names cannot be continued.
        NotFound: what it names is not known.
        Conflict: the response that it continues was not finished in time.
    """
    found = History([], [])
    if request.previous is not None:
        found = await _continued(store, tenant, request.previous, request.user)
    elif request.conversation is not None:
        found = await _conversation(store, tenant, request.conversation)
    own = [item for item in request.input if not isinstance(item, Reference)]
    known = {item["id"]: item for item in (*found.before, *own) if item.get("id")}
    resolved = [await _resolved(store, tenant, request.user or found.user, item, known) for item in request.input]
    return msgspec.structs.replace(found, input=resolved)


async def _continued(store: Store, tenant: str, response_id: str, user: str) -> History:
    parent = await _finished(store, tenant, response_id, user)
    status = response_of(parent)["status"]
    if status == "failed":
        message = f"The response `{response_id}` failed and cannot be continued; continue the one before it."
        raise BadRequest(message, param="previous_response_id", code="previous_response_failed")
    lineage = await store.lineage(tenant, response_id, MAX_HISTORY_BYTES)
    if lineage and lineage[0].id.startswith(CONVERSATION):
        message = f"The response `{response_id}` belongs to a conversation; continue that: `{lineage[0].id}`."
        raise BadRequest(message, param="previous_response_id", code="response_in_conversation")
    if not lineage or lineage[0].parent is not None:
        message = f"The responses before `{response_id}` are too large together, or expired; send the items as `input`."
        raise BadRequest(message, param="previous_response_id", code="previous_response_not_found")
    before = await asyncio.to_thread(_all_items, lineage)
    return History(before, [], parent.user, parent.root, parent.id)


def _all_items(lineage: Iterable[Record]) -> list[WireItem]:
    """The items of responses, oldest first. A deleted one has none."""
    return [item for record in lineage if not record.deleted for item in items_of(record)]


async def _finished(store: Store, tenant: str, response_id: str, user: str) -> Record:
    """The response that is continued, once it is finished."""
    end = time.monotonic() + PARENT_SECONDS
    while True:
        try:
            parent = await find(store, tenant, response_id, time.time())
        except NotFound:
            raise _unknown(response_id) from None
        if user and parent.user != user:
            raise _unknown(response_id)
        if not parent.open:
            return parent
        if time.monotonic() > end:
            message = f"The response `{response_id}` is not finished yet; wait for it, or cancel it."
            raise Conflict(message, param="previous_response_id", code="previous_response_in_progress")
        await asyncio.sleep(LOOK_SECONDS)


def _unknown(response_id: str) -> BadRequest:
    message = f"The previous response `{response_id[:80]}` is not kept here; send its items as `input` instead."
    return BadRequest(message, param="previous_response_id", code="previous_response_not_found")


async def _conversation(store: Store, tenant: str, conversation_id: str) -> History:
    record = await store.record(tenant, conversation_id) if conversation_id.startswith(CONVERSATION) else None
    if record is None or record.deleted:
        message = f"There is no conversation `{conversation_id[:80]}`; create it first."
        raise NotFound(message, param="conversation", code="conversation_not_found")
    items: list[WireItem] = []
    size, after = 0, -1
    while page := await store.entries(tenant, conversation_id, after=after, limit=PAGE):
        size, after = size + sum(len(entry.body) for entry in page), page[-1].position
        if size > MAX_HISTORY_BYTES:
            message = f"The conversation `{conversation_id}` is too large; delete items, or begin another."
            raise BadRequest(message, param="conversation", code="conversation_too_large")
        items += [msgspec.json.decode(entry.body) for entry in page]
    return History(items, [], "", record.root, record.id)


async def _resolved(
    store: Store, tenant: str, user: str, item: WireItem | Reference, known: dict[str, WireItem]
) -> WireItem:
    if not isinstance(item, Reference):
        return item
    found = known.get(item.id)
    owner = owner_of(item.id) if found is None else None
    if owner is not None:
        record = await store.record(tenant, owner)
        if record is not None and not record.deleted and (not user or record.user == user):
            known |= {each["id"]: each for each in items_of(record) if each.get("id")}
            found = known.get(item.id)
    if found is None:
        message = (
            f"The item `{item.id[:80]}` is not kept here; items of responses with `store: false` are not. Send it."
        )
        raise NotFound(message, param=f"{item.path}.id", code="item_not_found")
    return found
