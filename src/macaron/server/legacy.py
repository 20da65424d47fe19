"""`POST /v1/completions` and `/v1/embeddings`, which are the engine's: no turn, no specialist, no session."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from macaron.engine.base import Forwarding
from macaron.errors import NotSupported
from macaron.server.bodies import GONE, admitted
from macaron.server.receive import CancelOnDisconnect, ClientLeft
from macaron.server.requests import check_model, check_options
from macaron.server.respond import json_response
from macaron.wire.legacy import LegacyRequest, completion_request, embedding_request


async def completions(request: Request) -> Response:
    """The engine's continuation of raw text, by the bare base."""
    return await _forwarded(request, "/v1/completions", completion_request)


async def embeddings(request: Request) -> Response:
    """The engine's vectors."""
    return await _forwarded(request, "/v1/embeddings", embedding_request)


async def _forwarded(request: Request, path: str, parse: Callable[[bytes], LegacyRequest]) -> Response:
    try:
        service, caller, asked = await admitted(request, parse)
    except ClientLeft:
        return Response(None, GONE)
    check_model(service, asked.model)
    check_options(service, asked.options)
    engine = service.engine
    if not isinstance(engine, Forwarding):
        raise NotSupported(f"The {engine.kind} engine behind this model has no {path}.")
    with CancelOnDisconnect(request.scope, request.receive) as client:
        async with service.admission.place(caller.tenant):
            answer = await engine.forward(path, {**asked.fields, **asked.options})
    if client.left:
        return Response(None, GONE)
    return json_response(request, {**answer, "model": service.served})
