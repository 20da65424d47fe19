"""The worker processes of a service: started together, replaced when they die, drained at the end."""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping

import msgspec

from macaron.errors import Unavailable
from macaron.server.worker import WorkerConfig

log = logging.getLogger("macaron.supervisor")

START_SECONDS = 60.0
STOP_GRACE = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
SETTLED_SECONDS = 10.0


class Workers:
    """A number of workers on one listening socket. Used from one event loop."""

    def __init__(self, config: WorkerConfig, environment: Mapping[str, str], count: int) -> None:
        self.configure(config)
        self._environment = environment
        self._count = count
        self._processes: dict[int, Process] = {}
        self._keepers: list[asyncio.Task[None]] = []
        self.restarts = 0

    @property
    def pids(self) -> list[int]:
        """Of the processes, in order."""
        return [self._processes[index].pid for index in sorted(self._processes)]

    def configure(self, config: WorkerConfig) -> None:
        """What workers are told that start from now on."""
        self._config = config
        self._line = msgspec.json.encode(config) + b"\n"

    @property
    def config(self) -> WorkerConfig:
        """What workers are told."""
        return self._config

    async def start(self) -> None:
        """Start all of them; returns when every one accepts requests.

        Raises:
            Unavailable: one of them cannot; the message has its reason. Call `stop` to end the others.
        """
        outcomes = await asyncio.gather(*map(self._start, range(self._count)), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
        self._keepers = [asyncio.create_task(self._keep(index)) for index in range(self._count)]

    async def stop(self) -> None:
        """Let all of them finish what they serve, and end."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        await asyncio.gather(*map(self._end, self._processes.values()))

    def kill(self) -> None:
        """End all of them at once; what they serve is cut."""
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()

    async def _start(self, index: int) -> None:
        process = self._processes[index] = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "macaron.server.worker",
            stdin=PIPE,
            stdout=PIPE,
            pass_fds=(self._config.socket,),
            # Ctrl-C reaches the terminal's whole process group, and the workers must drain before they end.
            start_new_session=True,
            env=self._environment,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(self._line)
        try:
            async with asyncio.timeout(START_SECONDS):
                said = (await process.stdout.readline()).decode("utf-8", "replace").strip()
        except TimeoutError:
            said = f"failed it was not ready after {START_SECONDS:g} seconds"
        if said != "ready":
            await self._end(process)
            raise Unavailable(f"A worker did not start: {said.removeprefix('failed ') or 'it ended at once'}")

    async def _keep(self, index: int) -> None:
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE
        while True:
            began = loop.time()
            status = await self._processes[index].wait()
            if loop.time() - began >= SETTLED_SECONDS:
                pause = FIRST_PAUSE
            log.error("worker %d ended with status %s; another one is started", index, status)
            self.restarts += 1
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            try:
                await self._start(index)
            except Unavailable as error:
                log.error("%s", error.message)

    async def _end(self, process: Process) -> None:
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), self._config.contract.service.drain_timeout + STOP_GRACE)
        except TimeoutError:
            process.kill()
            await process.wait()
