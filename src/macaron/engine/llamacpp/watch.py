"""Tells an engine that hangs from one that works, however long its prompts are.

Two probes, since there are two ways to hang. `/health` is answered by threads that do not compute, at once however busy
the engine is: with a prompt of 4,096 tokens in every slot and both cores shared with a training run, the slowest of 430
probes took 0.07 s. It shows a process that is stopped, or whose threads wait for each other, but is answered as before
when the computing thread hangs. `/lora-adapters` waits for the batch that is being computed and for nothing else: up to
3.4 s on the same machine, for ever when the computing thread hangs. It is asked rarely, because calls that wait for the
engine's work, at two a second, have held up the cancellation of other requests; one beside a cancellation does not.

Whether hops wait makes no difference: an engine that does not answer could not serve the next hop either.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

HEALTH = "/health"
WORK = "/lora-adapters"
BATCH_SECONDS = 30.0
TOKEN_SECONDS = 0.5


class Rule(NamedTuple):
    """`failures` probes in a row without an answer within `timeout` are a hang; the next begins after `every` seconds.

    More than one, since a time limit also ends where the whole service was stopped for a while, as by Ctrl-Z.
    """

    every: float
    timeout: float
    failures: int


class Watch(NamedTuple):
    """What counts as a hang; `loading` is how many seconds an engine may take until it serves."""

    health: Rule
    work: Rule
    loading: float = 120.0


def watch_for(batch: int) -> Watch:
    """For an engine with batches of so many tokens.

    A process that hangs is known after half a minute to a minute. Work counts as hung after two time limits, in which
    an engine that reads two tokens a second, a hundredth of what is usual, would have computed more than a batch each.
    """
    return Watch(health=Rule(5.0, 5.0, 6), work=Rule(60.0, BATCH_SECONDS + TOKEN_SECONDS * batch, 2))


class Probe(NamedTuple):
    """Asks one engine on this machine."""

    port: int
    api_key: str

    async def answers(self, path: str) -> bool:
        """Whether a GET is answered with 200. It waits for as long as the connection is open."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        try:
            head = f"GET {path} HTTP/1.1\r\nHost: engine\r\nAuthorization: Bearer {self.api_key}\r\n"
            writer.write(head.encode() + b"Connection: close\r\n\r\n")
            status = await reader.readline()
            return status.split(b" ")[1:2] == [b"200"]
        except (OSError, ValueError):
            return False
        finally:
            writer.close()

    async def hang(self, watch: Watch) -> str:
        """Wait until an engine that serves hangs; says how that is known."""
        waiting = [asyncio.create_task(self._failing(*kind)) for kind in ((HEALTH, watch.health), (WORK, watch.work))]
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for task in waiting:
                task.cancel()

    async def _failing(self, path: str, rule: Rule) -> str:
        failed = 0
        while failed < rule.failures:
            await asyncio.sleep(rule.every)
            failed = 0 if await self._answers_within(path, rule.timeout) else failed + 1
        return f"the engine hangs: {failed} calls of {path} in a row failed"

    async def _answers_within(self, path: str, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self.answers(path)
        except TimeoutError:
            return False
