"""Cancelling at any moment closes the connection, which is how an engine notices, and frees its place."""

from __future__ import annotations

import asyncio
import random

import pytest

from macaron.engine.link.base import Limits, Link
from macaron.errors import EngineError
from tests.engine.link.conftest import Connect
from tests.engine.link.peers import CHUNKED, OK, PATIENCE, Peer, Servers, chunk


async def cancelled(task: asyncio.Task[object]) -> None:
    """Cancel and see that the cancellation comes out."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)


async def read_all(link: Link, path: str) -> bytes:
    """A stream, read to its end."""
    async with link.stream("POST", path, b"{}") as reply:
        return await reply.read()


async def test_cancelling_before_the_response_closes_the_connection(servers: Servers, connect: Connect) -> None:
    waiting, noticed = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.receive()
        waiting.set()
        await peer.gone()
        noticed.set()

    server = await servers.start(script)
    task = asyncio.create_task(connect(server.origin).request("POST", "/x", b"{}"))
    await waiting.wait()
    await cancelled(task)
    await asyncio.wait_for(noticed.wait(), PATIENCE)


async def test_cancelling_in_a_stream_closes_the_connection(servers: Servers, connect: Connect) -> None:
    started, noticed = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"abc"))
        await peer.gone()
        noticed.set()

    async def read() -> None:
        async with connect(server.origin).stream("POST", "/x", b"{}") as reply:
            async for _ in reply.chunks():
                started.set()

    server = await servers.start(script)
    task = asyncio.create_task(read())
    await started.wait()
    await cancelled(task)
    await asyncio.wait_for(noticed.wait(), PATIENCE)


async def test_cancelling_a_reader_that_is_behind_closes_the_connection(servers: Servers, connect: Connect) -> None:
    started, noticed = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED)
        try:
            while True:
                await peer.send(chunk(b"a" * 100_000))
        finally:
            noticed.set()

    async def read() -> None:
        async with connect(server.origin).stream("POST", "/x", b"{}") as reply:
            await anext(reply.chunks())
            started.set()
            await asyncio.Event().wait()

    server = await servers.start(script)
    task = asyncio.create_task(read())
    await started.wait()
    await cancelled(task)
    await asyncio.wait_for(noticed.wait(), PATIENCE)


async def test_a_cancelled_reader_leaves_the_stream_readable(servers: Servers, connect: Connect) -> None:
    go = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED)
        await go.wait()
        await peer.send(chunk(b"abc"), chunk(b""))

    server = await servers.start(script)
    async with connect(server.origin).stream("GET", "/x") as reply:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(reply.chunks()), 0.02)
        go.set()
        assert await reply.read() == b"abc"


async def test_cancelling_at_any_step_leaks_nothing(servers: Servers, connect: Connect) -> None:
    """With two places, forty requests cancelled at forty moments, and the places still there afterwards."""

    async def script(peer: Peer) -> None:
        while True:
            if b"/whole" in await peer.receive():
                await peer.send(OK)
            else:
                await peer.send(CHUNKED)
                await peer.send(*[chunk(b"abc")] * 3, chunk(b""))

    server = await servers.start(script)
    link = connect(server.origin, Limits(connections=2))
    chance = random.Random(7)
    for steps in range(40):
        calls = (link.request("POST", "/whole", b"{}"), read_all(link, "/stream"), link.request("GET", "/whole"))
        tasks = [asyncio.ensure_future(call) for call in calls]
        for _ in range(steps):
            await asyncio.sleep(0)
        for task in tasks:
            if chance.random() < 0.7:
                task.cancel()
        results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)
        assert not [result for result in results if isinstance(result, Exception)]
    both = await asyncio.wait_for(asyncio.gather(read_all(link, "/stream"), read_all(link, "/stream")), PATIENCE)
    assert list(both) == [b"abcabcabc"] * 2


async def test_a_reader_left_behind_by_its_context_gets_an_error(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED)

    server = await servers.start(script)
    async with connect(server.origin).stream("GET", "/x") as reply:
        reader = asyncio.ensure_future(reply.read())
        await asyncio.sleep(0)
    with pytest.raises(EngineError):
        await asyncio.wait_for(reader, PATIENCE)
