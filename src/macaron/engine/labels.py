"""Reads a routing label out of what a model wrote, whether or not the engine constrained it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

READ: Final = 4096
QUOTES: Final = " \t\r\n\"'`*“”‘’«»「」.,:;!。"


def parse_label(text: str, labels: Sequence[str], prefill: str = "") -> str | None:
    """The label that `text` names, None where it names none.

    Args:
        text: what the model wrote, with or without the prefill in front; bare, quoted, in JSON, or in a sentence, of
            which the first label that stands as a word counts.
        labels: the labels that may be named; one may begin another.
        prefill: the beginning of the answer that the prompt contained.
    """
    if not labels:
        return None
    text = text[:READ]
    readings = [prefill + text, text] if prefill else [text]
    for reading in readings:
        exact = _exact(reading, labels)
        if exact is not None:
            return exact
    for reading in readings:
        word = _word(reading, labels)
        if word is not None:
            return word
    return None


def _exact(text: str, labels: Sequence[str]) -> str | None:
    bare = text.strip(QUOTES)
    if bare in labels:
        return bare
    return _from_json(text, labels) if "{" in text or "[" in text else None


def _from_json(text: str, labels: Sequence[str]) -> str | None:
    try:
        value: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    match value:
        case dict():
            items = list(value.values())
        case list():
            items = value
        case _:
            return None
    named = {item for item in items if isinstance(item, str) and item in labels}
    return named.pop() if len(named) == 1 else None


def _word(text: str, labels: Sequence[str]) -> str | None:
    alternatives = "|".join(map(re.escape, labels))
    found = re.search(rf"(?<![A-Za-z0-9_-])(?:{alternatives})(?![A-Za-z0-9_-])", text)
    return found[0] if found else None
