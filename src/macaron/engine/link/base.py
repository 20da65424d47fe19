"""The narrow HTTP interface between an engine and its server, so that the client behind it can be exchanged."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct


class Limits(Struct, frozen=True):
    """Bounds of a link. Times are seconds, sizes bytes.

    Attributes:
        connections: open at once; more requests wait for one.
        connect: to establish a connection, TLS included.
        first_byte: from the request sent to the response's headers.
        idle: between two pieces of a response.
        keep_alive: an unused connection is not trusted for longer.
        headers: total size of a response's headers.
        body: size of a response body that is read whole.
    """

    connections: int = 512
    connect: float = 5.0
    first_byte: float = 600.0
    idle: float = 120.0
    keep_alive: float = 15.0
    headers: int = 65_536
    body: int = 67_108_864


class Reply(Struct, frozen=True):
    """A response read whole. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class StreamReply(Protocol):
    """A response whose body is read as it comes."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]:
        """Pieces of the body; what has arrived together comes as one piece, nothing is held back."""
        ...

    async def pour(self, take: Callable[[bytes], bool]) -> bool:
        """Give `take` the pieces of the body until it returns False or the body has ended; whether there may be more.

        `take` is called where the bytes arrive, which saves waking a task for each piece: it must be quick. What it
        raises is raised here, and cancelling ends it at once. Between two calls pieces wait as for `chunks`.
        """
        ...

    async def read(self) -> bytes:
        """The rest of the body, bounded by `Limits.body`."""
        ...


class Link(Protocol):
    """An HTTP/1.1 client for one origin.

    A request is sent again once, on a fresh connection, only when a kept-alive connection turned out to be closed
    before any byte of its response arrived. Cancelling a request closes its connection.

    All methods raise `EngineError` (`EngineTimeout` for time limits) with the reason in words.
    """

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """Send a request and read its whole response."""
        ...

    def stream(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[StreamReply]:  # fmt: skip
        """Send a request; leaving the context before the body's end closes the connection.

        `timeout` bounds it to its last byte, in seconds.
        """
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class LinkFactory(Protocol):
    """Makes a link to an origin such as `http://127.0.0.1:8000` with headers that go with every request."""

    def __call__(
        self,
        origin: str,
        *,
        headers: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> Link: ...
