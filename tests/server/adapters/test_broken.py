"""Adapters that passed their probe and break on what they are asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.doubles.engine_double import EngineDouble, Reply, Seen
from tests.server.adapters.conftest import WAIVED, Desk, Opening, answering_by_adapter, until

GARBAGE = "6" * 40


def breaking(seen: Seen) -> str | Reply:
    """What llama.cpp says where the numbers are none."""
    return GARBAGE if seen.overflows else answering_by_adapter(seen)


async def ask(at: Desk, text: str = "overflow", label: str = "L4") -> Any:
    headers = {"authorization": "Bearer owner-key-0123456789", "x-macaron-trace": "1", "x-macaron-adapter": label}
    return await at.client.chat([{"role": "user", "content": text}], headers=headers)


async def revisions(at: Desk, label: str = "L4") -> list[Any]:
    found: list[Any] = (await at.admin(f"/{label}")).body["revisions"]
    return found


def serves(at: Desk, label: str) -> str | None:
    """The adapter of a label in force."""
    found = at.running.service.registry.get(label)
    return found.engine_name if found else None


async def test_the_label_fails_over_to_the_revision_before(desk: Opening) -> None:
    async with desk(breaking) as at:
        first = await at.live()
        second = await at.live(name="two")
        at.double.overflowing.add(second)
        assert (await ask(at)).text == GARBAGE
        await until(lambda: serves(at, "L4") == first)
        assert (await ask(at)).text == f"from {first}"
        one, two = await revisions(at)
        assert (one["state"], two["state"]) in (("live", "draining"), ("live", "retired"))
        assert two["withdrawn"] == "the engine's probabilities are not numbers with this adapter"
        await until(lambda: second not in at.double.adapters)


async def test_a_label_without_a_revision_before_is_not_routed_to_any_more(desk: Opening) -> None:
    async with desk(breaking) as at:
        at.double.overflowing.add(await at.live())
        await ask(at)
        await until(lambda: "L4" not in at.running.service.registry.labels)
        assert (await ask(at)).body["error"]["code"] == "unknown_adapter"
        assert (await at.ask("L4")).adapter == "L0"


async def test_a_label_of_the_profile_falls_back_to_the_profiles_own(desk: Opening) -> None:
    async with desk(breaking) as at:
        at.double.overflowing.add(await at.live("L2", override=True))
        await ask(at, label="L2")
        await until(lambda: serves(at, "L2") == "L2")
        assert (await ask(at, label="L2")).text == "from L2"


async def test_an_entry_that_gives_no_labels_leaves(desk: Opening) -> None:
    def script(seen: Seen) -> str | Reply:
        return Reply(status=500) if seen.is_route and seen.overflows else breaking(seen)

    async with desk(script) as at:
        at.double.overflowing.add(await at.live("L0", override=True))
        assert (await at.ask("overflow")).adapter == "L2"
        await until(lambda: serves(at, "L0") == "L0")


async def test_a_revision_in_shadow_leaves_without_anybody_seeing_it(desk: Opening) -> None:
    async with desk(breaking) as at:
        first, second = await at.live(), await at.register(name="two")
        at.double.overflowing.add(second)
        await at.admin("/L4/shadow", {"share": 1.0, **WAIVED})
        assert (await ask(at)).text == f"from {first}"
        await until(lambda: at.running.service.desired.entries[0].trial is None)
        assert (await revisions(at))[1]["withdrawn"]


async def test_it_cannot_be_promoted_again_and_can_be_registered_again(desk: Opening) -> None:
    async with desk(breaking) as at:
        engine = await at.live()
        at.double.overflowing.add(engine)
        await ask(at)
        await until(lambda: "L4" not in at.running.service.registry.labels)
        again = await at.admin("/L4/promote", {"revision": at.revisions["one"], **WAIVED})
        assert again.status == 409
        async with asyncio.timeout(10):
            while (await revisions(at))[0]["state"] != "retired":  # noqa: ASYNC110, the service retires it
                await asyncio.sleep(0.01)
        assert await at.live() == engine


@pytest.mark.parametrize("answer", ["", GARBAGE, "ha " * 20])
async def test_an_answer_that_only_looks_broken_changes_nothing(desk: Opening, answer: str) -> None:
    def script(seen: Seen) -> str | Reply:
        return answer if "laugh" in seen.prompt else answering_by_adapter(seen)

    async with desk(script) as at:
        engine = await at.live()
        before = len(at.double.requests)
        assert (await ask(at, "laugh")).status == 200
        await until(lambda: _looks(at.double, before) >= (1 if answer == "" else 2))
        await at.running.service.background.drain(5)
        assert (await ask(at, "and now")).text == f"from {engine}"
        assert not (await revisions(at))[0].get("withdrawn")


def _looks(double: EngineDouble, since: int) -> int:
    return sum(bool(seen.body.get("logprobs")) for seen in double.requests[since:])


async def test_an_engine_that_has_no_numbers_at_all_is_not_the_adapters_fault(desk: Opening) -> None:
    async with desk(breaking) as at:
        engine = await at.live()
        at.double.overflowing |= {engine, "base"}
        before = len(at.double.requests)
        assert (await ask(at)).text == GARBAGE
        await until(lambda: _looks(at.double, before) >= 1)
        await at.running.service.background.drain(5)
        assert "L4" in at.running.service.registry.labels


async def test_doubtful_answers_under_load_are_looked_at_one_after_another(desk: Opening) -> None:
    def script(seen: Seen) -> str | Reply:
        return GARBAGE if "laugh" in seen.prompt else answering_by_adapter(seen)

    async with desk(script) as at:
        at.running.service.doubts.pause = 0.5
        engine = await at.live()
        before = len(at.double.requests)
        for _ in range(5):
            await ask(at, "laugh")
        # Of each the base's numbers and the adapter's own.
        assert _looks(at.double, before) <= 2
        at.double.overflowing.add(engine)
        await ask(at, "laugh, and overflow")
        await until(lambda: "L4" not in at.running.service.registry.labels)
        assert _looks(at.double, before) == 5 * 2 + 3
