"""The same interface on aiohttp: the fallback, and what the native link is measured against.

Where aiohttp is less exact (the tests name each case): bytes that come on an idle connection are taken for the answer
to the next request; limits hold for each header and not for their sum; a body without length that is cut off under TLS
looks complete; other transfer codings and protocol switches pass; closing waits for a connect under way; idle
connections are used first in, first out; an idempotent request may be sent again by the library itself, too.
"""

from __future__ import annotations

import asyncio
import io
import math
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
from yarl import URL

from macaron.engine.link.base import Limits, Reply, StreamReply
from macaron.engine.link.exchange import too_large
from macaron.engine.link.message import check_target, checked_headers, constant_headers
from macaron.engine.link.origin import Origin
from macaron.errors import EngineError, EngineTimeout

_AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_READ_BUFFER = 131_072
"""aiohttp stops reading at twice this, which is the native link's high-water mark."""


class LibraryReply:
    """A `StreamReply` over aiohttp's response."""

    def __init__(
        self, response: aiohttp.ClientResponse, link: LibraryLink, end: float | None, timeout: float | None
    ) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = _headers(response)
        self._response = response
        self._link = link
        self._end = math.inf if end is None else end
        self._timeout = timeout

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """See `StreamReply.chunks`."""
        content, clock = self._response.content, asyncio.get_running_loop().time
        while True:
            try:
                async with asyncio.timeout_at(min(clock() + self._link.limits.idle, self._end)):
                    piece = await content.readany()
            except TimeoutError:
                spent = clock() >= self._end
                raise (self._link.out_of_time(self._timeout) if spent else self._link.idle_too_long()) from None
            except (aiohttp.ClientError, OSError, RuntimeError) as error:
                # The stream reports a session closed under it as a RuntimeError.
                raise self._link.explained(error) from error
            if piece:
                yield piece
            elif content.at_eof():
                return

    async def pour(self, take: Callable[[bytes], bool]) -> bool:
        """See `StreamReply.pour`; aiohttp has no place where the bytes arrive."""
        async with aclosing(self.chunks()) as pieces:
            async for piece in pieces:
                if not take(piece):
                    return True
        return False

    async def read(self) -> bytes:
        """See `StreamReply.read`."""
        pieces: list[bytes] = []
        size = 0
        async for piece in self.chunks():
            pieces.append(piece)
            size += len(piece)
            if size > self._link.limits.body:
                raise too_large(self._link.limits.body)
        return b"".join(pieces)


