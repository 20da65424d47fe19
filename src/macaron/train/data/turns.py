"""Recorded turns as rows: each answer after the prompt that it was given, the answer alone to be learned."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from macaron.conversation import Reasoning
from macaron.engine.messages import messages_from_items
from macaron.experience import Consent, ExperienceFile, Record
from macaron.train.data.check import row_problem
from macaron.train.data.recipe import TurnsSection
from macaron.train.data.rows import SftRow

PREFIX = "turn:"
_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id")


@dataclass
class Taken:
    """What was met in a file of recorded turns.

    Attributes:
        consents: rows by the consent they were given on.
        left_out: answers that are no rows, by reason.
    """

    consents: Counter[Consent] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


def recorded_rows(section: TurnsSection, source: str, folder: Path, taken: Taken) -> Iterator[SftRow]:
    """The rows of the turns that a recipe wants, oldest first. A session is a group, so that no split divides it.

    Args:
        source: the name of the recipe's source.
        folder: where the file's relative path begins.

    Raises:
        ConfigError: the file is not there or cannot be read.
    """
    with ExperienceFile(folder / Path(section.file).expanduser()) as file:
        for turn in file.turns(section.wanted):
            row = row_of(turn.record, source)
            if isinstance(row, str):
                taken.left_out[row] += 1
                continue
            taken.consents[turn.consent] += 1
            yield row


def row_of(record: Record, source: str) -> SftRow | str:
    """The row of a recorded answer, or why it is none."""
    shown = [_plain(message) for message in record.messages[record.given :]]
    said = [item for item in record.answer.items() if not isinstance(item, Reasoning)]
    system = "\n\n".join(text for text in record.system if text)
    messages = (
        *([{"role": "system", "content": system}] if system else []),
        *shown,
        *(_plain(message) for message in messages_from_items(said)),
    )
    if any(not isinstance(message.get("content") or "", str) for message in messages):
        return "not only text"
    if not (record.answer.text or record.answer.calls):
        return "empty answer"
    row = SftRow(
        id=PREFIX + record.id,
        source=source,
        group=session_group(record),
        language="und",
        messages=messages,
        tools=tuple(record.options.get("tools") or ()),
        given=len(messages) - 1,
    )
    return "not a valid row" if row_problem(row) else row


def session_group(record: Record) -> str:
    """A name for a session that tells nobody's name."""
    return hashlib.sha256(f"{record.tenant}\0{record.session}".encode()).hexdigest()[:32]


def turn_ids(rows: Iterator[str]) -> tuple[str, ...]:
    """The response ids in the ids of rows."""
    return tuple(row.removeprefix(PREFIX) for row in rows if row.startswith(PREFIX))


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    return {key: message[key] for key in _KEYS if key in message}
