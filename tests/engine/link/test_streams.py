"""Responses read as they come."""

from __future__ import annotations

import asyncio

import pytest

from macaron.engine.link.base import Limits
from macaron.errors import EngineError
from tests.engine.link.conftest import Connect
from tests.engine.link.peers import CHUNKED, PATIENCE, Peer, Servers, always_ok, chunk, collect


async def test_pieces_that_arrive_apart_are_delivered_apart_and_at_once(servers: Servers, connect: Connect) -> None:
    taken = asyncio.Semaphore(0)

    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED)
        for number in range(5):
            await taken.acquire()
            await peer.send(chunk(b"data: %d\n\n" % number))
        await taken.acquire()
        await peer.send(chunk(b""))

    server = await servers.start(script)
    got = []
    async with asyncio.timeout(PATIENCE), connect(server.origin).stream("POST", "/x", b"{}") as reply:
        assert reply.status == 200
        assert reply.headers["content-type"] == "text/event-stream"
        taken.release()
        async for piece in reply.chunks():
            got.append(piece)
            taken.release()
    assert got == [b"data: %d\n\n" % number for number in range(5)]


async def test_half_a_chunk_is_not_held_back(servers: Servers, connect: Connect) -> None:
    taken = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + b"6\r\nabc")
        await taken.wait()
        await peer.send(b"def\r\n" + chunk(b""))

    server = await servers.start(script)
    async with asyncio.timeout(PATIENCE), connect(server.origin).stream("POST", "/x", b"{}") as reply:
        pieces = reply.chunks()
        assert await anext(pieces) == b"abc"
        taken.set()
        assert await anext(pieces) == b"def"


async def test_pieces_that_arrive_together_come_together(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"a") + chunk(b"b") + chunk(b"c") + chunk(b""))

    server = await servers.start(script)
    async with connect(server.origin).stream("GET", "/x") as reply:
        assert [piece async for piece in reply.chunks()] == [b"abc"]


async def test_pieces_that_wait_for_the_reader_come_together(servers: Servers, connect: Connect) -> None:
    ended = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"a"))
        await peer.send(*[chunk(b"b")] * 20, b"0\r\n\r\n")
        peer.close()
        ended.set()

    server = await servers.start(script)
    async with connect(server.origin).stream("GET", "/x") as reply:
        await ended.wait()
        pieces = [piece async for piece in reply.chunks()]
    assert b"".join(pieces) == b"a" + b"b" * 20
    assert len(pieces) < 20


async def test_the_rest_can_be_read_at_once(servers: Servers, connect: Connect) -> None:
    taken = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"first"))
        await taken.wait()
        await peer.send(chunk(b"second"), chunk(b""))

    server = await servers.start(script)
    async with connect(server.origin).stream("GET", "/x") as reply:
        assert await anext(reply.chunks()) == b"first"
        taken.set()
        assert await reply.read() == b"second"


async def test_what_came_before_a_break_is_delivered_first(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"abc"))
        peer.close()

    server = await servers.start(script)
    got: list[bytes] = []
    with pytest.raises(EngineError, match="in the middle of a response"):
        await collect(connect(server.origin).stream("GET", "/x"), got)
    assert got == [b"abc"]


async def test_leaving_early_closes_the_connection(servers: Servers, connect: Connect) -> None:
    seen = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"abc"))
        await peer.gone()
        seen.set()

    server = await servers.start(script)
    async with connect(server.origin).stream("GET", "/x") as reply:
        assert await anext(reply.chunks()) == b"abc"
    async with asyncio.timeout(PATIENCE):
        await seen.wait()


async def test_a_stream_read_to_its_end_leaves_a_usable_connection(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"abc"), chunk(b""))
        await always_ok(peer)

    server = await servers.start(script)
    link = connect(server.origin)
    async with link.stream("GET", "/x") as reply:
        assert await reply.read() == b"abc"
    assert (await link.request("GET", "/x")).body == b"ok"
    assert len(server.peers) == 1


