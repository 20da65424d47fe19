"""A worker process: the HTTP service over one event loop. Started by the supervisor, never by hand.

Its standard input carries one line of JSON, and ends when the supervisor is gone, upon which the worker ends too. Its
standard output says `ready` once requests are accepted, or why they will not be.
"""

from __future__ import annotations

import asyncio
import gc
import math
import os
import socket
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import msgspec
import uvicorn
import uvloop
from msgspec import Struct

from macaron.engine.base import Engine
from macaron.errors import MacaronError
from macaron.experience import Bounds, Consent, Recorder
from macaron.hcp import Loaded
from macaron.hcp.schema import Contract
from macaron.registry.cards import Registry
from macaron.registry.vault import Vault
from macaron.server.adapters.document import Document
from macaron.server.adapters.parts import Adapters, plug_for
from macaron.server.adapters.peers import Supervised
from macaron.server.app import build_app
from macaron.server.engines import Embedded, create_engine
from macaron.server.keys import Keys, read_keys
from macaron.server.logs import configure_logging
from macaron.server.protocol import protocol_class
from macaron.server.service import Service
from macaron.server.state_keys import read_state_keys
from macaron.server.tracing import Tracing, tracing_from_environment
from macaron.store import open_store, store_limits
from macaron.store.base import Store

KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048
# For the last words to requests that were ended, and for commits and summaries that nobody waits for.
FAREWELL_SECONDS = 2
BACKGROUND_SECONDS = 2.0


class WorkerConfig(Struct, frozen=True):
    """What a worker is told. It reads no contract: one that was edited since the service began must not come into force
    because a worker had to be replaced.

    Attributes:
        contract: what is served; `digest`, `document` and `texts` as in `Loaded`.
        socket: descriptor of the listening socket, inherited.
        key_file: empty for open mode.
        state_key_file: empty for a key of this process.
        vault: folder of registered adapters.
        control: the supervisor's socket.
        experience: file of recorded turns; empty where none are recorded.
    """

    contract: Contract
    digest: str
    document: str
    texts: dict[str, str]
    registry: Registry
    socket: int
    store: str
    loopback: bool
    vault: str
    control: str
    key_file: str = ""
    state_key_file: str = ""
    embedded: Embedded | None = None
    experience: str = ""
    log_level: str = "warning"


class _Server(uvicorn.Server):
    """Says so when it accepts requests; at its end, tells those that took longer than it may wait."""

    def __init__(self, config: uvicorn.Config, drain_timeout: float) -> None:
        super().__init__(config)
        self._drain_timeout = drain_timeout

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server`."""
        await super().startup(sockets)
        if self.started:
            _report("ready")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server`."""
        late = asyncio.get_running_loop().call_later(self._drain_timeout, self._end_requests)
        try:
            await super().shutdown(sockets)
        finally:
            late.cancel()

    def _end_requests(self) -> None:
        for task in self.server_state.tasks:
            task.cancel()


def main() -> None:
    """Run until the supervisor says to stop (SIGTERM) or is gone (end of standard input)."""
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return  # the supervisor is gone already
    config = msgspec.json.decode(line, type=WorkerConfig)
    configure_logging(config.log_level)
    threading.Thread(target=_end_with_supervisor, daemon=True, name="supervisor watch").start()
    try:
        parts = _prepare(config)
    except MacaronError as error:
        _report(f"failed {error.message}")
        sys.exit(1)
    # What has been made so far stays; requests leave few cycles, so looking for them often is waste.
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, parts))


def _report(line: str) -> None:
    print(line.replace("\n", " "), flush=True)  # noqa: T201


def _end_with_supervisor() -> None:
    """Block until the supervisor is gone. It cannot be asked to drain any more, so the process just ends."""
    # Read below the buffered file: its lock must be free when the interpreter ends in another thread.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(0)


class _Parts(NamedTuple):
    loaded: Loaded
    registry: Registry
    store: Store
    engine: Engine
    vault: Vault
    keys: Keys
    tracing: Tracing | None
    recorder: Recorder | None
    state_keys: tuple[bytes, ...]


def _prepare(config: WorkerConfig) -> _Parts:
    loaded = Loaded(config.contract, config.digest, Path(config.document), config.texts)
    registry = config.registry
    section = loaded.contract.store
    limits = store_limits(section)
    return _Parts(
        loaded=loaded,
        registry=registry,
        store=open_store(config.store, limits=limits, durability=section.durability),
        engine=create_engine(loaded.contract, registry, embedded=config.embedded),
        vault=Vault(Path(config.vault)),
        keys=read_keys(Path(config.key_file)) if config.key_file else Keys(None),
        tracing=tracing_from_environment(),
        recorder=recorder_for(config.contract, Path(config.experience)) if config.experience else None,
        state_keys=read_state_keys(Path(config.state_key_file)) if config.state_key_file else (),
    )


def recorder_for(contract: Contract, path: Path) -> Recorder:
    """What records turns as a contract says.

    Raises:
        ConfigError: the file cannot be opened.
    """
    section = contract.experience
    consents = [Consent(entry.tenant, entry.consent, entry.licence) for entry in section.tenants]
    return Recorder(path, consents, Bounds(section.max_bytes, section.max_age))


async def _serve(config: WorkerConfig, parts: _Parts) -> None:
    try:
        document = Document(parts.store, parts.loaded.digest, parts.registry)
        found = await document.open()
        await parts.engine.start()
    except MacaronError as error:
        _report(f"failed {error.message}")
        return
    service = Service(
        parts.loaded,
        parts.registry,
        found.generation,
        parts.engine,
        parts.store,
        parts.keys,
        parts.tracing,
        parts.recorder,
        parts.state_keys,
    )
    service.apply(found.generation, found.desired, frozenset())
    limits = parts.loaded.contract.service
    control = Path(config.control)
    plug = plug_for(service, parts.vault.folder, control, config.embedded)
    adapters = Adapters(service, document, parts.vault, plug, Supervised(control), os.getpid())
    app = build_app(service, adapters, loopback=config.loopback, drain_timeout=BACKGROUND_SECONDS)
    server = _Server(
        uvicorn.Config(
            app,
            http=protocol_class(limits.header_timeout),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=math.ceil(limits.drain_timeout) + FAREWELL_SECONDS,
            backlog=BACKLOG,
        ),
        limits.drain_timeout,
    )
    await server.serve(sockets=[socket.socket(fileno=config.socket)])


if __name__ == "__main__":
    main()
