"""State keys of running services: made at the first start, kept, shared."""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.processes import OPEN, Home, Service, serving
from tests.service.test_refusals import refusal

Profile = Callable[..., str]


def answer(service: Service, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One turn of a stateless client; returns the whole conversation."""
    include = ["reasoning.encrypted_content"]
    reply = service.http().create("/v1/responses", model="test-model", input=items, store=False, include=include)
    assert reply.status == 200, reply.json
    return [*items, *reply.json["output"]]


def opened(service: Service) -> bool:
    return 'macaron_carriers_total{outcome="opened"} 1.0' in service.http().get("/metrics").text


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_a_carrier_outlives_the_store(home: Home, profile: Profile) -> None:
    arguments = ("--profile", profile())
    with serving(home, *arguments) as service:
        items = answer(service, [user("hello")])
    (keys,) = home.folder.rglob("state.keys")
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    for file in keys.parent.glob("*.db*"):
        file.unlink()
    with serving(home, *arguments) as service:
        answer(service, [*items, user("and now?")])
        assert opened(service)
        assert keys.read_text().strip() not in service.printed + service.log


def test_services_with_one_key_file_open_each_others_carriers(tmp_path: Path, profile: Profile) -> None:
    keys = tmp_path / "shared"
    keys.write_text(b64encode(os.urandom(32)).decode())
    keys.chmod(0o600)
    homes = []
    for name in "ab":
        (tmp_path / name).mkdir()
        homes.append(Home(tmp_path / name, **OPEN, MOL_STATE_KEY_FILE=str(keys)))
    arguments = ("--profile", profile(), "--store", "memory:")
    with serving(homes[0], *arguments) as one, serving(homes[1], *arguments) as other:
        answer(other, [*answer(one, [user("hello")]), user("and now?")])
        assert opened(other)
    assert not list(tmp_path.rglob("state.keys"))


def test_a_state_key_file_that_is_named_must_exist(home: Home, profile: Profile) -> None:
    missing = str(home.folder / "missing")
    said = refusal(home, "--profile", profile(), MOL_STATE_KEY_FILE=missing)
    assert f"state key file {missing} cannot be read" in said
