"""Which connection a request travels on."""

from __future__ import annotations

import asyncio

import pytest

from macaron.engine.link import LinkKind
from macaron.engine.link.base import Limits
from macaron.errors import EngineError, EngineTimeout
from tests.engine.link.conftest import Connect
from tests.engine.link.peers import CHUNKED, OK, PATIENCE, Peer, Server, Servers, always_ok, chunk


async def test_many_requests_one_after_another_share_a_connection(servers: Servers, connect: Connect) -> None:
    server = await servers.start(always_ok)
    link = connect(server.origin)
    for _ in range(200):
        assert (await link.request("POST", "/x", b"{}")).body == b"ok"
    assert len(server.peers) == 1


@pytest.mark.parametrize("kind", ["native"])  # aiohttp uses the one that is idle longest
async def test_the_connection_used_last_is_used_next(servers: Servers, connect: Connect, kind: LinkKind) -> None:
    both = asyncio.Barrier(2)

    async def script(peer: Peer) -> None:
        number = len(peer.server.peers)
        await peer.receive()
        await both.wait()
        if number == 2:
            await asyncio.sleep(0.05)  # the second connection becomes idle last
        await peer.send(OK)
        while True:
            await peer.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%d" % number)

    server = await servers.start(script)
    link = connect(server.origin)
    await asyncio.gather(link.request("GET", "/a"), link.request("GET", "/b"))
    assert [(await link.request("GET", "/c")).body for _ in range(3)] == [b"2"] * 3


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\nconnection: close", b"HTTP/1.0 200 OK"], ids=["connection close", "HTTP/1.0"]
)
async def test_a_connection_the_engine_ends_is_not_used_again(servers: Servers, connect: Connect, head: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(head + b"\r\ncontent-length: 2\r\n\r\nok")

    server = await servers.start(script)
    link = connect(server.origin)
    for _ in range(2):
        assert (await link.request("GET", "/x")).body == b"ok"
    assert len(server.peers) == 2


async def test_an_old_connection_is_not_trusted(servers: Servers, connect: Connect) -> None:
    server = await servers.start(always_ok)
    link = connect(server.origin, Limits(keep_alive=0.05))
    await link.request("GET", "/x")
    await server.peers[0].left()
    await link.request("GET", "/x")
    assert len(server.peers) == 2


async def test_bytes_after_a_response_end_the_connection(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(OK + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")

    server = await servers.start(script)
    link = connect(server.origin)
    for _ in range(2):
        assert (await link.request("GET", "/x")).body == b"ok"
    assert len(server.peers) == 2


@pytest.mark.parametrize("kind", ["native"])  # aiohttp takes them for the answer to the next request
async def test_bytes_on_an_idle_connection_end_it(servers: Servers, connect: Connect, kind: LinkKind) -> None:
    asked = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(OK)
        await asked.wait()
        await peer.send(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 4\r\n\r\nevil")

    server = await servers.start(script)
    link = connect(server.origin)
    await link.request("GET", "/x")
    asked.set()
    await server.peers[0].left()
    assert (await link.request("GET", "/x")).body == b"ok"
    assert len(server.peers) == 2


async def test_a_request_is_sent_again_when_its_kept_connection_was_closed(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(OK)
        if len(peer.server.peers) == 1:
            await peer.receive()
            peer.close()
        else:
            await always_ok(peer)

    server = await servers.start(script)
    link = connect(server.origin)
    for _ in range(2):
        assert (await link.request("POST", "/x", b"{}")).body == b"ok"
    assert (len(server.peers), len(server.requests)) == (2, 3)


async def test_a_streamed_request_is_sent_again_too(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        if len(peer.server.peers) == 1:
            await peer.answer(OK)
            await peer.receive()
            peer.writer.transport.abort()
        else:
            await peer.answer(CHUNKED + chunk(b"again") + chunk(b""))

    server = await servers.start(script)
    link = connect(server.origin)
    await link.request("GET", "/x")
    async with link.stream("POST", "/x", b"{}") as reply:
        assert await reply.read() == b"again"


async def test_a_request_is_sent_again_only_once(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        if len(peer.server.peers) == 1:
            await peer.answer(OK)
        await peer.receive()
        peer.close()

    server = await servers.start(script)
    link = connect(server.origin)
    await link.request("POST", "/x", b"{}")
    with pytest.raises(EngineError, match="closed the connection before it answered"):
        await link.request("POST", "/x", b"{}")
    assert len(server.requests) == 3


async def test_a_request_goes_again_on_a_fresh_connection_not_another_kept_one(
    servers: Servers, connect: Connect
) -> None:
    both = asyncio.Barrier(2)

    async def script(peer: Peer) -> None:
        if len(peer.server.peers) <= 2:
            await peer.receive()
            await both.wait()
            await peer.send(OK)
            await peer.receive()
            peer.close()
        else:
            await always_ok(peer)

    server = await servers.start(script)
    link = connect(server.origin)
    await asyncio.gather(link.request("GET", "/a"), link.request("GET", "/b"))
    assert (await link.request("POST", "/c", b"{}")).body == b"ok"
    assert (len(server.peers), len(server.requests)) == (3, 4)


async def test_a_request_whose_response_had_begun_is_not_sent_again(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(OK)
        await peer.answer(b"HTTP/1.1 2")
        peer.close()

    server = await servers.start(script)
    link = connect(server.origin)
    await link.request("POST", "/x", b"{}")
    with pytest.raises(EngineError, match="closed the connection"):
        await link.request("POST", "/x", b"{}")
    assert len(server.requests) == 2


async def test_a_request_on_a_fresh_connection_is_not_sent_again(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.receive()
        peer.close()

    server = await servers.start(script)
    with pytest.raises(EngineError, match="before it answered"):
        await connect(server.origin).request("POST", "/x", b"{}")
    assert len(server.requests) == 1


@pytest.mark.parametrize("cap", [1, 2])
async def test_no_more_connections_than_the_cap(servers: Servers, connect: Connect, cap: int) -> None:
    server = await servers.start(always_ok)
    link = connect(server.origin, Limits(connections=cap))
    await asyncio.gather(*(link.request("GET", f"/{number}") for number in range(40)))
    assert len(server.peers) <= cap
    assert sorted(paths(server)) == list(range(40))


async def test_waiters_go_in_order(servers: Servers, connect: Connect) -> None:
    server = await servers.start(always_ok)
    link = connect(server.origin, Limits(connections=1))
    await asyncio.gather(*(link.request("GET", f"/{number}") for number in range(40)))
    assert paths(server) == list(range(40))


def paths(server: Server) -> list[int]:
    """The numbers that were asked for, as they came."""
    return [int(request.split()[1][1:]) for request in server.requests]


async def test_a_cancelled_waiter_does_not_take_the_connection_with_it(servers: Servers, connect: Connect) -> None:
    release = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.receive()
        await release.wait()
        await peer.send(OK)
        await always_ok(peer)

    server = await servers.start(script)
    link = connect(server.origin, Limits(connections=1))
    tasks = [asyncio.create_task(link.request("GET", f"/{number}")) for number in range(4)]
    await server.first_request()
    tasks[1].cancel()
    release.set()
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)
    assert isinstance(results[1], asyncio.CancelledError)
    assert [request.split()[1] for request in server.requests] == [b"/0", b"/2", b"/3"]


async def test_a_waiter_cancelled_at_its_turn_passes_it_on(servers: Servers, connect: Connect) -> None:
    server = await servers.start(always_ok)
    link = connect(server.origin, Limits(connections=1))
    second: asyncio.Task[object]

    async def first() -> None:
        await link.request("GET", "/0")
        second.cancel()  # in the very step in which the connection was handed to it

    tasks = [asyncio.create_task(first())]
    await asyncio.sleep(0)
    second = asyncio.create_task(link.request("GET", "/1"))
    tasks.append(asyncio.create_task(_ignore(link.request("GET", "/2"))))
    await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
    with pytest.raises(asyncio.CancelledError):
        await second
    assert [request.split()[1] for request in server.requests] == [b"/0", b"/2"]


async def _ignore(awaitable: object) -> None:
    assert asyncio.iscoroutine(awaitable)
    await awaitable


async def test_waiting_for_a_connection_counts_into_the_timeout(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED)

    server = await servers.start(script)
    link = connect(server.origin, Limits(connections=1))
    async with link.stream("GET", "/x"):
        with pytest.raises(EngineTimeout, match=r"0\.05 s"):
            await link.request("GET", "/y", timeout=0.05)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "sent", [b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"], ids=["garbage", "truncated"]
)
async def test_a_failed_request_frees_its_place(servers: Servers, connect: Connect, sent: bytes) -> None:
    async def script(peer: Peer) -> None:
        if len(peer.server.peers) <= 2:
            await peer.answer(sent)
            peer.close()
        else:
            await always_ok(peer)

    server = await servers.start(script)
    link = connect(server.origin, Limits(connections=1))
    for _ in range(2):
        with pytest.raises(EngineError):
            await link.request("GET", "/x")
    assert (await link.request("GET", "/x")).body == b"ok"


async def test_an_early_refusal_of_a_large_request_is_read(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nbig")

    server = await servers.start(script)
    link = connect(server.origin)
    reply = await link.request("POST", "/x", b"x" * 30_000_000)
    assert (reply.status, reply.body) == (413, b"big")
    await server.peers[0].left()


async def test_closing_fails_what_is_under_way_and_what_comes_later(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.receive()

    server = await servers.start(script)
    link = connect(server.origin, Limits(connections=1))
    tasks = [asyncio.create_task(link.request("GET", "/x")) for _ in range(2)]
    await server.first_request()
    await asyncio.wait_for(link.close(), PATIENCE)
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)
    assert [type(result) for result in results] == [EngineError, EngineError]
    await server.peers[0].left()
    with pytest.raises(EngineError, match="link to the engine is closed"):
        await link.request("GET", "/x")
    assert len(server.requests) == 1


async def test_closing_ends_an_open_stream(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"a"))

    server = await servers.start(script)
    link = connect(server.origin)
    async with link.stream("GET", "/x") as reply:
        pieces = reply.chunks()
        assert await anext(pieces) == b"a"
        await asyncio.wait_for(link.close(), PATIENCE)
        with pytest.raises(EngineError):
            await asyncio.wait_for(anext(pieces), PATIENCE)


async def test_a_link_that_was_never_used_can_be_closed(connect: Connect) -> None:
    link = connect("http://127.0.0.1:9")
    await link.close()
    with pytest.raises(EngineError, match="closed"):
        await link.request("GET", "/x")
