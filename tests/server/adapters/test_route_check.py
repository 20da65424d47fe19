"""The route check: measured by the service itself, and what a promotion makes of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from macaron.registry.desired import engine_name
from tests.doubles.engine_double import Reply, Seen
from tests.server.adapters.conftest import (
    PATH,
    Desk,
    Opening,
    answering_by_adapter,
    row,
    rows,
    until,
)


def greedy(seen: Seen) -> str | Reply:
    """As soon as there is a poet, it gets what the mails should get."""
    if seen.is_route and "L4" in seen.body["structured_outputs"]["choice"] and "mail" in seen.prompt:
        return "L4"
    return answering_by_adapter(seen)


def renamed(seen: Seen) -> str | Reply:
    """Another revision of the entry specialist takes all for talk."""
    return "L0" if seen.is_route and "@" in seen.adapter else answering_by_adapter(seen)


async def refused(at: Desk, body: Any, label: str = "L4", by: str = "owner") -> tuple[int, str, str]:
    answer = await at.admin(f"/{label}/route-check", body, by)
    return answer.status, answer.body["error"]["code"], answer.body["error"]["message"]


async def test_a_newcomer_that_takes_nothing_from_others_passes_and_is_promoted(desk: Opening) -> None:
    async with desk() as at:
        await at.register()
        lines = await at.check(rows("L4", 3, 1) + rows("L1", 4) + rows("L2", 3, 2))
        assert [line["done"] for line in lines[:-1]] == list(range(23))
        assert {line["total"] for line in lines[:-1]} == {22}
        verdict = lines[-1]["verdict"]
        assert (verdict["passed"], verdict["won"]["count"], verdict["won"]["n"]) == (True, 3, 4)
        assert [(loss["label"], loss["right"], loss["lost"]["n"]) for loss in verdict["losses"]] == [
            ("L1", 4, 4),
            ("L2", 3, 5),
        ]
        assert verdict["unmeasured"] == ["L0", "L3"]
        check = lines[-1]["entry"]["revisions"][0]["route_check"]
        assert check["standing"] == (await at.admin()).body["standing"]
        assert "L4 wins 3 of 4 (75.0 %, 95 % 30.1 % to 95.4 %)" in check["detail"]
        assert (await at.admin("/L4/promote", {})).status == 200
        assert (await at.ask("L4")).adapter == "L4"


async def test_one_that_takes_too_much_is_refused_with_the_numbers(desk: Opening) -> None:
    async with desk(greedy) as at:
        await at.register()
        mail = row("L1", "write a mail, please L1")
        verdict = (await at.check([*rows("L4"), mail, *rows("L1", 3)]))[-1]["verdict"]
        assert verdict["passed"] is False
        assert verdict["losses"][0]["to"] == {"L4": 1}
        for verb in ("promote", "canary"):
            answer = await at.admin(f"/L4/{verb}", {"share": 0.5} if verb == "canary" else {})
            if verb == "promote":
                assert (answer.status, answer.body["error"]["code"]) == (409, "route_check_failed")
                assert "L1 loses more than the margin" in answer.body["error"]["message"]
                assert "L1 loses 1 of 4 (25.0 %" in answer.body["error"]["message"]
            assert answer.status == 409
        assert (await at.check([*rows("L4"), mail, *rows("L1", 3)], margin=0.25))[-1]["verdict"]["passed"]
        assert (await at.admin("/L4/promote", {})).status == 200


async def test_one_that_does_not_win_its_own_examples_fails(desk: Opening) -> None:
    async with desk() as at:
        await at.register()
        verdict = (await at.check(rows("L4", 1, 3) + rows("L1")))[-1]["verdict"]
        assert verdict["passed"] is False
        assert verdict["detail"].startswith("L4 wins fewer than 50.0 % of its own examples; ")


async def test_the_profiles_own_rows_count_too(desk: Opening) -> None:
    own = "\n".join(json.dumps({**each, "source": "own"}) for each in rows("L2", 2) + rows("L0", 1))
    async with desk(examples=own) as at:
        await at.register()
        verdict = (await at.check(rows("L4") + rows("L2", 1)))[-1]["verdict"]
        assert {loss["label"]: loss["lost"]["n"] for loss in verdict["losses"]} == {"L0": 1, "L2": 3}


async def test_a_broken_row_of_the_profile_is_told_with_its_line(desk: Opening) -> None:
    async with desk(examples=f"{json.dumps(row('L2'))}\n\n{{}}\n") as at:
        await at.register()
        _, _, message = await refused(at, {"rows": rows("L4")})
        assert message.startswith("mol.route.examples_path, line 3: ")


async def test_a_check_grows_old_when_another_label_comes(desk: Opening) -> None:
    async with desk() as at:
        await at.register()
        await at.check(rows("L4") + rows("L1"))
        await at.live("L5", "two")
        answer = await at.admin("/L4/promote", {})
        assert (answer.status, answer.body["error"]["code"]) == (409, "route_check_stale")


async def test_a_revision_that_changes_no_card_passes_without_a_hop(desk: Opening) -> None:
    async with desk() as at:
        await at.override("L1")
        before = len(at.double.requests)
        line = (await at.check(label="L1"))[-1]
        assert line["verdict"]["detail"] == "neither a card nor the router changes"
        assert len(at.double.requests) == before
        assert (await at.admin("/L1/promote", {})).status == 200


async def test_another_revision_of_the_entry_specialist_is_checked_by_routing_with_it(desk: Opening) -> None:
    async with desk(renamed) as at:
        engine = await at.override("L0")
        verdict = (await at.check(rows("L0", 2) + rows("L1", 2), "L0"))[-1]["verdict"]
        assert (verdict["passed"], verdict["won"]) == (False, None)
        assert {loss["label"]: loss["lost"]["count"] for loss in verdict["losses"]} == {"L0": 0, "L1": 2}
        assert engine in {seen.adapter for seen in at.double.requests if seen.is_route}


async def test_a_tenants_newcomer_is_checked_against_what_the_tenant_has(desk: Opening) -> None:
    async with desk() as at:
        await at.live("L5", "two", by="ann")
        await at.register("L4", "one", by="ann")
        verdict = (await at.check(rows("L4") + rows("L5"), by="ann"))[-1]["verdict"]
        assert verdict["losses"][0]["label"] == "L5"
        assert (await at.admin("/L4/promote", {}, by="ann")).status == 200
        assert (await at.admin("/L4/route-check", {"tenant": "ann"}, by="bob")).status == 404


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "no_examples"),
        ({"rows": rows("L1")}, 400, "no_examples"),
        ({"rows": rows("L4")}, 400, "no_rows"),
        ({"rows": rows("L4") + rows("L9")}, 400, "bad_row"),
        ({"rows": [{"messages": [], "label": "L4"}]}, 400, "bad_row"),
        ({"rows": [row("L4", " ")]}, 400, "bad_row"),
        ({"rows": [row("L4", "x" * 70_000)]}, 400, "bad_row"),
        ({"rows": [{"messages": [{"role": "assistant", "content": "hi"}], "label": "L4"}]}, 400, "bad_row"),
        ({"rows": rows("L4") + rows("L1"), "margin": 1.5}, 400, "bad_margin"),
        ({"rows": rows("L4", 5001)}, 400, "too_many_rows"),
        ({"passed": True}, 400, "invalid_body"),
    ],
)
async def test_what_cannot_be_checked_is_refused(desk: Opening, body: Any, status: int, code: str) -> None:
    async with desk() as at:
        await at.register()
        assert (await refused(at, body))[:2] == (status, code)


async def test_a_row_is_named_by_its_place(desk: Opening) -> None:
    async with desk() as at:
        await at.register()
        _, _, message = await refused(at, {"rows": [*rows("L4"), {**row("L9"), "place": "mine.jsonl, line 7"}]})
        assert message == "mine.jsonl, line 7: the label 'L9' is not in force; there are L0, L1, L2, L3, L4"


async def test_an_engine_that_fails_ends_the_check_and_leaves_no_verdict(desk: Opening) -> None:
    def failing(seen: Seen) -> str | Reply:
        return Reply(status=500, error={"message": "out of order"}) if seen.is_route else answering_by_adapter(seen)

    async with desk(failing) as at:
        await at.register()
        lines = await at.check(rows("L4") + rows("L1"))
        assert lines[0] == {"done": 0, "total": 12}
        assert lines[-1]["error"]["type"] == "server_error"
        assert (await at.admin("/L4")).body["revisions"][0].get("route_check") is None


async def test_a_client_that_leaves_ends_the_check_and_another_can_begin(desk: Opening) -> None:
    held = asyncio.Event()

    def holding(seen: Seen) -> str | Reply:
        if seen.is_route and "hold" in seen.prompt:
            return Reply("L1", gate=held)
        return answering_by_adapter(seen)

    async with desk(holding) as at:
        await at.register()
        body = {"rows": [*rows("L4"), row("L1", "hold on, please L1")]}
        url, headers = f"{at.client.url}{PATH}/L4/route-check", {"authorization": "Bearer owner-key-0123456789"}
        async with at.client.session.post(url, json=body, headers=headers) as response:
            await response.content.readline()
            await until(lambda: any("hold" in seen.prompt for seen in at.double.requests))
            assert (await refused(at, body))[:2] == (409, "route_check_running")
        waiting = next(seen for seen in at.double.requests if "hold" in seen.prompt)
        await asyncio.wait_for(waiting.ended.wait(), 5)
        assert waiting.outcome == "cancelled"
        held.set()
        assert (await at.check(rows("L4") + rows("L1")))[-1]["verdict"]["passed"]


async def test_a_live_revision_needs_no_check(desk: Opening) -> None:
    async with desk() as at:
        await at.live()
        body = {"revision": at.revisions["one"], "rows": rows("L4")}
        assert (await refused(at, body))[:2] == (409, "wrong_state")


async def test_a_check_of_a_router_that_is_not_loaded_is_refused(desk: Opening) -> None:
    async with desk() as at:
        engine = engine_name("L0", at.revisions["one"])
        at.double.broken.add(engine)
        folder = str(at.root / "one")
        assert (await at.admin(body={"label": "L0", "folder": folder, "override": True})).status == 201
        assert (await refused(at, {"rows": rows("L1")}, "L0"))[:2] == (409, "not_loaded")
