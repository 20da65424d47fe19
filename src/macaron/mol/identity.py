"""Which conversation a request belongs to: canonical items and their chained digests.

The digest is versioned; golden vectors in the tests fix version 1. White space, Unicode composition, call ids,
reasoning and the leading system run do not change it, so that a client that re-serialises its history finds its session
again.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from macaron.conversation import Item, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, text_of

VERSION = "v1"

MAX_ARGUMENTS = 1_048_576
"""Longer arguments count as text: parsing them would hold up everybody else's requests."""

LARGEST_WHOLE = 2**53
"""Up to here every client writes a number without a fraction as a whole one."""

PIECE = 65_536

WORTH_KEEPING = (512, 131_072)
"""Characters of the messages whose digests are remembered."""

_SPACE = re.compile(r"\s")


def canonical_text(text: str) -> str:
    """NFC, runs of white space as one space, trimmed."""
    if len(text) <= PIECE:
        return _collapsed(text)
    # In pieces, between which another thread may run. Each begins with white space, so that no word and no character
    # composed of several is cut.
    pieces, start = [], 0
    while start < len(text):
        space = _SPACE.search(text, start + PIECE)
        end = space.start() if space else len(text)
        pieces.append(_collapsed(text[start:end]))
        start = end
    return " ".join(filter(None, pieces))


def canonical_arguments(arguments: str) -> str:
    """Sorted compact JSON; the text itself where it is not JSON, or too long to be looked into.

    Some wire formats carry the decoded value: no arguments come back as an empty object, and `1.0` as `1`.
    """
    if len(arguments) > MAX_ARGUMENTS:
        return arguments
    try:
        value = json.loads(arguments.strip() or "{}", parse_float=_number)
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return arguments


def canonical_item(item: Item) -> bytes | None:
    """The bytes of an item that decide identity; None for an item that is not part of the visible history."""
    match item:
        case Message(role, parts):
            shape: list[Any] = ["message", role, canonical_text(text_of(parts)), _media_digests(parts)]
        case ToolCall(_, name, arguments):
            shape = ["call", name, canonical_arguments(arguments)]
        case ToolResult(_, parts):
            shape = ["result", canonical_text(text_of(parts)), _media_digests(parts)]
        case Opaque(kind, raw):
            shape = ["opaque", kind, _sha256(_sorted_json(raw))]
        case Reasoning():
            return None
    return msgspec.json.encode(shape)


def item_digest(item: Item) -> str | None:
    """The hash of an item's canonical bytes."""
    data = canonical_item(item)
    return None if data is None else _sha256(data)


def chain(items: Iterable[Item], start: str = "", digest_of: Callable[[Item], str | None] = item_digest) -> list[str]:
    """The digest after each item; an invisible item repeats the one before it.

    Args:
        start: the digest the items continue, empty at a root.
        digest_of: `item_digest`, or something that remembers what it said.
    """
    digests: list[str] = []
    current = start or VERSION + ":"
    for item in items:
        digest = digest_of(item)
        if digest is not None:
            current = f"{VERSION}:{_sha256((current + digest).encode())}"
        digests.append(current)
    return digests


class ItemDigests:
    """`item_digest` for one event loop, remembering the long messages it was given, within a bound of bytes.

    A client sends its whole history with every request; finding a text again costs a tenth of making it canonical.
    """

    def __init__(self, limit: int = 8_388_608, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._bytes = 0
        self._known: dict[tuple[str, str], tuple[str, float]] = {}

    def __call__(self, item: Item) -> str | None:
        key = _worth_keeping(item)
        known = self._known.get(key) if key else None
        if known is not None:
            return known[0]
        digest = item_digest(item)
        self.learn(item, digest)
        return digest

    def unknown(self, items: Iterable[Item]) -> list[Item]:
        """Those of some items whose digests would have to be made."""
        return [item for item in items if (key := _worth_keeping(item)) is None or key not in self._known]

    def learn(self, item: Item, digest: str | None) -> None:
        """Remember a digest, where that is worth its bytes; the oldest go."""
        key = _worth_keeping(item)
        if key is None or digest is None or key in self._known:
            return
        self._known[key] = (digest, self._clock())
        self._bytes += sys.getsizeof(key[1])
        while self._bytes > self._limit:
            self._forget(next(iter(self._known)))

    def sweep(self, seconds: float) -> None:
        """Forget the messages that were learned longer ago: some may be of conversations that nobody keeps."""
        oldest = self._clock() - seconds
        while self._known and next(iter(self._known.values()))[1] <= oldest:
            self._forget(next(iter(self._known)))

    def _forget(self, key: tuple[str, str]) -> None:
        del self._known[key]
        self._bytes -= sys.getsizeof(key[1])


def _worth_keeping(item: Item) -> tuple[str, str] | None:
    match item:
        case Message(role, (Text(text),)) if WORTH_KEEPING[0] <= len(text) <= WORTH_KEEPING[1]:
            return role, text
        case _:
            return None


def head_digest(system: Sequence[Message], tools: Sequence[dict[str, Any]]) -> str:
    """Digest of the client's part of a head, byte by byte: its leading system run and its tools in canonical order."""
    return _sha256(msgspec.json.encode(system) + b"\n" + _sorted_json(canonical_tools(tools)))


def canonical_tools(tools: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Tools ordered by name, so that a client that shuffles them keeps its prefix."""
    return tuple(sorted(tools, key=_tool_key))


def is_visible(item: Item) -> bool:
    """Whether an item counts for identity."""
    return not isinstance(item, Reasoning)


def visible_count(items: Iterable[Item]) -> int:
    """How many of the items count for identity."""
    return sum(map(is_visible, items))


def by_model(item: Item) -> bool:
    """Whether the model produced this item."""
    match item:
        case ToolCall() | Reasoning():
            return True
        case Message(role):
            return role == "assistant"
        case _:
            return False


def answer_ends(items: Sequence[Item]) -> list[int]:
    """Positions at which an answer of the model ends: the only places where a stored step can end."""
    return [
        index
        for index, item in enumerate(items)
        if by_model(item) and (index + 1 == len(items) or not by_model(items[index + 1]))
    ]


def _number(digits: str) -> int | float:
    value = float(digits)
    return int(value) if value.is_integer() and abs(value) <= LARGEST_WHOLE else value


def _collapsed(text: str) -> str:
    return " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())


def _media_digests(parts: Sequence[Part]) -> list[str]:
    if len(parts) == 1 and isinstance(parts[0], Text):
        return []
    return [_sha256(_sorted_json(part.raw)) for part in parts if isinstance(part, Media)]


def _tool_key(tool: dict[str, Any]) -> tuple[str, str]:
    function = tool.get("function")
    name = function.get("name") if isinstance(function, dict) else tool.get("name")
    return (str(tool.get("type", "")), str(name or ""))


def _sorted_json(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
