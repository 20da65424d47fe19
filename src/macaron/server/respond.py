"""Responses on the ASGI wire."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from macaron.errors import MacaronError
from macaron.server.receive import CancelOnDisconnect
from macaron.wire.errors import openai_error_body

log = logging.getLogger("macaron.server")

Headers = Sequence[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")


async def send_body(send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """One whole response."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, value: Any, status: int = 200, headers: Headers = ()) -> None:
    """One whole response, as JSON."""
    await send_body(send, status, msgspec.json.encode(value), (JSON, *headers))


async def send_error(send: Send, error: MacaronError, headers: Headers = ()) -> None:
    """An error in OpenAI's shape, with its status."""
    await send_body(send, error.status, openai_error_body(error), (*error_headers(error), *headers))


class JsonLines(Response):
    """A response of JSON values, one a line, each sent when it is there. When the client leaves, the rest is not
    computed."""

    def __init__(self, values: AsyncGenerator[Any, None]) -> None:
        super().__init__(status_code=200)
        self._values = values

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        headers = [(b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-cache"), *request_id(scope)]
        with CancelOnDisconnect(scope, receive):
            async with aclosing(self._values):
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                async for value in self._values:
                    line = msgspec.json.encode(value) + b"\n"
                    await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


def error_headers(error: MacaronError) -> Headers:
    """The headers that belong to an error's response."""
    headers = [JSON]
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(error.retry_after))))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return headers


def request_id(scope: Scope) -> Headers:
    """The header that names a request to its client."""
    return ((b"x-request-id", scope["state"]["request_id"]),)


def fault(scope: Scope, error: Exception) -> MacaronError:
    """Log a mistake of the service's own; returns what its client is told."""
    name = scope["state"]["request_id"].decode()
    log.error("request %s failed: %r", name, error, exc_info=error)
    return MacaronError(f"The service failed at request {name}; its log says more.", code="internal")
