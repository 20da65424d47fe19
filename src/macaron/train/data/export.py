"""Recorded turns for other programs: plain data, without personal data."""

from __future__ import annotations

from typing import Any

import msgspec

from macaron.experience import Turn
from macaron.train.data.scrub import scrub_value

SPELLING = ("prompt_ids", "ids", "logprobs")
"""What spells the text out once more, token by token."""


def exported(turn: Turn) -> dict[str, Any]:
    """A turn as plain data. Where personal data was replaced in its texts, its tokens are left out, since they spell
    what was replaced, and `redacted` counts what was.

    Raises:
        ValueError: it holds something that no JSON document can hold.
    """
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(turn))
    record = plain["record"]
    tokens = {name: record.pop(name, []) for name in SPELLING}
    scrubbed, counts = scrub_value({"record": record, "reaction": plain["reaction"]})
    if not counts:
        return {**plain, "record": {**record, **tokens}, "redacted": {}}
    # Names that the service gave are no texts: an id may have the look of a number of a card.
    named = {name: record[name] for name in _NAMES if name in record}
    return {**plain, **scrubbed, "record": {**scrubbed["record"], **named}, "redacted": dict(counts)}


_NAMES = (
    "id", "tenant", "session", "parent", "turn", "question", "created", "label", "revision", "engine", "adapter",
    "contract", "generation", "reason", "status", "hops", "given", "usage",
)  # fmt: skip
