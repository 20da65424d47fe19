"""Recorded turns for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from macaron.conversation import Answer, Hop, Usage
from macaron.experience import Bounds, Consent, ExperienceFile, Record, Recorder, Turn, Wanted, create

ACME = Consent("acme", "contract of today, section 4", "CC-BY-4.0")
OTHER = Consent("other", "said so")


def made(record_id: str, **fields: Any) -> Record:
    """A record; `text` is the answer's."""
    text = fields.pop("text", "a fine answer")
    given: dict[str, Any] = {
        "tenant": "acme",
        "user": "",
        "session": "s1",
        "parent": None,
        "turn": record_id,
        "question": f"q-{record_id}",
        "created": 1000.0,
        "label": "L2",
        "revision": "sha256:" + "a" * 64,
        "engine": "vllm",
        "adapter": "L2",
        "contract": "hcp1:c",
        "generation": 3,
        "reason": "routed",
        "status": "completed",
        "hops": (Hop("answer", "L2", "sha256:" + "a" * 64, 1.0, 0.5),),
        "given": 1,
        "system": (),
        "messages": ({"role": "system", "content": "You are L2."}, {"role": "user", "content": "a question"}),
        "options": {"temperature": 0.5},
        "asked": "a question",
        "answer": Answer(0, text, "stop"),
        "usage": Usage(9, 3),
        **fields,
    }
    return Record(id=record_id, **given)


def recorder_at(path: Path, bounds: Bounds | None = None, clock: Callable[[], float] = lambda: 1000.0) -> Recorder:
    """A recorder of `acme` and `other`."""
    create(path)
    return Recorder(path, (ACME, OTHER), bounds or Bounds(), clock)


def write(path: Path, records: Iterable[Record], **settings: Any) -> None:
    """Record some turns, to their end, from a test without an event loop."""

    async def run() -> None:
        recorder = recorder_at(path, **settings)
        for record in records:
            recorder.put(record)
        await recorder.close()

    asyncio.run(run())


def read(path: Path, wanted: Wanted | None = None) -> list[Turn]:
    """The turns in a file."""
    with ExperienceFile(path) as file:
        return list(file.turns(wanted))
