"""The text of rows, for comparing rows with each other. Pure.

System messages are left out: a long one that many rows share would make them all look the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from macaron.train.data.rows import AnyRow, PreferenceRow, RouteRow, SftRow

# A script written without spaces has no words to find, so each of its characters counts as one.
_SOLID = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_SOLID}]|[^\W{_SOLID}]+")


def prompt_text(row: AnyRow) -> str:
    """What a model would be given: everything before the answer that is learned, or the whole routed conversation."""
    match row:
        case SftRow():
            return _joined(row.messages[:-1])
        case PreferenceRow():
            return _joined(row.prompt)
        case RouteRow():
            return _joined(row.messages)


def whole_text(row: AnyRow) -> str:
    """Everything in the row that a model could learn by heart."""
    match row:
        case PreferenceRow():
            return _joined((*row.prompt, *row.chosen, *row.rejected))
        case SftRow() | RouteRow():
            return _joined(row.messages)


def shingles(text: str, size: int) -> frozenset[str]:
    """The runs of `size` words in a text, in lower case and without punctuation; a shorter text is one run."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _WORD.findall(folded)
    if not words:
        bare = folded.strip()
        return frozenset({bare} if bare else ())
    last = max(len(words) - size, 0)
    return frozenset(" ".join(words[start : start + size]) for start in range(last + 1))


def _joined(messages: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(part for message in messages for part in _parts(message))


def _parts(message: Mapping[str, Any]) -> Iterator[str]:
    if message["role"] in ("system", "developer"):
        return
    if message.get("content"):
        yield message["content"]
    for call in message.get("tool_calls") or ():
        yield f"{call['function']['name']} {call['function']['arguments']}"
