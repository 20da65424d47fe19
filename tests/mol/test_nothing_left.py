"""After many turns, faults and departures at once nothing is left running and nothing is counted twice."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import pytest

from tests.doubles.engine_double import Call, EngineDouble, Reply, Seen
from tests.harness import Running, serve, write_profile
from tests.mol.talk import LONG, TOOLS, Message, eventually, is_summary, result, said, user

CLIENTS, REQUESTS = 12, 10


def script(chance: random.Random, seen: Seen) -> Reply:
    if seen.is_route:
        return Reply(chance.choice(["L0", "L1", "L2", "L3", "?"]), delay=chance.random() * 0.01)
    if is_summary(seen):
        return Reply("the summary", delay=chance.random() * 0.02)
    kind = chance.random()
    if kind < 0.15:
        return Reply("one two", fault=chance.choice(["die", "error", "corrupt"]), fault_after=chance.randrange(4))
    if kind < 0.3:
        return Reply(calls=(Call("weather"),))
    return Reply(LONG if kind < 0.6 else "one two three")


async def talk(running: Running, number: int) -> None:
    """A client that now and then leaves, early or in the middle of a stream."""
    chance = random.Random(number)
    history: list[Message] = []
    for turn in range(REQUESTS):
        calls = history[-1].get("tool_calls") if history else None
        asked = result(calls[0]["id"], "rain") if calls else user(f"client {number} asks {turn}")
        if chance.random() < 0.3:
            async with running.client.stream([*history, asked], tools=TOOLS) as response:
                await response.content.readany()
        else:
            patience = 0.02 if chance.random() < 0.2 else 20.0
            with suppress(TimeoutError):
                reply = await asyncio.wait_for(running.client.chat([*history, asked], tools=TOOLS), patience)
                if reply.status == 200:
                    history += [asked, said(reply)]


@pytest.mark.parametrize("mol", ["", "speculate = true\nspeculate_below = 8"])
async def test_nothing_is_left_after_faults_and_departures(tmp_path: Path, database: str, mol: str) -> None:
    chance = random.Random(7)
    async with EngineDouble(lambda seen: script(chance, seen)) as double:
        async with serve(write_profile(tmp_path, double.origin, mol=mol), database) as running:
            await asyncio.gather(*(talk(running, number) for number in range(CLIENTS)))
            await eventually(lambda: running.service.admission.active == 0)
            await running.service.background.drain(5.0)
            turns = running.service.turns
            assert turns._activity.running == 0
            assert (turns._summaries._bytes, len(turns._summaries._running)) == (0, 0)
            names = {task.get_name() for task in asyncio.all_tasks()}
            assert not {name for name in names if name.startswith(("speculative", "summary", "commit"))}
            await eventually(lambda: all(seen.ended.is_set() for seen in double.requests))
            assert (await running.service.store.totals("local")).steps > CLIENTS
