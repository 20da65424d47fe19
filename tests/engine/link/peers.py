"""A real TCP server that says exactly the bytes a test tells it to, and notices what the link does."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from macaron.engine.link.base import StreamReply
from tests.engine.accepted import all_connected_begin

PATIENCE = 5.0
"""Seconds after which something that must happen counts as not happening."""

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; empty data is its end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Peer:
    """The server's side of one connection."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server = server
        self.reader = reader
        self._left = asyncio.Event()
        self.writer = writer

    async def receive(self) -> bytes:
        """One whole request, head and body.

        Raises:
            asyncio.IncompleteReadError: the link closed the connection instead.
        """
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        request = head + await self.reader.readexactly(length)
        self.server.requests.append(request)
        self.server.asked.set()
        return request

    async def send(self, *pieces: bytes) -> None:
        """Write pieces one after another.

        Raises:
            ConnectionResetError: the link has closed the connection.
        """
        for piece in pieces:
            # uvloop answers a write on a transport that a reset has closed with a RuntimeError.
            if self.writer.is_closing():
                raise ConnectionResetError("the link has closed the connection")
            self.writer.write(piece)
            await self.writer.drain()

    async def answer(self, *pieces: bytes) -> None:
        """Read a request and send a response."""
        await self.receive()
        await self.send(*pieces)

    def end(self) -> None:
        """Send no more; the other direction stays open."""
        self.writer.write_eof()

    def close(self) -> None:
        """Close both directions."""
        self.writer.close()

    async def gone(self) -> None:
        """Wait until the link has closed the connection."""
        async with asyncio.timeout(PATIENCE):
            try:
                while await self.reader.read(65_536):
                    pass
            except ConnectionError:
                pass
        self.leave()

    def leave(self) -> None:
        """Note that the link has closed the connection."""
        self._left.set()

    async def left(self) -> None:
        """The same for a test, while a script reads."""
        await asyncio.wait_for(self._left.wait(), PATIENCE)


Script = Callable[[Peer], Awaitable[None]]


class Server:
    """Runs one script for each connection; `peers` are the connections so far, `requests` what they carried."""

    def __init__(self, script: Script) -> None:
        self.peers: list[Peer] = []
        self.requests: list[bytes] = []
        self.failures: list[BaseException] = []
        self.asked = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self._script = script

    @property
    def origin(self) -> str:
        """What a link connects to."""
        return f"http://127.0.0.1:{self.port}"

    async def first_request(self) -> None:
        """Wait until a request has come."""
        await asyncio.wait_for(self.asked.wait(), PATIENCE)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Run the script on one connection, then wait for the link to close it."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        peer = Peer(self, reader, writer)
        self.peers.append(peer)
        try:
            await self._script(peer)
            await peer.gone()
        except (asyncio.IncompleteReadError, ConnectionError):
            peer.leave()
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self.failures.append(error)
        finally:
            writer.transport.abort()


class Servers:
    """The servers of one test."""

    def __init__(self) -> None:
        self._running: list[tuple[Server, asyncio.Server]] = []

    async def start(self, script: Script, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Server:
        """A server on a free port."""
        server = Server(script)
        listener = await asyncio.start_server(server.serve, host, 0, ssl=tls)
        server.port = listener.sockets[0].getsockname()[1]
        self._running.append((server, listener))
        return server

    async def stop(self) -> None:
        """Check that no script failed and that the links left no connection open."""
        for server, listener in self._running:
            await all_connected_begin()
            listener.close()
            late: set[asyncio.Task[None]] = set()
            if server.tasks:
                _, late = await asyncio.wait(server.tasks, timeout=PATIENCE)
            for task in late:
                task.cancel()
            assert not late, "the link left a connection open"
            assert server.failures == []


async def always_ok(peer: Peer) -> None:
    """Answer every request of a connection."""
    while True:
        await peer.answer(OK)


async def collect(stream: AbstractAsyncContextManager[StreamReply], into: list[bytes]) -> None:
    """Read a stream, keeping every piece that came even if it breaks off."""
    async with stream as reply:
        async for piece in reply.chunks():
            into.append(piece)
