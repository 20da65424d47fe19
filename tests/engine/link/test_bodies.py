"""Responses read whole: every framing, and every way for one to be wrong."""

from __future__ import annotations

import pytest

from macaron.engine.link import LinkKind
from macaron.engine.link.base import Limits
from macaron.errors import EngineError
from tests.engine.link.conftest import Connect
from tests.engine.link.peers import CHUNKED, OK, Peer, Script, Servers, chunk


def answering(*pieces: bytes, close: bool = False) -> Script:
    """A script that answers one request, and may close after it."""

    async def script(peer: Peer) -> None:
        await peer.answer(*pieces)
        if close:
            peer.close()

    return script


async def test_a_length_delimits_the_body(servers: Servers, connect: Connect) -> None:
    server = await servers.start(answering(b"HTTP/1.1 201 Created\r\nContent-Length: 3\r\nX-A:\r\nX-B: 1\r\n\r\nabc"))
    reply = await connect(server.origin).request("POST", "/x", b"{}")
    assert (reply.status, reply.body) == (201, b"abc")
    assert reply.headers == {"content-length": "3", "x-a": "", "x-b": "1"}


async def test_the_request_arrives_as_it_was_given(servers: Servers, connect: Connect) -> None:
    server = await servers.start(answering(OK))
    link = connect(server.origin, headers={"Authorization": "Bearer k", "X-Same": "constant"})
    await link.request("POST", "/v1/x?a=%20b", b'{"a":1}', {"content-type": "application/json", "x-same": "own"})
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    line, *rest = head.decode().split("\r\n")
    headers = sorted(header.lower() for header in rest)
    assert (line, body) == ("POST /v1/x?a=%20b HTTP/1.1", b'{"a":1}')
    assert headers == [
        "accept-encoding: identity",
        "authorization: bearer k",
        "content-length: 7",
        "content-type: application/json",
        f"host: 127.0.0.1:{server.port}",
        "x-same: own",
    ]


async def test_a_body_of_several_megabytes_is_sent_and_received(servers: Servers, connect: Connect) -> None:
    body = bytes(range(256)) * 12_000

    async def echo(peer: Peer) -> None:
        request = await peer.receive()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body), request[-len(body) :])

    server = await servers.start(echo)
    assert (await connect(server.origin).request("POST", "/x", body)).body == body


async def test_a_get_has_no_length(servers: Servers, connect: Connect) -> None:
    server = await servers.start(answering(OK))
    await connect(server.origin).request("GET", "/x")
    assert b"content-length" not in server.requests[0].lower()


async def test_a_post_without_body_says_so(servers: Servers, connect: Connect) -> None:
    server = await servers.start(answering(OK))
    await connect(server.origin).request("POST", "/x")
    assert b"content-length: 0\r\n" in server.requests[0].lower()


async def test_chunks_are_joined(servers: Servers, connect: Connect) -> None:
    server = await servers.start(answering(CHUNKED + chunk(b"a" * 20) + b"2;ext=1\r\nbc\r\n" + b"0\r\nx-t: 1\r\n\r\n"))
    reply = await connect(server.origin).request("GET", "/x")
    assert reply.body == b"a" * 20 + b"bc"
    assert "x-t" not in reply.headers


async def test_a_body_without_length_ends_with_the_connection(servers: Servers, connect: Connect) -> None:
    server = await servers.start(answering(b"HTTP/1.1 200 OK\r\n\r\nab", b"cd", close=True))
    assert (await connect(server.origin).request("GET", "/x")).body == b"abcd"


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_a_status_without_body_ends_at_its_headers(servers: Servers, connect: Connect, status: bytes) -> None:
    server = await servers.start(answering(b"HTTP/1.1 " + status + b"\r\n\r\n"))
    reply = await connect(server.origin).request("GET", "/x")
    assert (reply.status, reply.body) == (int(status[:3]), b"")


