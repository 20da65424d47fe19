"""The supervisor's part in changing the embedded engine's adapters."""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from macaron.engine.llamacpp.launch import EngineChild
from macaron.errors import Unavailable

LOAD_SECONDS = 120.0


class Change(Struct, frozen=True):
    """What a worker asks for: names that stay in this order, files by name that come after them, slots in all."""

    keep: list[str]
    add: dict[str, str]
    slots: int


async def change_adapters(child: EngineChild, change: Change) -> str:
    """Restart the engine with other adapters; where it does not start with them, as it was before.

    Returns:
        Why it did not start with them; empty where it did.
    """
    before, slots = dict(child.registered), child.slots
    if unknown := [name for name in change.keep if name not in before]:
        return f"the engine has no {', '.join(unknown)}"
    after = {**{name: before[name] for name in change.keep}, **change.add}
    await child.relaunch(after, change.slots)
    try:
        await child.wait_ready(LOAD_SECONDS)
    except Unavailable as error:
        await child.relaunch(before, slots)
        # What ran before runs again, or its supervision goes on trying.
        with suppress(Unavailable):
            await child.wait_ready(LOAD_SECONDS)
        return error.message
    return ""
