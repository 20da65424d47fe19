"""What every wire format's request comes down to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from macaron.conversation import Item, Message

MEDIA_FIELDS = {
    "image_url": ("url", "detail"),
    "input_audio": ("data", "format"),
    "file": ("file_data", "filename"),
    "video_url": ("url",),
    "audio_url": ("url",),
}
"""What a part of a kind may hold, its content first. Engines read more fields, from other places than the body. Every
format's media are carried in this shape, which is the engines'."""


class TurnParts(Struct, frozen=True):
    """A request as the runtime reads it. A format's own fields go into a subclass.

    Attributes:
        model: what the client asked for.
        system: the leading run of system and developer messages; where there is nothing else, all but the last.
        items: everything after it.
        tools: in the Chat Completions shape.
        options: fields for the engine, checked, under their Chat Completions names.
        user: the end user, where the client names one.
        session: the name of the session, where the body has one; a header that names one goes before it.
        beside_results: the user's last words stand in one message with tool results.
    """

    model: str
    system: tuple[Message, ...]
    items: tuple[Item, ...]
    tools: tuple[dict[str, Any], ...] = ()
    options: dict[str, Any] = {}
    stream: bool = False
    n: int = 1
    user: str = ""
    session: str = ""
    beside_results: bool = False


def leading_system(items: Sequence[Item]) -> int:
    """How many system and developer messages begin a conversation; where there is nothing else, all but the last."""
    for index, item in enumerate(items):
        if not (isinstance(item, Message) and item.role in ("system", "developer")):
            return index
    return len(items) - 1
