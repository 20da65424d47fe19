"""The Conversations API. A conversation is a record that stays open; its items are the record's entries."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from macaron.errors import NotFound
from macaron.server.responses.asking import Asking, asking, listing, page, unknown_item
from macaron.server.responses.documents import CONVERSATION
from macaron.store.base import Append, Entry, Record
from macaron.wire.conversations import conversation_object, new_conversation, new_items, new_metadata
from macaron.wire.responses_items import PREFIXES, WireItem, kept


async def create(request: Request) -> Response:
    """Create a conversation, with up to 20 items."""
    asked = asking(request)
    metadata, items = new_conversation(await asked.body())
    ids, now = asked.service.ids, int(time.time())
    name = ids.new(CONVERSATION)
    body = conversation_object(name, now, metadata)
    store = asked.service.store
    await store.put_record(Record(asked.tenant, name, "", name, None, float(now), body, open=True))
    if items:
        await store.append(asked.tenant, Append(name, _entries(asked, items)))
    return asked.answer(msgspec.Raw(body))


async def retrieve(request: Request) -> Response:
    """A conversation."""
    asked = asking(request)
    return asked.answer(msgspec.Raw((await _found(asked)).body))


async def update(request: Request) -> Response:
    """Replace a conversation's metadata."""
    asked = asking(request)
    record = await _found(asked)
    body = conversation_object(record.id, int(record.created), new_metadata(await asked.body()))
    await asked.service.store.revise_record(asked.tenant, record.id, body, open=True)
    return asked.answer(msgspec.Raw(body))


async def remove(request: Request) -> Response:
    """Delete a conversation with its items. The responses made in it stay."""
    asked = asking(request)
    record = await _found(asked)
    await asked.service.store.delete_record(asked.tenant, record.id)
    return asked.answer({"id": record.id, "object": "conversation.deleted", "deleted": True})


async def list_items(request: Request) -> Response:
    """A conversation's items, in pages."""
    asked = asking(request)
    record = await _found(asked)
    wanted, store, after = page(request), asked.service.store, -1
    if wanted.after:
        at = await store.entry(asked.tenant, record.id, wanted.after)
        if at is None:
            raise unknown_item(wanted.after)
        after = at.position
    found: Sequence[Entry] = ()
    # Before the first item there is nothing, where `entries` would begin at the last.
    if not (wanted.newest_first and after == 0):
        found = await store.entries(
            asked.tenant, record.id, after=after, limit=wanted.limit + 1, newest_first=wanted.newest_first
        )
    items = [msgspec.json.decode(entry.body) for entry in found[: wanted.limit]]
    return asked.answer(listing(items, len(found) > wanted.limit))


async def create_items(request: Request) -> Response:
    """Add up to 20 items to a conversation."""
    asked = asking(request)
    record = await _found(asked)
    entries = _entries(asked, new_items(await asked.body()))
    await asked.service.store.append(asked.tenant, Append(record.id, entries), bounded=True)
    return asked.answer(listing([msgspec.json.decode(entry.body) for entry in entries], False))


async def retrieve_item(request: Request) -> Response:
    """One item of a conversation."""
    asked = asking(request)
    record = await _found(asked)
    name = asked.name("item_id")
    entry = await asked.service.store.entry(asked.tenant, record.id, name)
    if entry is None:
        raise _no_item(name)
    return asked.answer(msgspec.Raw(entry.body))


async def delete_item(request: Request) -> Response:
    """Delete one item of a conversation; the answer is the conversation."""
    asked = asking(request)
    record = await _found(asked)
    name = asked.name("item_id")
    if not await asked.service.store.delete_entry(asked.tenant, record.id, name):
        raise _no_item(name)
    return asked.answer(msgspec.Raw(record.body))


def _entries(asked: Asking, items: Sequence[WireItem]) -> tuple[Entry, ...]:
    ids = asked.service.ids
    named = [kept(item, ids.new(PREFIXES[item["type"]])) for item in items]
    return tuple(Entry(msgspec.json.encode(item), item["id"]) for item in named)


async def _found(asked: Asking) -> Record:
    name = asked.name("conversation_id")
    record = await asked.service.store.record(asked.tenant, name) if name.startswith(CONVERSATION) else None
    if record is None or record.deleted:
        message = f"There is no conversation `{name[:80]}`."
        raise NotFound(message, param="conversation_id", code="conversation_not_found")
    return record


def _no_item(name: str) -> NotFound:
    return NotFound(f"The conversation has no item `{name[:80]}`.", param="item_id", code="item_not_found")


def conversation_routes() -> list[Route]:
    """The paths under `/v1/conversations`."""
    path = "/v1/conversations"
    one = path + "/{conversation_id}"
    item = one + "/items/{item_id}"
    return [
        Route(path, create, methods=["POST"]),
        Route(one, retrieve, methods=["GET"]),
        Route(one, update, methods=["POST"]),
        Route(one, remove, methods=["DELETE"]),
        Route(f"{one}/items", list_items, methods=["GET"]),
        Route(f"{one}/items", create_items, methods=["POST"]),
        Route(item, retrieve_item, methods=["GET"]),
        Route(item, delete_item, methods=["DELETE"]),
    ]
