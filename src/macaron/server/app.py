"""The ASGI application: which path leads where."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from macaron.errors import BadRequest, MacaronError, NotFound
from macaron.server.adapters.api import admin_routes
from macaron.server.adapters.parts import Adapters
from macaron.server.chat import ChatDialect
from macaron.server.count import count_tokens
from macaron.server.exchange import TRACE_HEADERS, TurnEndpoint
from macaron.server.front import Front
from macaron.server.legacy import completions, embeddings
from macaron.server.messages import MessagesDialect
from macaron.server.pages import health, here, metrics, model, models, ready, session
from macaron.server.respond import error_body, error_headers, fault, response_ids
from macaron.server.responses.conversations import conversation_routes
from macaron.server.responses.create import ResponsesEndpoint
from macaron.server.responses.pages import response_routes
from macaron.server.service import Service
from macaron.wire.chat import ChatRequest
from macaron.wire.messages import MessagesRequest


def build_app(service: Service, adapters: Adapters, *, loopback: bool, drain_timeout: float = 20.0) -> ASGIApp:
    """The application over a worker's service, which it closes at its end."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None, None]:
        tasks = [asyncio.create_task(service.keep_house()), asyncio.create_task(adapters.follower.run())]
        await adapters.follower.loaded()
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        service.admission.closing = True
        await service.close(drain_timeout)

    direct: dict[str, ASGIApp] = {
        "/v1/chat/completions": TurnEndpoint[ChatRequest](service, ChatDialect()),
        "/v1/responses": ResponsesEndpoint(service),
        "/v1/messages": TurnEndpoint[MessagesRequest](service, MessagesDialect()),
    }
    app = Starlette(
        routes=[
            # Some clients look first whether anybody is there.
            Route("/", here, methods=["HEAD"]),
            Route("/health", health),
            Route("/ready", ready),
            Route("/metrics", metrics),
            Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
            Route("/v1/completions", completions, methods=["POST"]),
            Route("/v1/embeddings", embeddings, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", model),
            Route("/v1/macaron/sessions/{session:path}", session),
            *admin_routes(adapters),
            *response_routes(),
            *conversation_routes(),
            *(Route(path, endpoint, methods=["POST"]) for path, endpoint in direct.items()),
        ],
        exception_handlers={MacaronError: _macaron_error, HTTPException: _http_error, Exception: _fault},
        lifespan=lifespan,
    )
    app.state.service = service
    # A redirect would be built from the client's Host header, and is no answer in the API's shape.
    app.router.redirect_slashes = False
    origins = service.contract.service.cors_origins
    front = Front(app, direct, service.ids, loopback=loopback, origins=origins, tracing=service.tracing)
    return _shared(front, origins) if origins else front


def _shared(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """The application, for web pages of some other origins too."""

    async def through_send(scope: Scope, receive: Receive, send: Send) -> None:
        # The shorter way of a whole answer would pass the headers that are added to what is sent.
        scope.get("state", {}).pop("respond", None)
        await app(scope, receive, send)

    methods, exposed = ("GET", "POST", "PUT", "DELETE"), ("x-request-id", "request-id", *TRACE_HEADERS)
    return CORSMiddleware(through_send, origins, methods, allow_headers=("*",), expose_headers=exposed)


def _error_response(
    request: Request, error: MacaronError, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    response = Response(error_body(request.scope, error), status or error.status, headers)
    response.raw_headers += [*error_headers(error), *response_ids(request.scope)]
    return response


async def _macaron_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, MacaronError)
    return _error_response(request, error)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        nothing = NotFound("There is nothing at this path; the API is under /v1.", code="unknown_path")
        return _error_response(request, nothing)
    if error.status_code == 405:
        refused = BadRequest(f"{request.method[:16]} is not possible at this path.", code="method_not_allowed")
        return _error_response(request, refused, 405, error.headers)
    return _error_response(request, BadRequest(str(error.detail), code="bad_request"), error.status_code)


async def _fault(request: Request, error: Exception) -> Response:
    return _error_response(request, fault(request.scope, error))
