"""`/v1/admin/adapters`: the verbs of `Admin` over HTTP, for keys with the scope `admin`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from macaron.errors import BadRequest, MacaronError, TimedOut
from macaron.registry.desired import Entry, Key
from macaron.registry.verdict import MARGIN
from macaron.server.adapters.admin import Admin, NewAdapter
from macaron.server.adapters.parts import Adapters
from macaron.server.adapters.route_check import Found, Progress, RouteChecks, Row
from macaron.server.keys import OWNER
from macaron.server.receive import ClientLeft, header_map, read_body
from macaron.server.respond import JSON, JsonLines, request_id
from macaron.wire.errors import openai_error

PATH = "/v1/admin/adapters"
MAX_BODY = 262_144
MAX_ROWS_BODY = 16_777_216

BodyT = TypeVar("BodyT", bound=Struct)


class Named(Struct, frozen=True, forbid_unknown_fields=True):
    """Which revision a verb is about, and whose entry it is in: None for the caller's own, or everybody's where the
    caller is the operator."""

    revision: str = ""
    tenant: str | None = None


class Promotion(Named, frozen=True):
    """A promotion; `waive_route_check` is the reason for one without a route check."""

    waive_route_check: str = ""


class Share(Promotion, frozen=True):
    """A trial by a share of turns (shadow) or sessions (canary)."""

    share: float = 0.1


class Check(Named, frozen=True):
    """A route check to make: rows beside those of the profile, and the share of its rows that a label may lose."""

    rows: tuple[Row, ...] = ()
    margin: float = MARGIN


def admin_routes(adapters: Adapters) -> list[Route]:
    """The routes, before all others under the same path."""
    api = _Api(adapters)
    verbs: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "promote": api.promote,
        "route-check": api.route_check,
        "shadow": api.shadow,
        "canary": api.canary,
        "rollback": api.rollback,
        "disable": api.disable,
        "enable": api.enable,
        "drain": api.drain,
        "remove": api.remove,
    }
    return [
        Route(PATH, api.list, methods=["GET"]),
        Route(PATH, api.register, methods=["POST"]),
        Route(f"{PATH}/upload", api.upload, methods=["PUT"]),
        Route(f"{PATH}/{{label}}", api.show, methods=["GET"]),
        *(Route(f"{PATH}/{{label}}/{name}", verb, methods=["POST"]) for name, verb in verbs.items()),
    ]


class _Api:
    def __init__(self, adapters: Adapters) -> None:
        self._adapters = adapters
        self._admin = Admin(adapters)
        self._checks = RouteChecks(adapters)

    async def list(self, request: Request) -> Response:
        by = self._by(request)
        entries = [self._entry(entry) for entry in await self._admin.entries(by)]
        findings = self._adapters.follower.findings
        plug = self._adapters.plug
        engine = {"replica": plug.replica if plug else None, "fault": findings.fault, "pause_seconds": findings.pause}
        body = {"generation": self._adapters.service.generation, "engine": engine, "standing": self._admin.standing}
        return _json(request, {**body, "data": entries})

    async def show(self, request: Request) -> Response:
        by = self._by(request)
        key = _key(request, by, request.query_params.get("tenant"))
        return _json(request, self._entry(await self._admin.entry(by, key)))

    async def upload(self, request: Request) -> Response:
        by = self._by(request)
        timeout = self._adapters.service.contract.service.body_timeout
        report = await self._admin.upload(by, _chunks(request, timeout))
        return _json(request, {"revision": report.revision, "findings": msgspec.to_builtins(report.findings)}, 201)

    async def register(self, request: Request) -> Response:
        by = self._by(request)
        entry = await self._admin.register(by, await self._body(request, NewAdapter))
        return _json(request, self._entry(entry), 201)

    async def promote(self, request: Request) -> Response:
        by, body = self._by(request), await self._body(request, Promotion)
        key = _key(request, by, body.tenant)
        return self._done(request, await self._admin.promote(by, key, body.revision, body.waive_route_check))

    async def route_check(self, request: Request) -> Response:
        """Lines of JSON as it goes on: `done` and `total`, at last `verdict` and `entry`, or `error`."""
        by, body = self._by(request), await self._body(request, Check, MAX_ROWS_BODY)
        key = _key(request, by, body.tenant)
        return JsonLines(self._checked(await self._checks.plan(by, key, body.revision, body.rows, body.margin)))

    async def _checked(self, steps: AsyncGenerator[Progress | Found, None]) -> AsyncGenerator[Any, None]:
        try:
            async with aclosing(steps):
                async for step in steps:
                    match step:
                        case Progress(done, total):
                            yield {"done": done, "total": total}
                        case Found(check, verdict, entry):
                            said = {"passed": check.passed, "detail": check.detail, **msgspec.to_builtins(verdict)}
                            yield {"verdict": said, "entry": self._entry(entry)}
        except MacaronError as error:
            yield openai_error(error)

    async def shadow(self, request: Request) -> Response:
        by, body = self._by(request), await self._body(request, Share)
        key = _key(request, by, body.tenant)
        return self._done(request, await self._admin.shadow(by, key, body.revision, body.share))

    async def canary(self, request: Request) -> Response:
        by, body = self._by(request), await self._body(request, Share)
        key = _key(request, by, body.tenant)
        entry = await self._admin.canary(by, key, body.revision, body.share, body.waive_route_check)
        return self._done(request, entry)

    async def rollback(self, request: Request) -> Response:
        by, body = self._by(request), await self._body(request, Named)
        return self._done(request, await self._admin.rollback(by, _key(request, by, body.tenant)))

    async def disable(self, request: Request) -> Response:
        by, body = self._by(request), await self._body(request, Named)
        return self._done(request, await self._admin.disable(by, _key(request, by, body.tenant)))

    async def enable(self, request: Request) -> Response:
        by, body = self._by(request), await self._body(request, Named)
        return self._done(request, await self._admin.enable(by, _key(request, by, body.tenant)))

    async def drain(self, request: Request) -> Response:
        by, body = self._by(request), await self._body(request, Named)
        return self._done(request, await self._admin.drain(by, _key(request, by, body.tenant), body.revision))

    async def remove(self, request: Request) -> Response:
        by, body = self._by(request), await self._body(request, Named)
        left = await self._admin.remove(by, _key(request, by, body.tenant), body.revision)
        return _json(request, self._entry(left) if left is not None else {"label": request.path_params["label"]})

    def _by(self, request: Request) -> str:
        """The tenant that asks; empty for the operator, whose key is named `owner`."""
        caller = self._adapters.service.keys.authenticate(header_map(request.scope))
        caller.require("admin", f"`{PATH}`")
        return "" if caller.tenant == OWNER else caller.tenant

    async def _body(self, request: Request, kind: type[BodyT], limit: int = MAX_BODY) -> BodyT:
        timeout = self._adapters.service.contract.service.body_timeout
        try:
            raw = await read_body(request.scope, request.receive, limit, timeout)
            return msgspec.json.decode(raw or b"{}", type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequest(f"The body cannot be used: {error}.", param="body", code="invalid_body") from None
        except ClientLeft:
            raise _incomplete() from None

    def _done(self, request: Request, entry: Entry) -> Response:
        return _json(request, self._entry(entry))

    def _entry(self, entry: Entry) -> dict[str, Any]:
        """An entry, with what the engine says of each revision."""
        standing, trials = self._adapters.follower.findings.standing, self._adapters.follower.trials
        shown: dict[str, Any] = {
            "label": entry.label,
            "tenant": entry.tenant,
            "profile": entry.profile,
            "live": entry.live,
            "previous": entry.previous,
            "disabled": entry.disabled,
            "revisions": [],
        }
        for item in entry.revisions:
            name = entry.engine_name(item)
            # Defaults are left out of the document, and wanted here.
            known = {"state": item.state, "card": None, **msgspec.to_builtins(item)}
            engine, trial = (msgspec.to_builtins(said.get(name)) for said in (standing, trials))
            shown["revisions"].append({**known, "engine_name": name, "engine": engine, "trial": trial})
        return shown


def _key(request: Request, by: str, tenant: str | None) -> Key:
    return Key(request.path_params["label"], by if tenant is None else tenant)


async def _chunks(request: Request, timeout: float) -> AsyncGenerator[bytes, None]:
    """The body as it comes; each part may take `timeout` seconds."""
    while True:
        try:
            async with asyncio.timeout(timeout):
                message = await request.receive()
        except TimeoutError:
            raise TimedOut(f"Nothing of the upload came for {timeout:g} seconds.") from None
        if message["type"] == "http.disconnect":
            raise _incomplete()
        yield message.get("body", b"")
        if not message.get("more_body"):
            return


def _incomplete() -> BadRequest:
    return BadRequest("The connection was closed before the body was complete.", param="body", code="incomplete_body")


def _json(request: Request, value: Any, status: int = 200) -> Response:
    response = Response(msgspec.json.encode(value), status)
    response.raw_headers += [JSON, *request_id(request.scope)]
    return response
