"""Responses on the ASGI wire."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from starlette.types import Send

from macaron.errors import MacaronError
from macaron.wire.errors import openai_error_body

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
    extra: list[tuple[bytes, bytes]] = [JSON, *headers]
    if error.retry_after is not None:
        extra.append((b"retry-after", b"%d" % max(1, math.ceil(error.retry_after))))
    if error.status in (408, 413):
        # The rest of the body is not going to be read.
        extra.append((b"connection", b"close"))
    if error.status == 401:
        extra.append((b"www-authenticate", b"Bearer"))
    await send_body(send, error.status, openai_error_body(error), extra)
