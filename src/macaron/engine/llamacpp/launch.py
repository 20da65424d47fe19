"""The supervisor's handle on the engine's process: start it, know that it serves, restart it, end it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import sys
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from macaron.engine.llamacpp.params import LaunchParams
from macaron.engine.llamacpp.watch import HEALTH, Probe, Watch, watch_for
from macaron.errors import Unavailable

log = logging.getLogger("macaron.engine")

STDERR_KEPT_BYTES = 8192
REASON_LINES = 8
POLL_SECONDS = 0.05
STOP_SECONDS = 2.0
# What the engine and its threads read. The rest may hold secrets, and the engine parses files of strangers.
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV")


class Backoff(NamedTuple):
    """Seconds between a death and the restart: `first`, doubled each time up to `longest`, `first` again after the
    engine has run for `settled`."""

    first: float = 0.1
    longest: float = 30.0
    settled: float = 60.0


class EngineChild:
    """One engine process at a time, on one port with one key for as long as this object lives.

    The port is held by a bound socket that does not listen, so that no other program gets it between two processes.
    Use it from one event loop. The write end of the child's standard input must not be inherited by other processes:
    start them with `exec`, never with a bare `fork`.
    """

    def __init__(self, params: LaunchParams, *, backoff: Backoff | None = None, watch: Watch | None = None) -> None:
        """`params` with any `port` and `api_key`: both are replaced here."""
        self._reserved = _reserve_port()
        self._params = msgspec.structs.replace(
            params, port=self._reserved.getsockname()[1], api_key=secrets.token_urlsafe(32)
        )
        self._probe = Probe(self._params.port, self._params.api_key)
        self._backoff = backoff or Backoff()
        self._watch = watch or watch_for(params.batch)
        self._process: asyncio.subprocess.Process | None = None
        self._stderr = b""
        self._reading: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._changing = asyncio.Lock()
        self.restarts = 0
        self.registered: dict[str, str] = {}

    @property
    def slots(self) -> int:
        """Slots of the running process."""
        return self._params.slots

    @property
    def origin(self) -> str:
        """Such as `http://127.0.0.1:41234`; the same after a restart."""
        return f"http://127.0.0.1:{self._params.port}"

    @property
    def api_key(self) -> str:
        """Bearer token of the engine; the same after a restart."""
        return self._params.api_key

    @property
    def alive(self) -> bool:
        """A process runs; it may still be loading."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        """Of the running process."""
        return self._process.pid if self._process is not None and self.alive else None

    @property
    def last_words(self) -> str:
        """The end of what the latest process wrote to its standard error."""
        lines = self._stderr.decode("utf-8", "replace").splitlines()
        return "\n".join(line.strip() for line in lines[-REASON_LINES:])

    async def start(self) -> None:
        """Start the process. Returns before it serves."""
        async with self._changing:
            if not self._stopping.is_set():
                await self._spawn()

    async def wait_ready(self, timeout: float) -> None:
        """Wait until the engine serves.

        Raises:
            Unavailable: it ended while loading, or is not ready after `timeout` seconds; the message names the reason.
        """
        process = self._process
        try:
            async with asyncio.timeout(timeout):
                while not await self._probe.answers(HEALTH):
                    if process is None or process.returncode is not None:
                        raise Unavailable(await self._death(), code="engine_failed_to_load")
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise Unavailable(f"the engine is not ready after {timeout:g} s; allow it more time") from None

    async def relaunch(self, registered: Mapping[str, str], slots: int) -> None:
        """Replace the process by one with other adapters beside those it was first launched with; requests that run are
        cut. Returns before it serves.

        Args:
            registered: files by name, in the order of their ids.
        """
        async with self._changing:
            if self._stopping.is_set():
                return
            fixed = self._params.adapters[: len(self._params.adapters) - len(self.registered)]
            self.registered = dict(registered)
            adapters = (*fixed, *self.registered.values())
            self._params = msgspec.structs.replace(self._params, adapters=adapters, slots=slots)
            if self._process is not None:
                await _end(self._process)
            await self._spawn()

    async def supervise(self) -> None:
        """Restart the engine whenever it ends or hangs, until `stop`. Run it as a task beside everything else."""
        loop = asyncio.get_running_loop()
        pause = self._backoff.first
        while not self._stopping.is_set():
            began = loop.time()
            if (process := self._process) is not None:
                status = await self._end_of(process)
                if self._stopping.is_set():
                    return
                async with self._changing:
                    relaunched = self._process is not process
                if relaunched:
                    continue
                log.error("the engine ended with status %s; another one is started: %s", status, self.last_words)
            if loop.time() - began >= self._backoff.settled:
                pause = self._backoff.first
            if await self._stopped_within(pause):
                return
            pause = min(2 * pause, self._backoff.longest)
            self.restarts += 1
            await self.start()

    async def _end_of(self, process: asyncio.subprocess.Process) -> int:
        """The status with which it ended, or was ended because it hung."""
        watching = asyncio.create_task(self._end_if_hung(process))
        try:
            return await process.wait()
        finally:
            watching.cancel()

    async def _end_if_hung(self, process: asyncio.subprocess.Process) -> None:
        reason = await self._hang()
        if process.returncode is None:
            log.error("%s; it is killed", reason)
            process.kill()

    async def _hang(self) -> str:
        """Wait until the engine hangs; says how that is known."""
        try:
            await self.wait_ready(self._watch.loading)
        except Unavailable as error:
            return error.message
        log.info("the engine serves")
        return await self._probe.hang(self._watch)

    async def stop(self) -> None:
        """End the engine for good and release the port; running requests are cut."""
        self._stopping.set()
        async with self._changing:
            if self._process is not None:
                await _end(self._process)
            if self._reading is not None:
                await self._reading
            self._reserved.close()

    async def _spawn(self) -> None:
        self._stderr = b""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "macaron.engine.llamacpp.child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        )
        self._process = process
        self._reading = asyncio.create_task(self._read_stderr(process))
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.write(msgspec.json.encode(self._params) + b"\n")
            await process.stdin.drain()

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _read_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(STDERR_KEPT_BYTES):
            if process is self._process:
                self._stderr = (self._stderr + chunk)[-STDERR_KEPT_BYTES:]

    async def _death(self) -> str:
        if self._process is None or self._reading is None:
            return "the engine was not started"
        await self._reading
        return f"the engine ended with status {self._process.returncode} while loading:\n{self.last_words}"


async def _end(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


def _reserve_port() -> socket.socket:
    reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved
