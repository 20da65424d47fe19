"""Responses on the ASGI wire."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope, Send

from macaron.errors import MacaronError
from macaron.wire.errors import openai_error_body
from macaron.wire.messages_error import anthropic_error_body

log = logging.getLogger("macaron.server")

Headers = Sequence[tuple[bytes, bytes]]

MESSAGES = "/v1/messages"

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
