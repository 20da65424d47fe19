"""However the network cuts a response up, it stays the same response."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.engine.link.base import Limits
from macaron.engine.link.connection import Connection
from macaron.engine.link.exchange import Budget, Call, Exchange
from tests.engine.link.conftest import Connect
from tests.engine.link.peers import CHUNKED, OK, Peer, Servers, chunk

RESPONSE = (
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nx-a: 1\r\ntransfer-encoding: chunked\r\n\r\n"
    b"3;q=1\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nx-t: 1\r\n\r\n"
)
BODY = b"abc0123456789abcdef"


class Keeper:
    """Watches nothing."""

    def __init__(self) -> None:
        self.limits = Limits()
        self.peer = "test"

    def opened(self, connection: Connection) -> None:
        """Nothing to keep."""

    def lost(self, connection: Connection) -> None:
        """Nothing was kept."""

    def send(self, transport: asyncio.Transport, wire: bytes) -> None:
        """At once."""
        transport.write(wire)

    def watch(self, deadline: float) -> None:
        """No timer."""


async def received(pieces: Sequence[bytes], whole: bool) -> tuple[Exchange, bool]:
    """The exchange after exactly these pieces arrived, and whether its connection can be used again."""
    loop = asyncio.get_running_loop()
    near, far = socket.socketpair()
    with far:
        connection = Connection(loop, Keeper())
        await loop.create_connection(lambda: connection, sock=near)
        exchange, arrival = connection.send(Call(b"GET / HTTP/1.1\r\n\r\n", whole, False, Budget.of(None, 0.0)))
        for piece in pieces:
            connection.data_received(piece)
        await asyncio.wait_for(arrival, 1.0)
        reusable = connection.finish()
        connection.abort()
        await asyncio.sleep(0)
    return exchange, reusable


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """The data in pieces, none of them empty."""
    edges = sorted({0, len(data), *(place for place in places if place < len(data))})
    return [data[start:end] for start, end in pairwise(edges)]


@pytest.mark.parametrize("place", range(1, len(RESPONSE)))
def test_a_cut_at_any_byte_changes_nothing(place: int) -> None:
    exchange, reusable = asyncio.run(received(cut(RESPONSE, [place]), whole=True))
    assert (exchange.status, exchange.take(), reusable) == (200, BODY, True)
    assert exchange.headers == {"x-a": "1", "transfer-encoding": "chunked"}


@pytest.mark.parametrize("whole", [True, False])
def test_thousands_of_tiny_chunks_are_one_body(whole: bool) -> None:
    body = bytes(number % 251 for number in range(5_000))
    response = CHUNKED + b"".join(chunk(bytes([byte])) for byte in body) + chunk(b"")
    exchange, reusable = asyncio.run(received(cut(response, range(0, len(response), 777)), whole))
    assert (exchange.take() == body, reusable) == (True, True)


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    places=st.lists(st.integers(1, 600), max_size=40),
    whole=st.booleans(),
)
def test_any_cuts_of_any_chunked_response_give_the_same_body(
    parts: list[bytes], places: list[int], whole: bool
) -> None:
    response = CHUNKED + b"".join(map(chunk, parts)) + chunk(b"")
    exchange, reusable = asyncio.run(received(cut(response, places), whole))
    assert (exchange.complete, exchange.failure, reusable) == (True, None, True)
    assert exchange.take() == b"".join(parts)


@settings(max_examples=100, deadline=None)
@given(
    pieces=st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=5), start=st.sampled_from([b"", OK[:17]])
)
def test_any_bytes_at_all_end_in_a_response_or_an_error(pieces: list[bytes], start: bytes) -> None:
    async def run() -> Exchange:
        loop = asyncio.get_running_loop()
        near, far = socket.socketpair()
        with far:
            connection = Connection(loop, Keeper())
            await loop.create_connection(lambda: connection, sock=near)
            exchange, arrival = connection.send(Call(b"", True, False, Budget.of(None, 0.0)))
            for piece in (start, *pieces):
                if piece:
                    connection.data_received(piece)
            connection.eof_received()
            await asyncio.wait_for(arrival, 1.0)
            connection.abort()
            await asyncio.sleep(0)
        return exchange

    exchange = asyncio.run(run())
    assert exchange.complete != (exchange.failure is not None)


async def test_a_response_sent_byte_by_byte_is_read(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.receive()
        for number in range(len(RESPONSE)):
            await peer.send(RESPONSE[number : number + 1])
            await asyncio.sleep(0)

    server = await servers.start(script)
    link = connect(server.origin)
    assert (await link.request("GET", "/x")).body == BODY