async def test_a_slow_reader_slows_the_engine_down(servers: Servers, connect: Connect) -> None:
    piece = chunk(b"x" * 65_536)
    total = 1_000
    stuck = asyncio.Event()
    sent = 0

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.answer(CHUNKED)
        for _ in range(total):
            peer.writer.write(piece)
            try:
                await asyncio.wait_for(asyncio.shield(peer.writer.drain()), 0.3)
            except TimeoutError:
                stuck.set()
                await peer.writer.drain()
            sent += 1
        await peer.send(chunk(b""))

    server = await servers.start(script)
    async with connect(server.origin).stream("GET", "/x") as reply:
        async with asyncio.timeout(PATIENCE):
            await stuck.wait()
        assert sent < total
        size = 0
        async for part in reply.chunks():
            assert len(part) < 2_000_000
            size += len(part)
    assert size == total * 65_536


async def test_a_slow_reader_is_not_an_idle_engine(servers: Servers, connect: Connect) -> None:
    body = b"x" * 3_000_000

    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body), body)

    server = await servers.start(script)
    async with connect(server.origin, Limits(idle=0.05)).stream("GET", "/x") as reply:
        await asyncio.sleep(0.2)  # four times the limit: time passing is what is tested
        assert await reply.read() == body


async def test_many_streams_do_not_disturb_each_other(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        while True:
            name = (await peer.receive()).split()[1][1:]
            await peer.send(CHUNKED)
            for _ in range(20):
                await peer.send(chunk(name))
                await asyncio.sleep(0)
            await peer.send(chunk(b""))

    server = await servers.start(script)
    link = connect(server.origin, Limits(connections=8))

    async def one(number: int) -> bytes:
        async with link.stream("GET", f"/{number}.") as reply:
            return await reply.read()

    bodies = await asyncio.gather(*(one(number) for number in range(30)))
    assert bodies == [f"{number}.".encode() * 20 for number in range(30)]
    assert len(server.peers) <= 8


async def test_pieces_are_poured_where_they_arrive_until_that_is_enough(servers: Servers, connect: Connect) -> None:
    taken = asyncio.Semaphore(0)

    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED)
        for number in range(4):
            await taken.acquire()
            await peer.send(chunk(b"%d" % number))
        await taken.acquire()
        await peer.send(chunk(b""))

    got: list[bytes] = []

    def take(piece: bytes) -> bool:
        got.append(piece)
        taken.release()
        return piece != b"1"

    server = await servers.start(script)
    async with asyncio.timeout(PATIENCE), connect(server.origin).stream("POST", "/x", b"{}") as reply:
        taken.release()
        assert await reply.pour(take) is True
        assert got == [b"0", b"1"]
        assert await reply.pour(take) is False
    assert got == [b"0", b"1", b"2", b"3"]


async def test_what_came_before_a_break_is_poured_first(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"abc"))
        peer.close()

    server = await servers.start(script)
    got: list[bytes] = []

    def take(piece: bytes) -> bool:
        got.append(piece)
        return True

    async with connect(server.origin).stream("GET", "/x") as reply:
        with pytest.raises(EngineError, match="in the middle of a response"):
            await reply.pour(take)
    assert got == [b"abc"]


@pytest.mark.parametrize("early", [True, False])
async def test_what_pouring_raises_reaches_the_reader(servers: Servers, connect: Connect, early: bool) -> None:
    go = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + (chunk(b"abc") if early else b""))
        await go.wait()
        await peer.send(b"" if early else chunk(b"abc"))

    def refuse(piece: bytes) -> bool:
        raise ValueError(piece)

    server = await servers.start(script)
    async with asyncio.timeout(PATIENCE), connect(server.origin).stream("GET", "/x") as reply:
        go.set()
        with pytest.raises(ValueError, match="abc"):
            await reply.pour(refuse)


async def test_nothing_is_poured_after_a_cancel(servers: Servers, connect: Connect) -> None:
    arrived, cancelled, sent = asyncio.Event(), asyncio.Event(), asyncio.Event()
    got: list[bytes] = []

    def take(piece: bytes) -> bool:
        got.append(piece)
        arrived.set()
        return True

    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"a"))
        await cancelled.wait()
        await peer.send(chunk(b"b"))
        sent.set()

    server = await servers.start(script)
    async with asyncio.timeout(PATIENCE), connect(server.origin).stream("GET", "/x") as reply:
        pouring = asyncio.create_task(reply.pour(take))
        await arrived.wait()
        pouring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pouring
        cancelled.set()
        await sent.wait()
        assert await anext(reply.chunks()) == b"b"
    assert got == [b"a"]
