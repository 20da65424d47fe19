"""What engines do wrong with adapters, and what becomes of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from macaron.registry.desired import engine_name
from macaron.registry.vault.layout import MIN_FREE
from tests.registry.vault.handling import packed
from tests.server.adapters.conftest import CARD, KEYS, PATH, WAIVED, Desk, Opening, until


async def submitted(at: Desk) -> str:
    """Register without waiting for the engine; returns the name in the engine."""
    answer = await at.admin(body={"label": "L4", "folder": str(at.root / "one"), **CARD})
    assert answer.status == 201, answer.body
    return engine_name("L4", at.revisions["one"])


async def promotion(at: Desk) -> tuple[int, str]:
    answer = await at.admin("/L4/promote", {**WAIVED})
    return answer.status, answer.body["error"]["code"]


async def test_a_load_that_is_answered_with_200_and_did_nothing_is_a_failure(desk: Opening) -> None:
    async with desk() as at:
        at.double.deaf.add(engine_name("L4", at.revisions["one"]))
        said = await at.standing("L4", await submitted(at), "failed")
        assert "does not list it" in said["reason"]
        assert said["retry"] > 0
        assert await promotion(at) == (409, "not_probed")


async def test_a_refused_load_is_tried_again_until_it_succeeds(desk: Opening) -> None:
    async with desk() as at:
        engine = engine_name("L4", at.revisions["one"])
        at.double.broken.add(engine)
        said = await at.standing("L4", await submitted(at), "failed")
        assert "cannot be loaded" in said["reason"]
        at.double.broken.clear()
        said = await at.standing("L4", engine, "ready")
        assert said["failures"] == 0


async def test_an_adapter_that_moves_nothing_cannot_be_promoted(desk: Opening) -> None:
    async with desk() as at:
        at.double.dull.add(engine_name("L4", at.revisions["one"]))
        said = await at.standing("L4", await submitted(at), "failed")
        assert "answers as without it" in said["reason"]
        assert await promotion(at) == (409, "not_probed")
        asked = len(at.double.requests)
        await at.standing("L4", engine_name("L4", at.revisions["one"]), "failed")
        assert len(at.double.requests) == asked


async def test_an_engine_that_was_restarted_gets_its_adapters_back_and_proves_them_again(desk: Opening) -> None:
    async with desk() as at:
        engine = await at.live()
        at.double.adapters = ("L0", "L1", "L2", "L3")
        probes = sum(seen.adapter == engine for seen in at.double.requests)
        await until(lambda: engine in at.double.adapters)
        await at.standing("L4", engine, "ready")
        assert sum(seen.adapter == engine for seen in at.double.requests) > probes
        assert (await at.ask("L4")).text == f"from {engine}"


async def test_a_label_is_withdrawn_while_the_engine_lacks_its_adapter(desk: Opening) -> None:
    async with desk() as at:
        engine = await at.live()
        at.double.broken.add(engine)
        at.double.adapters = ("L0", "L1", "L2", "L3")
        await until(lambda: "L4" not in at.running.service.registry.labels)
        assert (await at.ask("L4")).adapter == "L0"
        at.double.broken.clear()
        await until(lambda: "L4" in at.running.service.registry.labels)


async def test_an_engine_that_is_away_does_not_end_the_following(desk: Opening) -> None:
    async with desk() as at:
        at.double.healthy = False
        await at.live()
        assert (await at.ask("L4")).adapter == "L4"


async def test_a_service_that_starts_again_finds_its_adapters(desk: Opening, tmp_path: Path) -> None:
    store = f"sqlite://{tmp_path / 'store.db'}"
    async with desk(store=store) as at:
        engine = await at.live()
    async with desk(store=store) as again:
        assert (await again.ask("L4")).text == f"from {engine}"


async def test_an_upload_to_a_full_disk_changes_nothing_that_is_live(
    desk: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk() as at:
        engine = await at.live()
        free = shutil.disk_usage("/")
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: free._replace(free=MIN_FREE + 100))
        headers = {"authorization": f"Bearer {KEYS['owner']}"}
        data = packed(at.root / "two")
        async with at.client.session.put(f"{at.client.url}{PATH}/upload", data=data, headers=headers) as said:
            assert (said.status, (await said.json())["error"]["code"]) == (507, "disk_full")
        copied = await at.admin(body={"label": "L5", "folder": str(at.root / "two"), **CARD})
        assert (copied.status, copied.body["error"]["code"]) == (507, "disk_full")
        assert (await at.ask("L4")).text == f"from {engine}"
        monkeypatch.undo()
        assert await at.register("L5", "two")
