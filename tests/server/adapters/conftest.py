"""A service with an administrator, in front of the engine double, and adapters to register."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from macaron.hcp import Loaded, load
from macaron.registry.desired import engine_name
from macaron.registry.revision import adapter_revision
from macaron.server.keys import read_keys
from tests.doubles.engine_double import EngineDouble, Reply, Script, Seen
from tests.harness import Client, Running, serve, write_profile
from tests.harness import Reply as Answer
from tests.registry.check.adapters import adapter

KEYS = {
    "owner": "owner-key-0123456789",
    "ann": "ann-key-0123456789ab",
    "bob": "bob-key-0123456789ab",
    "guest": "guest-key-0123456789",
}
PATH = "/v1/admin/adapters"
CARD = {"name": "Poet", "description": "writes poems", "boundary": "code", "identity": "You are a poet."}
NAMES = ("one", "two", "three")
WAIVED = {"waive_route_check": "a test"}


def row(label: str, text: str = "") -> dict[str, Any]:
    """A request that is routed to the label, or another that should be."""
    return {"messages": [{"role": "user", "content": text or f"please {label}"}], "label": label}


def rows(label: str, right: int = 4, wrong: int = 0) -> list[dict[str, Any]]:
    """Requests that should be routed to a label; the wrong ones go to the entry specialist."""
    return [row(label) for _ in range(right)] + [row(label, "whatever") for _ in range(wrong)]


def answering_by_adapter(seen: Seen) -> str | Reply:
    """A route goes to the label that the request asks for; an answer says which adapter gave it."""
    if not seen.is_route:
        return f"from {seen.adapter}"
    wanted = seen.prompt.rpartition("please ")[2].split("\n")[0].split("<")[0].strip() or "L0"
    return wanted if wanted in seen.body["structured_outputs"]["choice"] else "L0"


class Desk:
    """An administrator's view of a running service."""

    def __init__(self, running: Running, double: EngineDouble, root: Path, revisions: dict[str, str]) -> None:
        self.running = running
        self.double = double
        self.root = root
        self.revisions = revisions
        self.client: Client = running.client

    async def admin(self, path: str = "", body: Any = None, by: str = "owner") -> Answer:
        """A GET, or a POST where there is a body."""
        headers = _auth(by)
        if body is None:
            return await self.client.get(PATH + path, headers)
        return await self.client.post(body, path=PATH + path, headers=headers)

    async def check(self, rows: Sequence[Any] = (), label: str = "L4", by: str = "owner", **fields: Any) -> list[Any]:
        """A route check; gives the lines of the answer."""
        body = {"rows": list(rows), **fields}
        url = f"{self.client.url}{PATH}/{label}/route-check"
        async with self.client.session.post(url, json=body, headers=_auth(by)) as response:
            return [json.loads(line) for line in (await response.text()).splitlines()]

    async def register(self, label: str = "L4", name: str = "one", by: str = "owner", **fields: Any) -> str:
        """Register an adapter; returns its name in the engine once that has proved it."""
        answer = await self.admin(body={"label": label, "folder": str(self.root / name), **CARD, **fields}, by=by)
        assert answer.status == 201, answer.body
        engine = engine_name(label, self.revisions[name])
        await self.standing(label, engine, "ready", by=by)
        return engine

    async def override(self, label: str, name: str = "one") -> str:
        """Register another revision of a label of the profile, with its card; returns its name in the engine."""
        answer = await self.admin(body={"label": label, "folder": str(self.root / name), "override": True})
        assert answer.status == 201, answer.body
        engine = engine_name(label, self.revisions[name])
        await self.standing(label, engine, "ready")
        return engine

    async def live(self, label: str = "L4", name: str = "one", by: str = "owner", **fields: Any) -> str:
        """Register and promote; returns the name in the engine."""
        engine = await self.register(label, name, by, **fields)
        answer = await self.admin(f"/{label}/promote", {"revision": self.revisions[name], **WAIVED}, by)
        assert answer.status == 200, answer.body
        return engine

    async def standing(self, label: str, engine: str, state: str, by: str = "owner", within: float = 10) -> Any:
        """Wait until the engine's view of an adapter is this; returns it."""
        said: Any = None
        async with asyncio.timeout(within):
            while said is None or said["state"] != state:
                entry = (await self.admin(f"/{label}", by=by)).body
                said = next((item["engine"] for item in entry["revisions"] if item["engine_name"] == engine), None)
                await asyncio.sleep(0.01)
        return said

    async def ask(self, label: str, by: str = "owner", **fields: Any) -> Answer:
        """A turn that wants to be routed to a label."""
        headers = {**_auth(by), "x-macaron-trace": "1", **fields.pop("headers", {})}
        return await self.client.chat([{"role": "user", "content": f"please {label}"}], headers=headers, **fields)


def _auth(by: str) -> dict[str, str]:
    return {"authorization": f"Bearer {KEYS[by]}"}


def _profile(folder: Path, origin: str, sections: str, examples: str) -> Loaded:
    document = write_profile(folder, origin, more=sections)
    if examples:
        (folder / "routing.jsonl").write_text(examples)
        named = 'prompt_path = "route.md"'
        document.write_text(document.read_text().replace(named, f'{named}\nexamples_path = "routing.jsonl"'))
    return load(document)


async def until(condition: Callable[[], bool], within: float = 10.0) -> None:
    """Wait for what the service does in its own time and tells nobody."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


class Opening(Protocol):
    """Starts a service; `more` adds to the profile, `examples` is its routing set."""

    def __call__(
        self, script: Script = answering_by_adapter, *, more: str = "", store: str = "memory:", examples: str = ""
    ) -> contextlib.AbstractAsyncContextManager[Desk]: ...


@pytest.fixture
def desk(tmp_path: Path) -> Opening:
    """Starts a service with keys, whose administrator may register from `root`."""
    root = tmp_path / "root"
    folders = {name: adapter(root / name, lora_alpha=number) for number, name in enumerate(NAMES, 1)}
    revisions = {name: adapter_revision(folder) for name, folder in folders.items()}
    lines = [f"{name}:{key}:chat,trace,pin,admin" for name, key in KEYS.items() if name != "guest"]
    key_file = tmp_path / "keys"
    key_file.write_text("\n".join([*lines, f"guest:{KEYS['guest']}"]))
    key_file.chmod(0o600)

    @contextlib.asynccontextmanager
    async def start(
        script: Script = answering_by_adapter, *, more: str = "", store: str = "memory:", examples: str = ""
    ) -> AsyncGenerator[Desk, None]:
        async with EngineDouble(script) as double:
            sections = f'{more}\n[registry]\nroots = ["{root}"]\n'
            loaded = await asyncio.to_thread(_profile, tmp_path, double.origin, sections, examples)
            keys = await asyncio.to_thread(read_keys, key_file)
            async with serve(loaded, store, keys=keys, vault=tmp_path / "vault") as running:
                yield Desk(running, double, root, revisions)

    return start
