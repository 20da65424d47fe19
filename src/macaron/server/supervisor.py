"""The parent of a service: binds the port, prepares the store, runs the embedded engine and the workers, restarts what
dies, and stops everything in order. It serves no request itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from macaron.engine.llamacpp.launch import EngineChild
from macaron.engine.llamacpp.params import LaunchParams
from macaron.engine.llamacpp.slots import slots_needed
from macaron.errors import ConfigError, Unavailable
from macaron.hcp import Loaded
from macaron.registry.cards import Registry
from macaron.server.control import serve_control
from macaron.server.engines import Embedded
from macaron.server.metrics import FOLDER_VARIABLE
from macaron.server.worker import BACKLOG, WorkerConfig
from macaron.store import acquire, database_path, migrate

log = logging.getLogger("macaron.supervisor")

ENGINE_LOAD_SECONDS = 120.0
WORKER_START_SECONDS = 60.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
STOP_GRACE = 5.0


class ServeOptions(Struct, frozen=True):
    """How to serve a contract.

    Attributes:
        weights: the base's file, for the embedded engine.
        store: URL, resolved.
        key_file: None for open mode.
        runtime: folder for the control socket.
    """

    loaded: Loaded
    registry: Registry
    host: str
    port: int
    store: str
    runtime: Path
    loopback: bool
    workers: int = 1
    address: str = ""
    key_file: Path | None = None
    weights: Path | None = None
    log_level: str = "warning"


class Supervisor:
    """Runs one service until it is told to stop."""

    def __init__(self, options: ServeOptions, *, on_ready: Callable[[int], None]) -> None:
        """`on_ready` is called with the port once requests are served."""
        self._options = options
        self._on_ready = on_ready
        self._stopping = asyncio.Event()
        self._workers: dict[int, asyncio.subprocess.Process] = {}
        self._child: EngineChild | None = None
        self._restarts = 0

    async def run(self) -> None:
        """Serve. Returns when stopped by a signal.

        Raises:
            ConfigError, Unavailable: the service could not be started; nothing is left running.
        """
        options = self._options
        async with contextlib.AsyncExitStack() as stack:
            listener = stack.enter_context(bind(options.host, options.port))
            port = listener.getsockname()[1]
            if (database := database_path(options.store)) is not None:
                stack.enter_context(acquire(database))
                await asyncio.to_thread(migrate, database)
            control = prepare_control(options.runtime, port)
            stack.callback(control.unlink, missing_ok=True)
            stack.callback((await serve_control(control, self._command)).close)
            self._catch_signals()
            environment = stack.enter_context(_metrics_folder(options.workers))
            background = [asyncio.create_task(task) for task in await self._start_engine(stack)]
            config = self._worker_config(listener)
            workers = [await self._start_worker(index, config, environment) for index in range(options.workers)]
            background += [
                asyncio.create_task(self._keep(index, worker, config, environment))
                for index, worker in enumerate(workers)
            ]
            self._on_ready(port)
            await self._until_stopped(background)

    async def _until_stopped(self, background: list[asyncio.Task[None]]) -> None:
        await self._stopping.wait()
        await self._stop_workers()
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stopping.set)

    async def _command(self, command: str) -> dict[str, Any]:
        match command:
            case "status":
                return {
                    "pid": os.getpid(),
                    "workers": {str(index): worker.pid for index, worker in self._workers.items()},
                    "worker_restarts": self._restarts,
                    "engine": self._child.pid if self._child else None,
                    "engine_restarts": self._child.restarts if self._child else 0,
                }
            case "stop":
                self._stopping.set()
                return {"stopping": True}
            case _:
                return {"error": f"unknown command {command[:40]!r}; known are status and stop"}

    # --- the engine ------------------------------------------------------------------------------------------------

    async def _start_engine(self, stack: contextlib.AsyncExitStack) -> list[Any]:
        options = self._options
        contract, weights = options.loaded.contract, options.weights
        if contract.engine.kind != "llamacpp":
            return []
        assert weights is not None
        section = contract.engine.llamacpp
        sources = [entry.source for entry in contract.mol.adapters if entry.source]
        self._child = EngineChild(
            LaunchParams(
                weights=str(weights),
                port=0,
                api_key="",
                adapters=tuple(str(options.loaded.file(source)) for source in sources),
                slots=slots_needed(len(options.registry.specialists), section.slots_per_adapter),
                slot_context=section.slot_context,
                batch=section.batch,
                threads=section.threads,
                chat_template=options.loaded.text("engine.llamacpp.chat_template_path", ""),
            )
        )
        stack.push_async_callback(self._child.stop)
        await self._child.start()
        ready = asyncio.create_task(self._child.wait_ready(ENGINE_LOAD_SECONDS))
        stop = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((ready, stop), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not ready.done():
            ready.cancel()
            raise Unavailable("Stopped while the engine was loading.")
        ready.result()
        return [self._child.supervise()]

    # --- the workers -----------------------------------------------------------------------------------------------

    def _worker_config(self, listener: socket.socket) -> WorkerConfig:
        options, child = self._options, self._child
        return WorkerConfig(
            contract=str(options.loaded.path),
            socket=listener.fileno(),
            store=options.store,
            loopback=options.loopback,
            address=options.address,
            key_file=str(options.key_file) if options.key_file else "",
            embedded=Embedded(child.origin, child.api_key) if child else None,
            log_level=options.log_level,
        )

    async def _start_worker(
        self, index: int, config: WorkerConfig, environment: dict[str, str]
    ) -> asyncio.subprocess.Process:
        worker = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "macaron.server.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(config.socket,),
            start_new_session=True,
            env=environment,
        )
        self._workers[index] = worker
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(msgspec.json.encode(config) + b"\n")
        try:
            async with asyncio.timeout(WORKER_START_SECONDS):
                line = (await worker.stdout.readline()).decode("utf-8", "replace").strip()
        except TimeoutError:
            line = f"failed it was not ready after {WORKER_START_SECONDS:g} seconds"
        if line != "ready":
            await self._end(worker)
            raise Unavailable(f"A worker did not start: {line.removeprefix('failed ') or 'it ended at once'}")
        return worker

    async def _keep(
        self, index: int, worker: asyncio.subprocess.Process, config: WorkerConfig, environment: dict[str, str]
    ) -> None:
        """Replace a worker whenever it dies."""
        pause = FIRST_PAUSE
        while True:
            status = await worker.wait()
            if self._stopping.is_set():
                return
            log.error("worker %d ended with status %s; starting another", index, status)
            self._restarts += 1
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            with contextlib.suppress(Unavailable):
                worker = await self._start_worker(index, config, environment)
                pause = FIRST_PAUSE

    async def _stop_workers(self) -> None:
        await asyncio.gather(*(self._end(worker) for worker in self._workers.values()))

    async def _end(self, worker: asyncio.subprocess.Process) -> None:
        if worker.returncode is None:
            worker.terminate()
        try:
            drain = self._options.loaded.contract.service.drain_timeout
            await asyncio.wait_for(worker.wait(), drain + STOP_GRACE)
        except TimeoutError:
            worker.kill()
            await worker.wait()


def bind(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        ConfigError: the address is taken or not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"Port {port} on {host} is in use, perhaps by another Macaron; stop it or choose another --port."
            ) from None
        raise ConfigError(f"Cannot listen on {host}:{port}: {error.strerror}.") from None
    listener.setblocking(False)
    return listener


def prepare_control(runtime: Path, port: int) -> Path:
    """The path for the control socket, in a folder of its owner's; what a dead service left there is removed."""
    runtime.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = control_path(runtime, port)
    path.unlink(missing_ok=True)
    return path


def control_path(runtime: Path, port: int) -> Path:
    """Where the control socket of the service on a port is."""
    return runtime / f"{port}.sock"


@contextlib.contextmanager
def _metrics_folder(workers: int) -> Any:
    """The environment of the workers; several of them share their numbers through files."""
    environment = {name: value for name, value in os.environ.items() if name != FOLDER_VARIABLE}
    if workers == 1:
        yield environment
        return
    folder = tempfile.mkdtemp(prefix="macaron-metrics-")
    try:
        yield {**environment, FOLDER_VARIABLE: folder}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
