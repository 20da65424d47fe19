"""What every request passes first. Pure ASGI.

One pass over the headers names the request, checks where it comes from, and leads the paths that matter for throughput
straight to their endpoint; everything else goes to the application behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from macaron.errors import MacaronError
from macaron.ids import Ids
from macaron.server.guard import check_origin
from macaron.server.respond import send_error
from macaron.server.tracing import Tracing

_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.-]{1,64}")


class Front:
    """Wraps the application.

    Args:
        direct: endpoints for POST by path.
        loopback: only this machine may call, and no web page of another origin.
        origins: other origins whose pages may call all the same.
        tracing: spans around the direct endpoints, None for none.
    """

    def __init__(
        self,
        app: ASGIApp,
        direct: Mapping[str, ASGIApp],
        ids: Ids,
        *,
        loopback: bool,
        origins: Iterable[str] = (),
        tracing: Tracing | None = None,
    ) -> None:
        self._app = app
        self._direct = direct
        self._ids = ids
        self._loopback = loopback
        self._origins = frozenset(origin.encode() for origin in origins)
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        given = headers.get(b"x-request-id")
        harmless = given is not None and _REQUEST_ID.fullmatch(given)
        state = scope.setdefault("state", {})
        state["headers"] = headers
        state["request_id"] = given if harmless else self._ids.new().encode()
        try:
            check_origin(scope["method"], headers, loopback=self._loopback, allowed=self._origins)
        except MacaronError as error:
            await send_error(send, scope, error)
            return
        endpoint = self._direct.get(scope["path"]) if scope["method"] == "POST" else None
        if endpoint is None:
            await self._app(scope, receive, send)
        elif self._tracing is None:
            await endpoint(scope, receive, send)
        else:
            with self._tracing.request(scope["path"], headers):
                await endpoint(scope, receive, send)
