"""Who may do what with adapters, and what is refused."""

from __future__ import annotations

import asyncio
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from macaron.registry.desired import engine_name
from tests.server.adapters.conftest import CARD, KEYS, PATH, WAIVED, Desk, Opening, rows


def error(answer: Any) -> tuple[int, str, str]:
    body = answer.body["error"]
    return answer.status, body["code"], body["param"]


async def test_a_key_without_the_scope_is_refused(desk: Opening) -> None:
    async with desk() as at:
        for path, body in (("", None), ("", {}), ("/L4/promote", {}), ("/L4", None)):
            answer = await at.admin(path, body, by="guest")
            assert (answer.status, answer.body["error"]["code"]) == (403, "missing_scope")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"folder": "/etc"}, "outside_roots"),
        ({"folder": "one"}, "escape"),
        ({"folder": ""}, "one_source"),
        ({"label": "l4"}, "bad_registration"),
        ({"label": "../L4"}, "bad_registration"),
        ({"name": ""}, "bad_registration"),
        ({"override": True}, "nothing_to_override"),
        ({"colour": "red"}, "invalid_body"),
        ({"revision": "sha256:" + "0" * 64, "folder": ""}, "unknown_adapter"),
    ],
)
async def test_what_cannot_be_registered_is_refused_and_leaves_nothing(
    desk: Opening, fields: dict[str, Any], code: str
) -> None:
    async with desk() as at:
        answer = await at.admin(body={"label": "L4", "folder": str(at.root / "one"), **CARD, **fields})
        assert answer.status in (400, 404), answer.body
        assert answer.body["error"]["code"] == code
        assert (await at.admin()).body["data"] == []
        assert await asyncio.to_thread(at.running.adapters.vault.list) == ()


async def test_every_error_of_the_check_is_told_at_once(desk: Opening) -> None:
    async with desk() as at:
        folder = at.root / "one"
        await asyncio.to_thread((folder / "adapter_config.json").write_text, '{"peft_type": "IA3", "r": 0}')
        answer = await at.admin(body={"label": "L4", "folder": str(folder), **CARD})
        assert error(answer)[:2] == (400, "check_failed")
        assert answer.body["error"]["message"].count("[") > 1


async def test_a_taken_label_is_a_conflict(desk: Opening) -> None:
    async with desk() as at:
        answer = await at.admin(body={"label": "L1", "folder": str(at.root / "one"), **CARD})
        assert error(answer) == (409, "label_taken", "label")


async def test_of_two_registrations_of_one_label_at_once_both_are_revisions_of_it(desk: Opening) -> None:
    async with desk() as at:
        answers = await asyncio.gather(
            *(at.admin(body={"label": "L4", "folder": str(at.root / name), **CARD}) for name in ("one", "two"))
        )
        assert [answer.status for answer in answers] == [201, 201]
        assert len((await at.admin("/L4")).body["revisions"]) == 2


async def test_of_two_registrations_of_one_revision_at_once_one_is_a_conflict(desk: Opening) -> None:
    async with desk() as at:
        body = {"label": "L4", "folder": str(at.root / "one"), **CARD}
        answers = await asyncio.gather(at.admin(body=body), at.admin(body=body))
        assert sorted(answer.status for answer in answers) == [201, 409]
        assert len(await asyncio.to_thread(at.running.adapters.vault.list)) == 1


async def test_a_promotion_needs_a_route_check_or_a_reason_against_it(desk: Opening) -> None:
    async with desk() as at:
        await at.register()
        assert error(await at.admin("/L4/promote", {}))[:2] == (409, "route_check_missing")
        assert (await at.check(rows("L4") + rows("L1")))[-1]["verdict"]["passed"]
        assert (await at.admin("/L4/promote", {})).status == 200


async def test_without_a_promotion_there_is_nothing_to_roll_back(desk: Opening) -> None:
    async with desk() as at:
        await at.register()
        assert error(await at.admin("/L4/rollback", {})) == (409, "nothing_previous", "previous")


