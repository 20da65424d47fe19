"""Responses on the ASGI wire."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from starlette.types import Scope, Send

from macaron.errors import MacaronError
from macaron.wire.errors import openai_error_body

log = logging.getLogger("macaron.server")

Headers = Sequence[tuple[bytes, bytes]]

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


async def send_error(send: Send, error: MacaronError, headers: Headers = ()) -> None:
    """An error in OpenAI's shape, with its status."""
    await send_body(send, error.status, openai_error_body(error), (*error_headers(error), *headers))


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
