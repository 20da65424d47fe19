"""An engine with room for fewer adapters than are registered."""

from __future__ import annotations

import asyncio

import pytest

from macaron.registry.desired import engine_name
from tests.doubles.engine_double import Reply, Seen
from tests.server.adapters.conftest import CARD, Desk, Opening, answering_by_adapter, until

FOR_TWO = "adapter_limit = 6"
"""Beside the four that the engine was started with."""


async def three(at: Desk) -> dict[str, str]:
    """Three live labels; gives their names in the engine."""
    return {label: await at.live(label, name) for label, name in (("L4", "one"), ("L5", "two"), ("L6", "three"))}


async def test_the_least_recently_used_leaves_and_comes_back_when_a_turn_needs_it(desk: Opening) -> None:
    async with desk(more=FOR_TWO) as at:
        names = await three(at)
        await until(lambda: names["L4"] not in at.double.adapters)
        for label in ("L4", "L5", "L6", "L4"):
            answer = await at.ask(label, headers={"x-session-id": label})
            assert (answer.status, answer.adapter, answer.text) == (200, label, f"from {names[label]}")
            assert len(at.double.adapters) <= 6


async def test_turns_that_need_the_same_absent_adapter_wait_for_one_load(desk: Opening) -> None:
    async with desk(more=FOR_TWO) as at:
        names = await three(at)
        await until(lambda: names["L4"] not in at.double.adapters)
        loads = len(at.double.loads)
        answers = await asyncio.gather(*(at.ask("L4", headers={"x-session-id": str(turn)}) for turn in range(16)))
        assert {answer.text for answer in answers} == {f"from {names['L4']}"}
        assert [name for name, _ in at.double.loads[loads:]] == [names["L4"]]


async def test_what_a_turn_uses_does_not_leave(desk: Opening) -> None:
    gate = asyncio.Event()

    def script(seen: Seen) -> Reply | str:
        said = answering_by_adapter(seen)
        return Reply(str(said), gate=gate, gate_after=1) if "slowly" in seen.prompt and not seen.is_route else said

    async with desk(script, more=FOR_TWO) as at:
        names = await three(at)
        await at.ask("L4")
        headers = {"authorization": "Bearer owner-key-0123456789"}
        slow = [{"role": "user", "content": "slowly please L4"}]
        running = asyncio.create_task(at.client.chat(slow, headers=headers, stream=False))
        await until(lambda: names["L4"] in at.running.service.residency.in_use())
        assert (await at.ask("L5")).status == 200
        assert (await at.ask("L6")).status == 200
        assert names["L4"] in at.double.adapters
        gate.set()
        assert (await running).text == f"from {names['L4']}"


async def test_an_absent_adapter_that_cannot_come_back_withdraws_its_label(desk: Opening) -> None:
    async with desk(more=FOR_TWO) as at:
        names = await three(at)
        await until(lambda: names["L4"] not in at.double.adapters)
        at.double.broken.add(names["L4"])
        async with asyncio.timeout(10):
            assert (await at.ask("L4")).status >= 500
        assert (await at.ask("L4")).adapter == "L0"


async def test_a_new_adapter_is_loaded_and_proved_though_the_room_is_full(desk: Opening) -> None:
    async with desk(more=FOR_TWO) as at:
        await at.live("L4", "one")
        await at.live("L5", "two")
        for label in ("L4", "L5"):
            await at.ask(label)
        answer = await at.admin(body={"label": "L6", "folder": str(at.root / "three"), **CARD})
        assert answer.status == 201
        await at.standing("L6", engine_name("L6", at.revisions["three"]), "ready")


@pytest.mark.parametrize("label", ["L4", "L5", "L6"])
async def test_all_labels_stay_in_the_routers_list(desk: Opening, label: str) -> None:
    async with desk(more=FOR_TWO) as at:
        await three(at)
        assert (await at.ask(label)).adapter == label
