"""Replacing personal data and secrets in rows by placeholders such as `[EMAIL_1]`. Pure.

Within a row the same value has the same placeholder, so that a conversation stays consistent: an address that a user
gives is the one that the assistant's call passes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import msgspec

from macaron.train.data.pii import PiiKind, find
from macaron.train.data.rows import AnyRow

# The order matters: what is certain comes before what only has the shape of a number.
KINDS: tuple[PiiKind, ...] = get_args(PiiKind)
MAX_PASSES = 8
RowT = TypeVar("RowT", bound=AnyRow)


def scrub_row(row: RowT) -> tuple[RowT, Counter[PiiKind]]:
    """The row without personal data, and how often each kind was replaced. Ids, groups and labels are not looked at."""
    scrubber = _Scrubber()
    names = ("messages", "tools", "prompt", "chosen", "rejected")
    changed = {name: scrubber.value(getattr(row, name)) for name in names if hasattr(row, name)}
    return (msgspec.structs.replace(row, **changed) if scrubber.counts else row), scrubber.counts


def scrub_value(value: Any) -> tuple[Any, Counter[PiiKind]]:
    """Plain data without personal data in its texts, and how often each kind was replaced."""
    scrubber = _Scrubber()
    return scrubber.value(value), scrubber.counts


def scrub_text(text: str) -> str:
    """A text without personal data."""
    return _Scrubber().text(text)


class _Scrubber:
    def __init__(self) -> None:
        self.counts: Counter[PiiKind] = Counter()
        self._names: dict[tuple[PiiKind, str], str] = {}
        self._given: Counter[PiiKind] = Counter()

    def value(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self.text(key): self._member(key, item) for key, item in value.items()}
            case int() if not isinstance(value, bool):
                shown = str(value)
                scrubbed = self.text(shown)
                return value if scrubbed == shown else scrubbed
            case list() | tuple():
                return type(value)(self.value(item) for item in value)
            case _:
                return value

    def text(self, text: str) -> str:
        # What is replaced may have hidden its neighbour, which the next pass then finds.
        for _ in range(MAX_PASSES):
            before = text
            for kind in KINDS:
                text = self._replaced(kind, text)
            if text == before:
                break
        return text

    def _member(self, key: str, value: Any) -> Any:
        return self._arguments(value) if key == "arguments" and isinstance(value, str) else self.value(value)

    def _arguments(self, text: str) -> str:
        """JSON text stays JSON text, and stays as it is where nothing is found in it."""
        try:
            found = msgspec.json.decode(text)
        except (ValueError, RecursionError):
            return self.text(text)
        scrubbed = self.value(found)
        return text if scrubbed == found else msgspec.json.encode(scrubbed).decode()

    def _replaced(self, kind: PiiKind, text: str) -> str:
        parts: list[str] = []
        end = 0
        for found in find(kind, text):
            parts += (text[end : found.start], self._placeholder(kind, text[found.start : found.end]))
            end = found.end
            self.counts[kind] += 1
        return "".join([*parts, text[end:]]) if parts else text

    def _placeholder(self, kind: PiiKind, value: str) -> str:
        key = (kind, value)
        if key not in self._names:
            self._given[kind] += 1
            self._names[key] = f"[{kind.upper()}_{self._given[kind]}]"
        return self._names[key]
