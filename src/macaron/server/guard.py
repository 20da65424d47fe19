"""Keeps web pages from talking to a service on loopback. Pure ASGI."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from macaron.errors import BadRequest, Forbidden, MacaronError
from macaron.server.respond import send_error


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only be this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class LoopbackGuard:
    """Refuses a foreign `Host` (DNS rebinding) and a foreign `Origin` (cross-site requests).

    A POST must say `application/json`, which a page of another origin cannot send without asking first.
    """

    def __init__(self, app: ASGIApp, *, loopback: bool) -> None:
        self._app = app
        self._loopback = loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                self._check(scope)
            except MacaronError as error:
                await send_error(send, error)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        host, origin, content = b"", b"", b""
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
            elif name == b"content-type":
                content = value
        if self._loopback:
            if not is_loopback(_hostname(host)):
                raise Forbidden("The Host header does not name this machine.", code="foreign_host")
            if origin and not is_loopback(urlsplit(origin.decode("latin-1")).hostname or ""):
                raise Forbidden("Requests from web pages of other origins are refused.", code="foreign_origin")
        if scope["method"] == "POST" and content.partition(b";")[0].strip().lower() != b"application/json":
            raise BadRequest(
                "Send `Content-Type: application/json`.", param="content-type", code="invalid_content_type"
            )


def _hostname(host: bytes) -> str:
    try:
        return urlsplit("//" + host.decode("latin-1")).hostname or ""
    except ValueError:
        return ""
