"""A whole service in the test's event loop: real HTTP on a free port, the real store, in front of any engine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import aiohttp
import uvicorn
from msgspec.structs import replace

from macaron.hcp import Loaded, load
from macaron.registry.cards import registry_from
from macaron.registry.vault import Vault
from macaron.server.adapters.document import Document
from macaron.server.adapters.parts import Adapters, plug_for
from macaron.server.adapters.peers import Alone
from macaron.server.app import build_app
from macaron.server.engines import create_engine
from macaron.server.keys import Keys
from macaron.server.protocol import protocol_class
from macaron.server.service import Service
from macaron.server.supervisor import bind
from macaron.server.tracing import Tracing
from macaron.store import migrate, open_store, store_limits

LABELS = ("L0", "L1", "L2", "L3")


def write_profile(
    folder: Path, address: str, *, labels: tuple[str, ...] = LABELS, mol: str = "", more: str = ""
) -> Path:
    """A profile of kind vllm with one adapter a label; `mol` adds lines to `[mol]`, `more` adds whole sections."""
    (folder / "route.md").write_text("Answer with one of {labels}.\n{cards}")
    (folder / "summary.md").write_text("Summarise what you did.")
    entries = []
    for label in labels:
        (folder / f"{label}.md").write_text(f"You are specialist {label}.")
        entries.append(
            f'[[mol.adapters]]\nlabel = "{label}"\nname = "{label} name"\ndescription = "does {label}"\n'
            f'prompt_path = "{label}.md"\nengine_name = "{label}"\n'
        )
    default = "L2" if "L2" in labels else labels[-1]
    document = folder / "profile.toml"
    document.write_text(
        f"""version = 1
[mol]
served_model = "test-model"
base = "base"
entry = "{labels[0]}"
default = "{default}"
summary_prompt_path = "summary.md"
{mol}
[mol.route]
prompt_path = "route.md"
{"".join(entries)}
[engine]
kind = "vllm"
address = "{address}"
special_tokens = ["<|im_start|>", "<|im_end|>"]
{more}
"""
    )
    return document


class Client:
    """Speaks to a running service; returns status, headers and decoded body."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def chat(self, messages: Any, *, headers: dict[str, str] | None = None, **fields: Any) -> Reply:
        """A Chat request that is not streamed."""
        return await self.post({"model": "test-model", "messages": messages, **fields}, headers=headers)

    async def post(
        self, body: Any, *, path: str = "/v1/chat/completions", headers: dict[str, str] | None = None
    ) -> Reply:
        """Any JSON body to any path."""
        async with self.session.post(self.url + path, json=body, headers=headers) as response:
            return Reply(response.status, dict(response.headers), await response.json())

    async def get(self, path: str, headers: dict[str, str] | None = None) -> Reply:
        """A GET whose answer is JSON."""
        async with self.session.get(self.url + path, headers=headers) as response:
            return Reply(response.status, dict(response.headers), await response.json())

    @contextlib.asynccontextmanager
    async def stream(
        self, messages: Any, *, headers: dict[str, str] | None = None, **fields: Any
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """A streamed Chat request."""
        body = {"model": "test-model", "messages": messages, "stream": True, **fields}
        async with self.session.post(self.url + "/v1/chat/completions", json=body, headers=headers) as response:
            yield response


class Reply:
    """A response."""

    def __init__(self, status: int, headers: dict[str, str], body: Any) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.body = body

    @property
    def text(self) -> str:
        """The first choice's content."""
        content: str = self.body["choices"][0]["message"]["content"]
        return content

    @property
    def adapter(self) -> str:
        """Which specialist answered, where the request asked for a trace."""
        return self.headers["x-macaron-adapter"]


class Running:
    """A service that runs, its parts at hand."""

    def __init__(self, service: Service, client: Client, url: str, adapters: Adapters) -> None:
        self.service = service
        self.client = client
        self.url = url
        self.adapters = adapters


@contextlib.asynccontextmanager
async def serve(
    document: Path | Loaded,
    store: str = "memory:",
    *,
    keys: Keys | None = None,
    loopback: bool = True,
    durability: Literal["normal", "full"] = "normal",
    tracing: Tracing | None = None,
    vault: Path | None = None,
    state_keys: Sequence[bytes] = (),
) -> AsyncGenerator[Running, None]:
    """Serve a profile until the block ends; `vault` keeps registered adapters beyond it."""
    with contextlib.ExitStack() as stack:
        folder = vault or Path(stack.enter_context(TemporaryDirectory())) / "vault"
        async with _serve(document, store, keys, loopback, durability, tracing, folder, state_keys) as running:
            yield running


@contextlib.asynccontextmanager
async def _serve(
    document: Path | Loaded,
    store: str,
    keys: Keys | None,
    loopback: bool,
    durability: Literal["normal", "full"],
    tracing: Tracing | None,
    vault: Path,
    state_keys: Sequence[bytes],
) -> AsyncGenerator[Running, None]:
    loaded = document if isinstance(document, Loaded) else await asyncio.to_thread(load, document)
    registry = registry_from(loaded)
    if store.startswith("sqlite:///"):
        await asyncio.to_thread(migrate, Path(store.removeprefix("sqlite://")))
    section = loaded.contract.store
    limits = store_limits(section)
    opened = await asyncio.to_thread(open_store, store, limits=limits, durability=durability)
    engine = create_engine(loaded.contract, registry)
    await engine.start()
    registered = Document(opened, loaded.digest, registry)
    found = await registered.open()
    service = Service(loaded, registry, found.generation, engine, opened, keys or Keys(None), tracing, None, state_keys)
    service.apply(found.generation, found.desired, frozenset())
    kept = await asyncio.to_thread(Vault, vault)
    adapters = Adapters(service, registered, kept, plug_for(service, kept.folder, vault, None), Alone(1), 1)
    app = build_app(service, adapters, loopback=loopback, drain_timeout=2.0)
    listener = bind("127.0.0.1", 0)
    header_timeout = loaded.contract.service.header_timeout
    config = uvicorn.Config(
        app, http=protocol_class(header_timeout), ws="none", lifespan="on", log_config=None, access_log=False
    )
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    await asyncio.wait_for(server.up.wait(), 5)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        async with aiohttp.ClientSession() as session:
            yield Running(service, Client(session, url), url, adapters)
    finally:
        server.should_exit = True
        server.stop.set()
        await running


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()
        self.stop = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """Signals stay with the test run."""
        yield

    async def main_loop(self) -> None:
        """Until the block ends; uvicorn itself would look ten times a second."""
        await self.on_tick(0)
        await self.stop.wait()

    async def startup(self, sockets: Any = None) -> None:
        """See `uvicorn.Server`."""
        await super().startup(sockets)
        self.up.set()


def with_service(loaded: Loaded, **fields: Any) -> Loaded:
    """A contract with other `[service]` values."""
    contract = loaded.contract
    return replace(loaded, contract=replace(contract, service=replace(contract.service, **fields)))