async def test_a_tenants_adapter_is_routed_to_by_its_requests_only(desk: Opening) -> None:
    async with desk() as at:
        engine = await at.live(by="ann")
        assert (await at.ask("L4", by="ann")).text == f"from {engine}"
        assert (await at.ask("L4", by="bob")).adapter == "L0"
        route = [seen for seen in at.double.requests if seen.is_route][-1]
        assert "L4" not in route.body["structured_outputs"]["choice"]
        pinned = await at.client.chat(
            [{"role": "user", "content": "hi"}],
            headers={"authorization": f"Bearer {KEYS['bob']}", "x-macaron-adapter": "L4"},
        )
        assert (pinned.status, pinned.body["error"]["code"]) == (400, "unknown_adapter")


async def test_a_tenants_adapter_is_seen_and_changed_by_its_admin_and_the_operator_only(desk: Opening) -> None:
    async with desk() as at:
        await at.live(by="ann")
        assert (await at.admin(by="bob")).body["data"] == []
        for path in ("/L4", "/L4?tenant=ann"):
            assert (await at.admin(path, by="bob")).status == 404
        assert (await at.admin("/L4/rollback", {"tenant": "ann"}, by="bob")).status == 404
        assert [entry["tenant"] for entry in (await at.admin()).body["data"]] == ["ann"]
        assert (await at.admin("/L4/rollback", {"tenant": "ann"})).status == 200


async def test_everybodys_adapter_is_the_operators_to_change(desk: Opening) -> None:
    async with desk() as at:
        engine = await at.live()
        assert (await at.ask("L4", by="bob")).text == f"from {engine}"
        answer = await at.admin("/L4/rollback", {"tenant": ""}, by="bob")
        assert answer.status == 403


async def test_two_tenants_have_the_same_label_for_different_adapters(desk: Opening) -> None:
    async with desk() as at:
        ann = await at.live(by="ann")
        bob = await at.live(name="two", by="bob")
        answers = await asyncio.gather(*(at.ask("L4", by=by) for by in ("ann", "bob") * 8))
        assert [answer.text for answer in answers] == [f"from {ann}", f"from {bob}"] * 8


async def upload(at: Desk, archive: bytes, by: str = "ann") -> Any:
    url, headers = at.client.url + PATH + "/upload", {"authorization": f"Bearer {KEYS[by]}"}
    async with at.client.session.put(url, data=archive, headers=headers) as response:
        return response.status, await response.json()


def packed(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, path.name)
    return buffer.getvalue()


async def test_an_upload_is_registered_by_its_revision(desk: Opening) -> None:
    async with desk() as at:
        status, said = await upload(at, await asyncio.to_thread(packed, at.root / "one"))
        assert (status, said["revision"]) == (201, at.revisions["one"])
        answer = await at.admin(body={"label": "L4", "revision": said["revision"], **CARD}, by="ann")
        assert answer.status == 201, answer.body
        await at.standing("L4", engine_name("L4", said["revision"]), "ready", by="ann")


async def test_an_upload_is_its_tenants_alone(desk: Opening) -> None:
    async with desk() as at:
        _, said = await upload(at, await asyncio.to_thread(packed, at.root / "one"))
        answer = await at.admin(body={"label": "L4", "revision": said["revision"], **CARD}, by="bob")
        assert answer.status == 404


async def test_an_upload_that_is_no_archive_is_refused(desk: Opening) -> None:
    async with desk() as at:
        status, said = await upload(at, b"no archive at all" * 100)
        assert (status, said["error"]["code"]) == (400, "bad_archive")
        assert await asyncio.to_thread(at.running.adapters.vault.list) == ()


async def test_the_engines_path_of_an_adapter_follows_the_contract(desk: Opening) -> None:
    async with desk(more='adapter_root = "/mnt/adapters"') as at:
        await at.register()
        digits = at.revisions["one"].removeprefix("sha256:")
        assert [path for _, path in at.double.loads] == [f"/mnt/adapters/{digits}"]


async def test_the_list_says_what_the_engine_is_and_what_is_in_force(desk: Opening) -> None:
    async with desk() as at:
        await at.live()
        said = (await at.admin()).body
        assert said["engine"] == {"replica": at.double.origin, "fault": "", "pause_seconds": None}
        assert said["generation"] == at.running.service.generation
        assert [entry["label"] for entry in said["data"]] == ["L4"]


async def test_a_revision_may_be_named_by_its_beginning(desk: Opening) -> None:
    async with desk() as at:
        await at.register()
        body = {"revision": at.revisions["one"][:19], **WAIVED}
        assert (await at.admin("/L4/promote", body)).status == 200
