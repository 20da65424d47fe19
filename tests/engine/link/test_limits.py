"""Time limits and size limits, each named in its error."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from macaron.engine.link import LinkKind
from macaron.engine.link.base import Limits
from macaron.errors import EngineError, EngineTimeout
from tests.engine.link.conftest import Connect
from tests.engine.link.peers import CHUNKED, PATIENCE, Peer, Servers, always_ok, chunk, collect


async def silent(peer: Peer) -> None:
    """Take requests and never answer."""
    await peer.receive()


async def test_a_slow_first_byte_times_out(servers: Servers, connect: Connect) -> None:
    server = await servers.start(silent)
    with pytest.raises(EngineTimeout, match=r"0\.05 s \(limit `first_byte`\)"):
        await connect(server.origin, Limits(first_byte=0.05)).request("POST", "/x", b"{}")
    await server.peers[0].left()
    assert len(server.requests) == 1


async def test_headers_that_trickle_count_as_slow(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\n")
        while True:
            await peer.send(b"a: b\r\n")
            await asyncio.sleep(0.01)

    server = await servers.start(script)
    with pytest.raises(EngineTimeout, match="first_byte"):
        await connect(server.origin, Limits(first_byte=0.1)).request("GET", "/x")


async def test_a_stalled_stream_times_out(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"abc"))

    server = await servers.start(script)
    got: list[bytes] = []
    with pytest.raises(EngineTimeout, match=r"0\.05 s in the middle of a response \(limit `idle`\)"):
        await collect(connect(server.origin, Limits(idle=0.05)).stream("GET", "/x"), got)
    assert got == [b"abc"]
    await server.peers[0].left()


async def test_a_stalled_whole_response_times_out(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")

    server = await servers.start(script)
    with pytest.raises(EngineTimeout, match="idle"):
        await connect(server.origin, Limits(idle=0.05)).request("GET", "/x")
    await server.peers[0].left()


async def test_the_idle_limit_is_between_pieces_not_in_all(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED)
        for _ in range(12):
            await asyncio.sleep(0.05)
            await peer.send(chunk(b"a"))
        await peer.send(chunk(b""))

    server = await servers.start(script)
    async with connect(server.origin, Limits(idle=0.4)).stream("GET", "/x") as reply:
        assert await reply.read() == b"a" * 12


async def test_a_request_has_a_time_limit_in_all(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED)
        while True:
            await peer.send(chunk(b"a"))
            await asyncio.sleep(0.01)

    server = await servers.start(script)
    with pytest.raises(EngineTimeout, match=r"0\.15 s \(the request's `timeout`\)"):
        await connect(server.origin).request("GET", "/x", timeout=0.15)
    await server.peers[0].left()


async def test_a_connection_that_timed_out_is_not_used_again(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        if len(peer.server.peers) == 1:
            await silent(peer)
        else:
            await always_ok(peer)

    server = await servers.start(script)
    link = connect(server.origin, Limits(connections=1))
    with pytest.raises(EngineTimeout):
        await link.request("GET", "/x", timeout=0.05)
    assert (await link.request("GET", "/x", timeout=PATIENCE)).body == b"ok"


@pytest.fixture
def full_backlog() -> Iterator[int]:
    """A port on which connections are never accepted and the kernel takes no more."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    port = listener.getsockname()[1]
    fillers = []
    for _ in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.1", port))
        fillers.append(filler)
    yield port
    for one in (*fillers, listener):
        one.close()


async def test_a_slow_connect_times_out(connect: Connect, full_backlog: int) -> None:
    link = connect(f"http://127.0.0.1:{full_backlog}", Limits(connect=0.1))
    with pytest.raises(EngineTimeout, match=r"0\.1 s \(limit `connect`\); is the engine running\?"):
        await link.request("GET", "/x")


async def test_a_slow_connect_counts_into_the_timeout(connect: Connect, full_backlog: int) -> None:
    link = connect(f"http://127.0.0.1:{full_backlog}", Limits(connections=1))
    for _ in range(2):
        with pytest.raises(EngineTimeout, match=r"0\.05 s \(the request's `timeout`\)"):
            await link.request("GET", "/x", timeout=0.05)


