"""A process that writes to a store, for tests: `python -m tests.store.worker URL PREFIX COUNT`.

Puts COUNT steps of one chain, tells each one it has been acknowledged, and the note it got for the step `shared`.
"""

from __future__ import annotations

import asyncio
import sys

from macaron.store import open_store
from macaron.store.base import Limits
from tests.store.steps import make


async def write(url: str, prefix: str, count: int) -> None:
    store = open_store(url, limits=Limits(), durability="normal")
    step = None
    for number in range(count):
        step = make(f"{prefix}{number}", step)
        await store.put_steps([step])
        sys.stdout.write(f"{step.id}\n")
        sys.stdout.flush()
    note = await store.freeze_note("t", "shared", prefix)
    sys.stdout.write(f"note {note}\n")
    await store.close()


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], sys.argv[2], int(sys.argv[3])))
