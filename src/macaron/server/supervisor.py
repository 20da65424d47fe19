"""The parent of a service: binds the port, prepares the store, runs the embedded engine and the workers, and stops
everything in order. It serves no request itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from macaron.engine.llamacpp.launch import EngineChild
from macaron.engine.llamacpp.params import LaunchParams
from macaron.engine.llamacpp.slots import slots_needed
from macaron.errors import ConfigError, Unavailable
from macaron.experience import create, experience_path
from macaron.hcp import Loaded
from macaron.profiles.adapters import engine_adapters
from macaron.registry.cards import Registry
from macaron.server.adapters.child import Change, change_adapters
from macaron.server.adapters.peers import Meeting, Report
from macaron.server.control import serve_control
from macaron.server.engines import Embedded
from macaron.server.metrics import FOLDER_VARIABLE
from macaron.server.worker import BACKLOG, WorkerConfig
from macaron.server.workers import Workers
from macaron.store import database_path, is_shared, taken

ENGINE_LOAD_SECONDS = 120.0
MAX_SOCKET_PATH = 107


class ServeOptions(Struct, frozen=True):
    """How to serve a contract.

    Attributes:
        store: URL, resolved.
        runtime: folder for the control socket.
        data: folder for registered adapters, where the store is not a file.
        key_file: None for open mode.
        state_key_file: None for a key of the worker's own.
        weights: the base's file, for the embedded engine.
    """

    loaded: Loaded
    registry: Registry
    host: str
    port: int
    store: str
    runtime: Path
    data: Path
    loopback: bool
    workers: int = 1
    key_file: Path | None = None
    state_key_file: Path | None = None
    weights: Path | None = None
    log_level: str = "warning"


class _StoppedError(Exception):
    """Told to stop before requests were served."""


class Supervisor:
    """Runs one service until it is told to stop."""

    def __init__(self, options: ServeOptions, *, on_ready: Callable[[int], None], on_stop: Callable[[], None]) -> None:
        """`on_ready` is called with the port once requests are served, `on_stop` when only running ones still are."""
        self._options = options
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._stopping = asyncio.Event()
        self._workers: Workers | None = None
        self._child: EngineChild | None = None
        self._meeting = Meeting(lambda: self._workers.pids if self._workers is not None else ())

    async def run(self) -> None:
        """Serve. Returns when stopped by a signal or a command, and leaves no process behind.

        Raises:
            ConfigError, Unavailable: the service could not be started; nothing is left running.
        """
        options = self._options
        with contextlib.suppress(_StoppedError):
            async with contextlib.AsyncExitStack() as stack:
                # Before anything shows that the service has begun.
                self._catch_signals()
                listener = stack.enter_context(bind(options.host, options.port))
                port = listener.getsockname()[1]
                await stack.enter_async_context(taken(options.store))
                experience = await asyncio.to_thread(prepare_experience, options.loaded, options.store)
                control = prepare_control(options.runtime, port)
                stack.callback(control.unlink, missing_ok=True)
                stack.callback((await serve_control(control, self._command)).close)
                environment = stack.enter_context(_environment(options, port))
                await self._start_engine(stack)
                vault = stack.enter_context(_vault(options, port))
                await self._start_workers(stack, listener, environment, vault, control, experience)
                self._on_ready(port)
                await self._stopping.wait()
                self._on_stop()
                # As long as one process holds it open, clients connect and wait for an answer that nobody gives.
                listener.close()

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)

    def _stop(self) -> None:
        """Stop; whoever asks twice will not wait."""
        if self._stopping.is_set() and self._workers is not None:
            self._workers.kill()
        self._stopping.set()

    async def _command(self, message: dict[str, Any]) -> dict[str, Any]:
        workers, child = self._workers, self._child
        match command := str(message.get("command", "")):
            case "status":
                return {
                    "pid": os.getpid(),
                    "workers": workers.pids if workers else [],
                    "worker_restarts": workers.restarts if workers else 0,
                    "engine": child.pid if child else None,
                    "engine_restarts": child.restarts if child else 0,
                }
            case "stop":
                self._stop()
                return {"stopping": True}
            case "meet":
                report = msgspec.convert(message.get("report"), Report)
                said: dict[str, Any] = msgspec.to_builtins(await self._meeting.meet(report))
                return said
            case "adapters" if child is not None and workers is not None:
                return await self._change_adapters(child, workers, msgspec.convert(message, Change))
            case _:
                return {"error": f"unknown command {command[:40]!r}; known are status and stop"}

    async def _change_adapters(self, child: EngineChild, workers: Workers, change: Change) -> dict[str, Any]:
        error = await change_adapters(child, change)
        embedded = Embedded(child.origin, child.api_key, str(self._options.weights), tuple(child.registered))
        workers.configure(msgspec.structs.replace(workers.config, embedded=embedded))
        return {"error": error} if error else {"changed": True}

    async def _unless_stopped(self, work: Awaitable[None]) -> None:
        """Wait for a part to start.

        Raises:
            _StoppedError: the service was told to stop meanwhile.
        """
        starting = asyncio.ensure_future(work)
        stop = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            raise _StoppedError
        starting.result()

    async def _start_engine(self, stack: contextlib.AsyncExitStack) -> None:
        options = self._options
        if options.weights is None:
            return
        params = await asyncio.to_thread(_launch_params, options, options.weights)
        self._child = child = EngineChild(params)
        stack.push_async_callback(child.stop)
        await child.start()
        try:
            await self._unless_stopped(child.wait_ready(ENGINE_LOAD_SECONDS))
        except Unavailable as error:
            raise Unavailable(f"{error.message}\nIt was started with {options.weights}.", code=error.code) from None
        keeper = asyncio.create_task(child.supervise())
        stack.callback(keeper.cancel)

    async def _start_workers(
        self,
        stack: contextlib.AsyncExitStack,
        listener: socket.socket,
        environment: dict[str, str],
        vault: Path,
        control: Path,
        experience: Path | None,
    ) -> None:
        options, child = self._options, self._child
        config = WorkerConfig(
            contract=options.loaded.contract,
            digest=options.loaded.digest,
            document=str(options.loaded.path),
            texts=dict(options.loaded.texts),
            registry=options.registry,
            socket=listener.fileno(),
            store=options.store,
            loopback=options.loopback,
            key_file=str(options.key_file) if options.key_file else "",
            state_key_file=str(options.state_key_file) if options.state_key_file else "",
            embedded=Embedded(child.origin, child.api_key, str(options.weights)) if child else None,
            vault=str(vault),
            control=str(control),
            experience=str(experience) if experience else "",
            log_level=options.log_level,
        )
        self._workers = workers = Workers(config, environment, options.workers)
        stack.push_async_callback(workers.stop)
        await self._unless_stopped(workers.start())


def _launch_params(options: ServeOptions, weights: Path) -> LaunchParams:
    loaded = options.loaded
    section = loaded.contract.engine.llamacpp
    return LaunchParams(
        weights=str(weights),
        port=0,
        api_key="",
        adapters=tuple(map(str, engine_adapters(loaded, options.registry, weights))),
        slots=slots_needed(len(options.registry.specialists), section.slots_per_adapter),
        slot_context=section.slot_context,
        batch=section.batch,
        threads=section.threads,
        chat_template=loaded.text("engine.llamacpp.chat_template_path", ""),
    )


def prepare_experience(loaded: Loaded, store: str) -> Path | None:
    """The file of recorded turns, made where it is not there; None where nobody's are recorded.

    Raises:
        ConfigError: the file cannot be made, or there is no store in a file for it to lie beside.
    """
    if not loaded.contract.experience.tenants:
        return None
    if (database := database_path(store)) is None:
        reason = "[[experience.tenants]] records turns in a file beside the store, and this store is in no file"
        raise ConfigError(f"{reason}; use sqlite, or record nobody", param="experience.tenants")
    path = experience_path(database)
    create(path)
    return path


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
    """The path for the control socket, in a folder of its owner's; what a dead service left there is removed.

    Raises:
        ConfigError: the folder cannot be used.
    """
    path = control_path(runtime, port)
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        raise ConfigError(
            f"The path of the control socket, {path}, is longer than the {MAX_SOCKET_PATH} bytes the system allows; "
            "set XDG_STATE_HOME to a shorter folder."
        )
    try:
        runtime.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"The control socket {path} cannot be made: {error.strerror}; set XDG_STATE_HOME to another folder."
        ) from None
    return path


def control_path(runtime: Path, port: int) -> Path:
    """Where the control socket of the service on a port is."""
    return runtime / f"{port}.sock"


def vault_folder(options: ServeOptions, port: int) -> Path:
    """Where registered adapters lie: beside the store's file. A store of several services is in no folder: theirs is
    the model's own, and one on all machines only where it is shared."""
    database = database_path(options.store)
    if database is not None:
        return database.with_suffix(".adapters")
    if is_shared(options.store):
        return options.data / f"{options.loaded.contract.mol.served_model}.adapters"
    return options.runtime / f"{port}.adapters"


@contextlib.contextmanager
def _vault(options: ServeOptions, port: int) -> Iterator[Path]:
    """The folder of registered adapters, which goes with a store that does."""
    folder = vault_folder(options, port)
    if options.store != "memory:":
        yield folder
        return
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _environment(options: ServeOptions, port: int) -> Iterator[dict[str, str]]:
    """The environment of the workers; several of them share their numbers through files."""
    environment = {name: value for name, value in os.environ.items() if name != FOLDER_VARIABLE}
    if options.workers == 1:
        yield environment
        return
    folder = options.runtime / f"{port}.metrics"
    # A service that was killed could not remove its own.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    try:
        yield {**environment, FOLDER_VARIABLE: str(folder)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
