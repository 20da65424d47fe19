"""What counts as a hang, against a server that answers some paths and not others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from macaron.engine.llamacpp.watch import HEALTH, WORK, Probe, Rule, Watch, watch_for
from tests.engine.accepted import all_connected_begin

QUICK = Rule(every=0.0, timeout=0.05, failures=3)
NEVER = Rule(every=0.0, timeout=30.0, failures=1)
Answers = Callable[[str, int], Awaitable[bytes | None]]


class Asked:
    """Paths that were asked for, and whether with the key."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.keys: set[bytes] = set()


@asynccontextmanager
async def server(answers: Answers) -> AsyncIterator[tuple[Probe, Asked]]:
    """Answers the n-th request for a path with a status line, or never."""
    asked, serving = Asked(), set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        path = head[0].split(b" ")[1].decode()
        asked.paths.append(path)
        asked.keys.update(line for line in head if line.startswith(b"Authorization"))
        status = await answers(path, asked.paths.count(path))
        if status is None:
            await reader.read()
        else:
            writer.write(b"HTTP/1.1 " + status + b"\r\n\r\n")

    async def serve_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await serve(reader, writer)
        finally:
            writer.transport.abort()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(serve_and_close(reader, writer)))

    async with await asyncio.start_server(begin, "127.0.0.1", 0) as listening:
        yield Probe(listening.sockets[0].getsockname()[1], "the-key"), asked
        await all_connected_begin()
    await asyncio.wait_for(asyncio.gather(*serving), 5)


def always(status: bytes | None) -> Answers:
    """The same answer to everything."""
    return by(lambda path, number: status)


def by(choose: Callable[[str, int], bytes | None]) -> Answers:
    """Answers at once."""

    async def answer(path: str, number: int) -> bytes | None:
        return choose(path, number)

    return answer


async def hang(probe: Probe, watch: Watch, within: float = 5.0) -> str:
    async with asyncio.timeout(within):
        return await probe.hang(watch)


async def test_an_engine_that_leaves_its_health_unanswered_hangs() -> None:
    async with server(always(None)) as (probe, _):
        assert await hang(probe, Watch(QUICK, NEVER)) == "the engine hangs: 3 calls of /health in a row failed"


async def test_an_engine_whose_health_answers_but_whose_work_does_not_hangs() -> None:
    async with server(by(lambda path, _: b"200 OK" if path == HEALTH else None)) as (probe, asked):
        assert "/lora-adapters" in await hang(probe, Watch(Rule(0.005, 1.0, 1), QUICK))
    assert asked.paths.count(HEALTH) > 1
    assert asked.keys == {b"Authorization: Bearer the-key"}


@pytest.mark.parametrize("status", [b"503 Service Unavailable", b"", b"nonsense"])
async def test_another_answer_than_200_counts_as_a_failure(status: bytes) -> None:
    async with server(always(status)) as (probe, _):
        assert "/health" in await hang(probe, Watch(QUICK, NEVER._replace(every=30.0)))


async def test_a_refused_connection_counts_as_a_failure() -> None:
    async with server(always(None)) as (probe, _):
        pass
    assert "/health" in await hang(probe, Watch(QUICK, NEVER._replace(every=30.0)))


async def test_failures_count_only_in_a_row() -> None:
    def answers(path: str, number: int) -> bytes | None:
        return b"200 OK" if number % 3 == 0 and number < 30 else b"500 Failed"

    async with server(by(answers)) as (probe, asked):
        await hang(probe, Watch(QUICK, NEVER._replace(every=30.0)))
    assert len(asked.paths) == 27 + 3


async def test_work_that_takes_its_time_is_no_hang() -> None:
    batch, computed = asyncio.Event(), asyncio.Event()

    async def answers(path: str, number: int) -> bytes | None:
        if path == WORK and number == 1:
            await batch.wait()
            computed.set()
        elif number == 20:
            batch.set()
        return b"200 OK"

    async with server(answers) as (probe, _):
        watching = asyncio.create_task(probe.hang(Watch(QUICK, Rule(0.0, 5.0, 1))))
        await asyncio.wait_for(computed.wait(), 5)
        assert not watching.done()
        watching.cancel()
        await asyncio.wait([watching])


@pytest.mark.parametrize("batch", [1, 256, 65_536])
def test_a_batch_may_take_as_long_as_the_slowest_engine_takes_for_it(batch: int) -> None:
    watch = watch_for(batch)
    assert watch.work.timeout >= batch * 0.5
    assert min(watch.work.failures, watch.health.failures) > 1
    assert watch.work.every >= 60
