"""Revisions on trial: in shadow, and as canary for some sessions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from macaron.registry.desired import engine_name
from tests.doubles.engine_double import Reply, Seen
from tests.server.adapters.conftest import WAIVED, Desk, Opening, answering_by_adapter


async def trial_of(at: Desk, name: str, wanted: int) -> Any:
    """What was counted of a revision, once it or its other side has so many turns."""
    async with asyncio.timeout(10):
        while True:
            entry = (await at.admin("/L4")).body
            item = next(item for item in entry["revisions"] if item["revision"] == at.revisions[name])
            if item["trial"] and max(item["trial"]["trial"]["turns"], item["trial"]["live"]["turns"]) >= wanted:
                return item["trial"]
            await asyncio.sleep(0.02)


async def started(at: Desk, kind: str, share: float) -> str:
    """A first revision live and a second one on trial; returns that one's name in the engine."""
    await at.live()
    second = await at.register(name="two")
    body = {"revision": at.revisions["two"], "share": share, **WAIVED}
    answer = await at.admin(f"/L4/{kind}", body)
    assert answer.status == 200, answer.body
    return second


async def test_a_shadow_answers_beside_the_live_one_and_is_never_shown(desk: Opening) -> None:
    async with desk() as at:
        second = await started(at, "shadow", 1.0)
        first = engine_name("L4", at.revisions["one"])
        for number in range(4):
            answer = await at.ask("L4", headers={"x-session-id": f"s{number}"})
            assert answer.text == f"from {first}"
        said = await trial_of(at, "two", 4)
        assert (said["pairs"], said["trial"]["turns"], said["live"]["turns"]) == (4, 4, 4)
        assert 0 < said["alike"] < 4
        shadowed = [seen for seen in at.double.requests if seen.adapter == second and "You are a poet" in seen.prompt]
        assert len(shadowed) == 4
        trace = await at.client.get("/v1/macaron/sessions/s0", {"authorization": "Bearer owner-key-0123456789"})
        [step] = trace.body["steps"]
        assert step["revision"] == at.revisions["one"]


async def test_a_shadow_that_fails_is_counted_and_nobody_else_notices(desk: Opening) -> None:
    failing: set[str] = set()

    def script(seen: Seen) -> Reply | str:
        poem = not seen.is_route and "You are a poet" in seen.prompt
        return Reply(status=500) if poem and seen.adapter in failing else answering_by_adapter(seen)

    async with desk(script) as at:
        failing.add(await started(at, "shadow", 1.0))
        assert (await at.ask("L4")).status == 200
        said = await trial_of(at, "two", 1)
        assert (said["trial"]["failed"], said["pairs"], said["live"]["failed"]) == (1, 0, 0)


async def test_a_canary_answers_its_share_of_sessions_each_the_same_all_along(desk: Opening) -> None:
    async with desk() as at:
        second = await started(at, "canary", 0.5)
        first = engine_name("L4", at.revisions["one"])

        async def twice(number: int) -> set[str]:
            named = {"x-session-id": f"session {number}"}
            return {(await at.ask("L4", headers=named, seed=seed)).text for seed in (1, 2)}

        said = await asyncio.gather(*(twice(number) for number in range(40)))
        assert all(len(texts) == 1 for texts in said)
        of_second = sum(texts == {f"from {second}"} for texts in said)
        assert 8 < of_second < 32
        assert sum(texts == {f"from {first}"} for texts in said) == 40 - of_second
        counted = await trial_of(at, "two", 2 * of_second)
        assert counted["trial"]["turns"] + counted["live"]["turns"] == 80


async def test_promotion_ends_a_trial(desk: Opening) -> None:
    async with desk() as at:
        second = await started(at, "canary", 0.01)
        answer = await at.admin("/L4/promote", {"revision": at.revisions["two"]})
        assert answer.status == 200, answer.body
        assert (await at.ask("L4")).text == f"from {second}"
        item = next(item for item in answer.body["revisions"] if item["revision"] == at.revisions["two"])
        assert (item["state"], item["trial"]) == ("live", None)


@pytest.mark.parametrize(("kind", "share"), [("shadow", 0.0), ("canary", 1.5), ("shadow", -1)])
async def test_a_share_out_of_range_is_refused(desk: Opening, kind: str, share: float) -> None:
    async with desk() as at:
        await at.live()
        await at.register(name="two")
        answer = await at.admin(f"/L4/{kind}", {"revision": at.revisions["two"], "share": share, **WAIVED})
        assert (answer.status, answer.body["error"]["code"]) == (400, "bad_share")


async def test_a_canary_needs_what_a_promotion_needs(desk: Opening) -> None:
    async with desk() as at:
        await at.live()
        await at.register(name="two")
        answer = await at.admin("/L4/canary", {"revision": at.revisions["two"], "share": 0.5})
        assert (answer.status, answer.body["error"]["code"]) == (409, "route_check_missing")


async def test_there_is_no_trial_without_a_live_revision(desk: Opening) -> None:
    async with desk() as at:
        await at.register()
        answer = await at.admin("/L4/shadow", {"share": 0.5})
        assert (answer.status, answer.body["error"]["code"]) == (409, "nothing_live")
