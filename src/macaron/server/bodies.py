"""The beginning of the small endpoints that take a body: who calls, may it, what does it ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from starlette.requests import Request

from macaron.server.exchange import LARGE_BODY
from macaron.server.keys import Caller
from macaron.server.receive import header_map, read_body
from macaron.server.service import Service

GONE = 499
"""The status of a response that nobody is there to read."""

T = TypeVar("T")


async def admitted(request: Request, parse: Callable[[bytes], T]) -> tuple[Service, Caller, T]:
    """The caller of a request and what it asks, read within the service's bounds.

    Raises:
        MacaronError: it may not call, or its body is not acceptable.
        ClientLeft: it is gone.
    """
    service: Service = request.app.state.service
    caller = service.keys.authenticate(header_map(request.scope))
    caller.require("chat", "This endpoint")
    service.admission.check(caller.tenant)
    limits = service.contract.service
    body = await read_body(request.scope, request.receive, limits.max_body_bytes, limits.body_timeout)
    return service, caller, parse(body) if len(body) < LARGE_BODY else await asyncio.to_thread(parse, body)
