"""Responses on the ASGI wire."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from macaron.errors import MacaronError
from macaron.server.receive import CancelOnDisconnect
from macaron.wire.errors import openai_error_body
from macaron.wire.messages_error import anthropic_error_body

log = logging.getLogger("macaron.server")

Headers = Sequence[tuple[bytes, bytes]]

MESSAGES = "/v1/messages"

Respond = Callable[[bytes, Headers], bool]
"""Writes a whole response to a POST with status 200, or returns False where only the ASGI wire can. The headers are
written unchecked. Our protocol puts one into every request's state."""

JSON = (b"content-type", b"application/json")


async def send_body(send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """One whole response."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, value: Any, status: int = 200, headers: Headers = ()) -> None:
    """One whole response, as JSON."""
    await send_body(send, status, msgspec.json.encode(value), (JSON, *headers))


def json_response(request: Request, value: Any, status: int = 200) -> Response:
    """A response to a request that Starlette led here, as JSON."""
    response = Response(msgspec.json.encode(value), status)
    response.raw_headers += [JSON, *response_ids(request.scope)]
    return response


async def send_error(send: Send, scope: Scope, error: MacaronError) -> None:
    """An error as its caller's dialect writes it, with its status."""
    await send_body(send, error.status, error_body(scope, error), (*error_headers(error), *response_ids(scope)))


def error_body(scope: Scope, error: MacaronError) -> bytes:
    """An error in Anthropic's shape for its clients, in OpenAI's for all others."""
    return anthropic_error_body(error) if _is_theirs(scope) else openai_error_body(error)


def response_ids(scope: Scope) -> Headers:
    """The headers that name a request to its client, whichever it is."""
    return anthropic_ids(scope) if _is_theirs(scope) else request_id(scope)


def _is_theirs(scope: Scope) -> bool:
    """Whether a request is of a client of Anthropic's API."""
    return scope["path"].startswith(MESSAGES) or b"anthropic-version" in scope["state"]["headers"]


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


def anthropic_ids(scope: Scope) -> Headers:
    """The same, and under the name that Anthropic's clients read."""
    name = scope["state"]["request_id"]
    return ((b"x-request-id", name), (b"request-id", name))


def fault(scope: Scope, error: Exception) -> MacaronError:
    """Log a mistake of the service's own; returns what its client is told."""
    name = scope["state"]["request_id"].decode()
    log.error("request %s failed: %r", name, error, exc_info=error)
    return MacaronError(f"The service failed at request {name}; its log says more.", code="internal")
