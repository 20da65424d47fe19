"""Stored sessions for the benchmarks, written through the service's own store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from macaron.conversation import Item, Message, Step, Text, ToolCall
from macaron.mol.identity import chain
from macaron.store import migrate, open_store
from macaron.store.base import Limits

# The tenant of a service that runs open on loopback.
SCOPE = "local"
BATCH, AT_ONCE = 32, 8


def session_step(name: str, size: int, open_call: bool = False) -> Step:
    """A session of one step with about `size` bytes of text; with `open_call` it waits for a tool's result."""
    inputs: tuple[Item, ...] = (Message("user", (Text(f"Session {name}. {'q' * (size // 2)}"),)),)
    answer: Item = Message("assistant", (Text("a" * (size // 2)),))
    outputs: tuple[Item, ...] = (ToolCall(f"call_{name}", "look_up", '{"what":"shells"}'),) if open_call else (answer,)
    digests = chain((*inputs, *outputs))
    return Step(
        id=f"chatcmpl-{name}",
        session=f"sess_{name}",
        parent=None,
        turn=f"chatcmpl-{name}",
        scope=SCOPE,
        depth=2,
        digest=digests[-1],
        asked=digests[0],
        head="",
        label="L2",
        revision="unverified:L2",
        status="completed",
        finish="tool_calls" if open_call else "stop",
        generation=1,
        contract="hcp1:bench",
        created=time.time(),
        inputs=inputs,
        outputs=outputs,
        input_count=1,
        output_count=1,
    )


def fill_store(path: Path, sessions: int, open_calls: int) -> float:
    """Make a store with that many sessions and open tool loops; return the seconds it took."""
    began = time.monotonic()
    migrate(path)
    asyncio.run(_fill(path, sessions, open_calls))
    return time.monotonic() - began


async def _fill(path: Path, sessions: int, open_calls: int) -> None:
    store = open_store(f"sqlite://{path}", limits=Limits(max_sessions=2 * (sessions + open_calls)), durability="normal")
    batches = _batches(sessions, open_calls)

    async def lane() -> None:
        for batch in batches:
            await store.put_steps(batch)

    await asyncio.gather(*(lane() for _ in range(AT_ONCE)))
    await store.close()


def _batches(sessions: int, open_calls: int) -> Iterator[list[Step]]:
    total = sessions + open_calls
    for start in range(0, total, BATCH):
        yield [session_step(f"fill{n:09d}", 200, n < open_calls) for n in range(start, min(start + BATCH, total))]