async def test_the_answer_to_head_has_a_length_but_no_body(servers: Servers, connect: Connect) -> None:
    server = await servers.start(answering(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"))
    reply = await connect(server.origin).request("HEAD", "/x")
    assert (reply.headers["content-length"], reply.body) == ("10", b"")


async def test_interim_responses_are_skipped(servers: Servers, connect: Connect) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    server = await servers.start(answering(interim, interim + OK))
    reply = await connect(server.origin).request("POST", "/x", b"{}")
    assert (reply.status, reply.body) == (200, b"ok")


async def test_headers_of_an_interim_response_are_not_the_final_ones(servers: Servers, connect: Connect) -> None:
    server = await servers.start(answering(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK))
    reply = await connect(server.origin).request("GET", "/x")
    assert reply.headers == {"content-length": "2"}


async def test_repeated_headers_are_joined(servers: Servers, connect: Connect) -> None:
    server = await servers.start(answering(b"HTTP/1.1 200 OK\r\nx-a: 1\r\nX-A: 2\r\ncontent-length: 0\r\n\r\n"))
    assert (await connect(server.origin).request("GET", "/x")).headers["x-a"] == "1, 2"


async def test_an_error_status_is_an_answer(servers: Servers, connect: Connect) -> None:
    server = await servers.start(answering(b"HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\nfail"))
    reply = await connect(server.origin).request("GET", "/x")
    assert (reply.status, reply.body) == (500, b"fail")


async def test_a_redirect_is_an_answer(servers: Servers, connect: Connect) -> None:
    server = await servers.start(
        answering(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n")
    )
    assert (await connect(server.origin).request("GET", "/x")).status == 302


BROKEN_OFF = {
    "before the status line": b"",
    "in the status line": b"HTTP/1.1 2",
    "in the headers": b"HTTP/1.1 200 OK\r\ncontent-le",
    "in a body with a length": b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
    "in a chunk": CHUNKED + b"a\r\nabc",
    "between chunks": CHUNKED + chunk(b"abc"),
    "before the last line end": CHUNKED + chunk(b"abc") + b"0\r\n",
}


@pytest.mark.parametrize("sent", BROKEN_OFF.values(), ids=BROKEN_OFF.keys())
async def test_a_response_that_breaks_off_is_an_error(servers: Servers, connect: Connect, sent: bytes) -> None:
    server = await servers.start(answering(sent, close=True))
    with pytest.raises(EngineError, match="closed the connection") as caught:
        await connect(server.origin).request("POST", "/x", b"{}")
    assert type(caught.value) is EngineError
    assert len(server.requests) == 1


async def test_a_half_closed_connection_ends_the_response(servers: Servers, connect: Connect) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")
        peer.end()

    server = await servers.start(script)
    with pytest.raises(EngineError, match="closed the connection in the middle of a response"):
        await connect(server.origin).request("GET", "/x")
    await server.peers[0].left()


GARBAGE = {
    "not HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "bad status": b"HTTP/1.1 abc OK\r\ncontent-length: 0\r\n\r\n",
    "bad length": b"HTTP/1.1 200 OK\r\ncontent-length: 1x\r\n\r\nab",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "length and chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
    "bad chunk size": CHUNKED + b"xyz\r\n",
    "too large a chunk size": CHUNKED + b"f" * 40 + b"\r\n",
    "chunk longer than its size": CHUNKED + b"2\r\nabcdef\r\n",
    "header without a name": b"HTTP/1.1 200 OK\r\n: x\r\ncontent-length: 0\r\n\r\n",
}


@pytest.mark.parametrize("sent", GARBAGE.values(), ids=GARBAGE.keys())
async def test_garbage_is_an_error(servers: Servers, connect: Connect, sent: bytes) -> None:
    server = await servers.start(answering(sent))
    with pytest.raises(EngineError):
        await connect(server.origin, Limits(first_byte=2.0, idle=2.0)).request("GET", "/x")
    await server.peers[0].left()


@pytest.mark.parametrize("kind", ["native"])  # aiohttp undoes some of these codings and passes others through
@pytest.mark.parametrize("coding", [b"gzip, chunked", b"identity"])
async def test_another_transfer_coding_than_chunked_is_an_error(
    servers: Servers, connect: Connect, kind: LinkKind, coding: bytes
) -> None:
    server = await servers.start(answering(b"HTTP/1.1 200 OK\r\ntransfer-encoding: " + coding + b"\r\n\r\n0\r\n\r\n"))
    with pytest.raises(EngineError, match="only chunked"):
        await connect(server.origin).request("GET", "/x")


@pytest.mark.parametrize("kind", ["native"])  # aiohttp hands the upgraded connection out
async def test_a_switch_of_protocols_is_an_error(servers: Servers, connect: Connect, kind: LinkKind) -> None:
    server = await servers.start(
        answering(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nabc")
    )
    with pytest.raises(EngineError, match="switched protocols"):
        await connect(server.origin).request("GET", "/x")


async def test_a_compressed_body_is_not_unpacked(servers: Servers, connect: Connect) -> None:
    server = await servers.start(
        answering(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\n\x1f\x8b\x08")
    )
    assert (await connect(server.origin).request("GET", "/x")).body == b"\x1f\x8b\x08"
