"""Origins: TLS, IPv6 and names."""

from __future__ import annotations

import asyncio
import ssl

import pytest
import trustme

from macaron.engine.link import LinkKind
from macaron.engine.link.base import Limits
from macaron.errors import EngineError, EngineTimeout
from tests.engine.link.conftest import Connect
from tests.engine.link.peers import CHUNKED, PATIENCE, Peer, Servers, always_ok, chunk


@pytest.fixture(scope="session")
def serving_tls(authority: trustme.CA) -> ssl.SSLContext:
    """The server's side: a certificate for 127.0.0.1 and localhost."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return context


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """The client's side, which trusts the tests' authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_requests_and_streams_work_over_tls(
    servers: Servers, connect: Connect, serving_tls: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"abc"), chunk(b"x" * 600_000), chunk(b""))
        await always_ok(peer)

    server = await servers.start(script, tls=serving_tls)
    link = connect(f"https://127.0.0.1:{server.port}", tls=trusting)
    async with link.stream("POST", "/x", b"y" * 300_000) as reply:
        await asyncio.sleep(0.02)  # lets the buffer fill, so that reading pauses and goes on
        assert await reply.read() == b"abc" + b"x" * 600_000
    for _ in range(3):
        assert (await link.request("GET", "/x")).body == b"ok"
    assert len(server.peers) == 1


async def test_a_certificate_that_is_not_trusted_is_an_error(
    servers: Servers, connect: Connect, serving_tls: ssl.SSLContext
) -> None:
    server = await servers.start(always_ok, tls=serving_tls)
    link = connect(f"https://127.0.0.1:{server.port}", Limits(connections=1))
    for _ in range(2):
        with pytest.raises(EngineError, match=r"no TLS connection.*trust its certificate"):
            await link.request("GET", "/x")


async def test_a_certificate_for_another_name_is_an_error(
    servers: Servers, connect: Connect, authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.example").configure_cert(context)
    server = await servers.start(always_ok, tls=context)
    with pytest.raises(EngineError, match="no TLS connection"):
        await connect(f"https://127.0.0.1:{server.port}", tls=trusting).request("GET", "/x")


async def test_a_handshake_that_hangs_counts_as_connecting(
    servers: Servers, connect: Connect, trusting: ssl.SSLContext
) -> None:
    async def script(peer: Peer) -> None:
        await peer.gone()

    server = await servers.start(script)
    link = connect(f"https://127.0.0.1:{server.port}", Limits(connect=0.1), tls=trusting)
    with pytest.raises(EngineTimeout, match="limit `connect`"):
        await link.request("GET", "/x")


async def test_cancelling_closes_a_tls_connection(
    servers: Servers, connect: Connect, serving_tls: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    noticed = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(CHUNKED + chunk(b"abc"))
        await peer.gone()
        noticed.set()

    server = await servers.start(script, tls=serving_tls)
    async with connect(f"https://127.0.0.1:{server.port}", tls=trusting).stream("GET", "/x") as reply:
        await anext(reply.chunks())
    await asyncio.wait_for(noticed.wait(), PATIENCE)


@pytest.mark.asyncio(loop_factories=["uvloop"])  # asyncio's own TLS reports a cut connection like an ended one
@pytest.mark.parametrize("kind", ["native"])  # aiohttp takes any end of the connection for the body's end
async def test_a_body_without_length_cut_off_under_tls_is_an_error(
    servers: Servers, connect: Connect, kind: LinkKind, serving_tls: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\n\r\nabc")
        peer.writer.transport.abort()

    server = await servers.start(script, tls=serving_tls)
    with pytest.raises(EngineError, match="in the middle of a response"):
        await connect(f"https://127.0.0.1:{server.port}", tls=trusting).request("GET", "/x")


@pytest.mark.parametrize(("host", "listen"), [("[::1]", "::1"), ("localhost", "127.0.0.1")])
async def test_an_origin_may_be_ipv6_or_a_name(servers: Servers, connect: Connect, host: str, listen: str) -> None:
    server = await servers.start(always_ok, host=listen)
    assert (await connect(f"http://{host}:{server.port}").request("GET", "/x")).body == b"ok"
    assert f"host: {host}:{server.port}".encode() in server.requests[0].lower()


async def test_a_name_that_does_not_resolve_is_an_error(connect: Connect) -> None:
    with pytest.raises(EngineError, match="is the engine running"):
        await connect("http://" + "a" * 64 + ":8000").request("GET", "/x")
