"""The ASGI application: which path leads where."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from macaron.errors import BadRequest, MacaronError, NotFound
from macaron.server.chat import ChatEndpoint
from macaron.server.guard import LoopbackGuard
from macaron.server.pages import health, metrics, model, models, ready, session
from macaron.server.receive import header_map
from macaron.server.service import Service
from macaron.wire.errors import openai_error_body

log = logging.getLogger("macaron.server")

_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.-]{1,64}")
Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


def build_app(service: Service, *, loopback: bool, drain_timeout: float = 20.0) -> Starlette:
    """The application over a worker's service, which it closes at its end."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None, None]:
        yield
        service.admission.closing = True
        await service.close(drain_timeout)

    app = Starlette(
        routes=[
            Route("/health", health),
            Route("/ready", ready),
            Route("/metrics", metrics),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", model),
            Route("/v1/macaron/sessions/{session}", session),
            Route("/v1/chat/completions", ChatEndpoint(service), methods=["POST"]),
        ],
        middleware=[Middleware(RequestId), Middleware(LoopbackGuard, loopback=loopback)],
        exception_handlers={MacaronError: _macaron_error, HTTPException: _http_error, Exception: _fault},
        lifespan=lifespan,
    )
    app.state.service = service
    return app


class RequestId:
    """Names every request, for logs and for the client: the client's own name where it is a harmless one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = header_map(scope).get(b"x-request-id", b"")
            name = given if _REQUEST_ID.fullmatch(given) else uuid4().hex.encode()
            scope.setdefault("state", {})["request_id"] = name
        await self._app(scope, receive, send)


def _error_response(error: MacaronError, status: int | None = None) -> Response:
    headers = {"retry-after": str(int(error.retry_after))} if error.retry_after else None
    return Response(openai_error_body(error), status or error.status, headers, media_type="application/json")


async def _macaron_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, MacaronError)
    return _error_response(error)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return _error_response(NotFound("There is nothing at this path; the API is under /v1.", code="unknown_path"))
    message = f"{request.method} is not possible at this path." if error.status_code == 405 else str(error.detail)
    return _error_response(BadRequest(message, code="bad_request"), error.status_code)


async def _fault(request: Request, error: Exception) -> Response:
    name = request.scope.get("state", {}).get("request_id", b"").decode()
    log.error("request %s failed: %r", name, error, exc_info=error)
    return _error_response(MacaronError(f"The service failed at request {name}; its log says more.", code="internal"))
