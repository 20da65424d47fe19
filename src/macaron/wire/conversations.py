"""Requests and objects of the Conversations API. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from macaron.errors import BadRequest
from macaron.wire.chat_options import client_metadata
from macaron.wire.fields import array, decode_object
from macaron.wire.responses_items import Reference, WireItem, input_items

MAX_NEW_ITEMS = 20
"""Items that one request may add, as the public API has it."""


def new_conversation(body: bytes) -> tuple[dict[str, str], list[WireItem]]:
    """The metadata and first items of a conversation to be created.

    Raises:
        BadRequest: with the path of the field at fault.
    """
    fields = decode_object(body) if body.strip() else {}
    metadata = client_metadata(fields)
    given = fields.pop("items", None)
    _refuse_rest(fields)
    return metadata, [] if given is None else _items(given)


def new_metadata(body: bytes) -> dict[str, str]:
    """The metadata that replaces a conversation's.

    Raises:
        BadRequest: with the path of the field at fault.
    """
    fields = decode_object(body)
    if "metadata" not in fields:
        raise BadRequest("`metadata` is required.", param="metadata", code="missing_required_parameter")
    metadata = client_metadata(fields)
    _refuse_rest(fields)
    return metadata


def new_items(body: bytes) -> list[WireItem]:
    """The items to be added to a conversation.

    Raises:
        BadRequest: with the path of the field at fault.
    """
    fields = decode_object(body)
    items = _items(fields.pop("items", None))
    _refuse_rest(fields)
    if not items:
        raise BadRequest("`items` must not be empty.", param="items", code="empty_array")
    return items


def conversation_object(conversation_id: str, created: int, metadata: dict[str, str]) -> bytes:
    """A conversation."""
    return msgspec.json.encode(
        {"id": conversation_id, "object": "conversation", "created_at": created, "metadata": metadata}
    )


def _items(given: Any) -> list[WireItem]:
    if len(array(given, "items")) > MAX_NEW_ITEMS:
        raise BadRequest(f"`items` may hold at most {MAX_NEW_ITEMS} items.", param="items", code="array_too_long")
    items: list[WireItem] = []
    for item in input_items(given, "items"):
        if isinstance(item, Reference):
            message = f"`{item.path}` is a reference; send the item itself."
            raise BadRequest(message, param=item.path, code="unsupported_item")
        items.append(item)
    return items


def _refuse_rest(fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        if value is not None:
            raise BadRequest(f"`{name}` is not a field of this request.", param=name, code="unknown_parameter")