class LibraryLink:
    """A `Link`. It belongs to the event loop of its first request."""

    def __init__(
        self, origin: Origin, headers: Mapping[str, str] | None, limits: Limits, tls: ssl.SSLContext | None
    ) -> None:
        self.limits = limits
        self._origin = origin
        self._headers = constant_headers(headers)
        self._tls = tls
        self._closed = False
        self._slots = asyncio.Semaphore(limits.connections)
        self._session: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None

    async def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Reply:  # fmt: skip
        """See `Link.request`."""
        try:
            async with asyncio.timeout(timeout), self.stream(method, path, body, headers) as reply:
                return Reply(reply.status, reply.headers, await reply.read())
        except TimeoutError:
            raise self.out_of_time(timeout) from None

    def stream(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[StreamReply]:  # fmt: skip
        """See `Link.stream`."""
        check_target(method, path)
        return self._stream(method, path, body, {**self._headers, **checked_headers(headers or {})}, timeout)

    async def close(self) -> None:
        """See `Link.close`."""
        self._closed = True
        for session in (self._session, self._fresh):
            if session is not None:
                await session.close()

    def idle_too_long(self) -> EngineTimeout:
        """The error for a stall in a response."""
        return EngineTimeout(
            f"{self._peer} sent nothing for {self.limits.idle:g} s in the middle of a response (limit `idle`)"
        )

    def out_of_time(self, timeout: float | None) -> EngineTimeout:
        """The error for a response that took longer than its request allowed."""
        return EngineTimeout(
            f"{self._peer} did not complete its response within {timeout:g} s (the request's `timeout`)"
        )

    def explained(self, error: Exception) -> EngineError:
        """The project's error for one of aiohttp's or of the system's."""
        match error:
            case _ if self._closed:
                return _closed()
            case aiohttp.ConnectionTimeoutError():
                return EngineTimeout(
                    f"no connection to {self._peer} within {self.limits.connect:g} s (limit `connect`); "
                    "is the engine running?"
                )
            case aiohttp.ClientSSLError():
                return EngineError(f"no TLS connection to {self._peer}: {error}; does it trust its certificate?")
            case aiohttp.ClientConnectorError() | UnicodeError():
                return EngineError(f"cannot connect to {self._peer}: {error}; is the engine running?")
            case aiohttp.ClientResponseError():
                return EngineError(f"{self._peer} sent a response that is not valid HTTP/1.1: {error.message[:200]}")
            case aiohttp.ServerDisconnectedError():
                return EngineError(f"{self._peer} closed the connection before it answered")
            case _:
                return EngineError(f"{self._peer} closed the connection in the middle of a response: {error}")

    @property
    def _peer(self) -> str:
        return f"the engine at {self._origin.authority}"

    @asynccontextmanager
    async def _stream(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float | None
    ) -> AsyncIterator[LibraryReply]:
        end = None if timeout is None else asyncio.get_running_loop().time() + timeout
        try:
            async with asyncio.timeout_at(end):
                await self._slots.acquire()
        except TimeoutError:
            raise self.out_of_time(timeout) from None
        try:
            response = await self._send_until(end, timeout, method, path, body, headers)
            try:
                yield LibraryReply(response, self, end, timeout)
            finally:
                response.close()
        finally:
            self._slots.release()

    async def _send_until(
        self, end: float | None, timeout: float | None, method: str, path: str, body: bytes | None,
        headers: Mapping[str, str],
    ) -> aiohttp.ClientResponse:  # fmt: skip
        try:
            async with asyncio.timeout_at(end):
                return await self._send(method, path, body, headers)
        except TimeoutError:
            raise self.out_of_time(timeout) from None

    async def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> aiohttp.ClientResponse:
        use = SimpleNamespace(reused=False)
        try:
            return await self._attempt(self._usual(), use, method, path, body, headers)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if not use.reused or _has_begun(error) or self._closed:
                raise self.explained(error) from error
        try:
            return await self._attempt(self._unpooled(), use, method, path, body, headers)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            raise self.explained(error) from error

    async def _attempt(
        self, session: aiohttp.ClientSession, use: SimpleNamespace, method: str, path: str, body: bytes | None,
        headers: Mapping[str, str],
    ) -> aiohttp.ClientResponse:  # fmt: skip
        url = URL(self._origin.url + path, encoded=True)
        try:
            async with asyncio.timeout(self.limits.first_byte):
                return await session.request(
                    method, url, data=_payload(body), headers=headers, allow_redirects=False, trace_request_ctx=use
                )
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            raise
        except aiohttp.ConnectionTimeoutError as error:
            raise self.explained(error) from error
        except TimeoutError:
            raise EngineTimeout(
                f"{self._peer} sent no response headers within {self.limits.first_byte:g} s (limit `first_byte`)"
            ) from None
        except (aiohttp.ClientError, ValueError) as error:
            raise self.explained(error) from error

    def _usual(self) -> aiohttp.ClientSession:
        if self._closed:
            raise _closed()
        if self._session is None:
            self._session = self._open(force_close=False)
        return self._session

    def _unpooled(self) -> aiohttp.ClientSession:
        """A session that never reuses a connection: aiohttp has no other way to ask for a fresh one."""
        if self._fresh is None:
            self._fresh = self._open(force_close=True)
        return self._fresh

    def _open(self, force_close: bool) -> aiohttp.ClientSession:
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        keep_alive: dict[str, Any] = {} if force_close else {"keepalive_timeout": self.limits.keep_alive}
        limits = self.limits
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ssl=self._tls if self._tls is not None else True, force_close=force_close, **keep_alive
            ),
            timeout=aiohttp.ClientTimeout(total=None, connect=limits.connect),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_AUTOMATIC,
            read_bufsize=_READ_BUFFER,
            max_line_size=limits.headers,
            max_field_size=limits.headers,
            max_headers=max(1, limits.headers // 4),
            trace_configs=[trace],
        )


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """The body as aiohttp wants it: it warns about large bytes, and sends a file piece by piece."""
    return body if body is None or len(body) <= _READ_BUFFER else io.BytesIO(body)


async def _note_reuse(session: aiohttp.ClientSession, trace: SimpleNamespace, params: object) -> None:
    trace.trace_request_ctx.reused = True


def _has_begun(error: aiohttp.ServerDisconnectedError | aiohttp.ClientOSError) -> bool:
    """Whether a part of a response had come: aiohttp puts what it could read of it in the message's place."""
    return isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    merged: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        merged[key] = f"{merged[key]}, {value}" if key in merged else value
    return merged


def _closed() -> EngineError:
    return EngineError("the link to the engine is closed; open a new one")