@pytest.mark.parametrize("kind", ["native"])  # aiohttp waits for the connect limit
async def test_closing_ends_a_connect_that_hangs(connect: Connect, full_backlog: int, kind: LinkKind) -> None:
    link = connect(f"http://127.0.0.1:{full_backlog}")
    task = asyncio.create_task(link.request("GET", "/x"))
    await asyncio.sleep(0.01)
    await link.close()
    with pytest.raises(EngineError):
        await asyncio.wait_for(task, PATIENCE)


async def test_a_refused_connection_names_the_address_and_the_remedy(connect: Connect) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=rf"127\.0\.0\.1:{port}.*is the engine running\?"):
            await connect(f"http://127.0.0.1:{port}").request("GET", "/x")


HUGE = {
    "one value": b"HTTP/1.1 200 OK\r\nx: " + b"a" * 5_000 + b"\r\ncontent-length: 0\r\n\r\n",
    "one value that never ends": b"HTTP/1.1 200 OK\r\nx: " + b"a" * 5_000,
    "one name": b"HTTP/1.1 200 OK\r\n" + b"a" * 5_000,
    "the reason": b"HTTP/1.1 200 " + b"a" * 5_000,
}
NATIVE_HUGE = {
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"x: abcdefgh\r\n" * 300 + b"content-length: 0\r\n\r\n",
    "many interim responses": b"HTTP/1.1 100 Continue\r\n\r\n" * 300,
    "a chunk extension": CHUNKED + b"1;" + b"a" * 5_000,
    "trailers": CHUNKED + b"0\r\nx: " + b"a" * 5_000,
    "many trailers": CHUNKED + b"0\r\n" + b"x: abcdefgh\r\n" * 300,
}


@pytest.mark.parametrize("sent", HUGE.values(), ids=HUGE.keys())
async def test_headers_are_bounded(servers: Servers, connect: Connect, sent: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(sent)

    server = await servers.start(script)
    with pytest.raises(EngineError) as caught:
        await connect(server.origin, Limits(headers=2_000, first_byte=2.0, idle=2.0)).request("GET", "/x")
    assert not isinstance(caught.value, EngineTimeout)
    await server.peers[0].left()


@pytest.mark.parametrize("kind", ["native"])  # aiohttp bounds each header and their number, not their sum
@pytest.mark.parametrize("sent", NATIVE_HUGE.values(), ids=NATIVE_HUGE.keys())
async def test_all_that_is_not_body_is_bounded_in_sum(
    servers: Servers, connect: Connect, kind: LinkKind, sent: bytes
) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(sent)

    server = await servers.start(script)
    with pytest.raises(EngineError, match=r"2000 bytes \(limit `headers`\)"):
        await connect(server.origin, Limits(headers=2_000, first_byte=2.0, idle=2.0)).request("GET", "/x")


@pytest.mark.parametrize("framing", [b"content-length: 5000\r\n", b""], ids=["length", "no length"])
async def test_a_body_read_whole_is_bounded(servers: Servers, connect: Connect, framing: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n" + b"a" * 4_000)

    server = await servers.start(script)
    with pytest.raises(EngineError, match=r"longer than 3000 bytes \(limit `body`\)"):
        await connect(server.origin, Limits(body=3_000, idle=2.0)).request("GET", "/x")
    await server.peers[0].left()


async def test_the_rest_of_a_stream_is_bounded(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED)
        while True:
            await peer.send(chunk(b"a" * 1_000))

    server = await servers.start(script)
    async with connect(server.origin, Limits(body=3_000)).stream("GET", "/x") as reply:
        with pytest.raises(EngineError, match="limit `body`"):
            await reply.read()
    await server.peers[0].left()


async def test_a_streamed_body_may_be_longer_than_the_limit(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"a" * 4_000) + chunk(b""))

    server = await servers.start(script)
    async with connect(server.origin, Limits(body=3_000)).stream("GET", "/x") as reply:
        assert sum([len(piece) async for piece in reply.chunks()]) == 4_000
