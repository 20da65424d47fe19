"""What the small endpoints of responses and conversations share: who asks, and how lists are paged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from macaron.errors import BadRequest
from macaron.server.keys import Caller
from macaron.server.receive import header_map, read_body
from macaron.server.respond import JSON, request_id
from macaron.server.service import Service
from macaron.wire.fields import one_of

MAX_PAGE = 100
DEFAULT_PAGE = 20

T = TypeVar("T")


class Asking(NamedTuple):
    """A request of a known caller who may use the API."""

    request: Request
    service: Service
    caller: Caller

    @property
    def tenant(self) -> str:
        """Whose records are asked for."""
        return self.caller.tenant

    def name(self, parameter: str) -> str:
        """A name in the path."""
        name: str = self.request.path_params[parameter]
        return name

    async def body(self) -> bytes:
        """The request's body, bounded."""
        limits = self.service.contract.service
        request = self.request
        return await read_body(request.scope, request.receive, limits.max_body_bytes, limits.body_timeout)

    def answer(self, value: Any) -> Response:
        """The response with a value as JSON."""
        response = Response(msgspec.json.encode(value))
        response.raw_headers += [JSON, *request_id(self.request.scope)]
        return response


def asking(request: Request) -> Asking:
    """Who asks.

    Raises:
        Unauthorized: nobody known.
        Forbidden: the key may not use the API.
    """
    service: Service = request.app.state.service
    caller = service.keys.authenticate(header_map(request.scope))
    caller.require("chat", "This endpoint")
    return Asking(request, service, caller)


def number(request: Request, name: str, default: int, low: int, high: int) -> int:
    """A whole number in the query.

    Raises:
        BadRequest: it is none, or out of bounds.
    """
    given = request.query_params.get(name)
    if given is None or not given:
        return default
    digits = given.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 16) or not low <= int(given) <= high:
        message = f"`{name}` is {given[:40]!r}; it must be a whole number from {low} to {high}."
        raise BadRequest(message, param=name, code="invalid_value")
    return int(given)


class Page(NamedTuple):
    """Which part of a list is wanted: `limit` items after the one named `after`, newest first or oldest first."""

    limit: int
    after: str
    newest_first: bool


def page(request: Request) -> Page:
    """The page that the query asks for.

    Raises:
        BadRequest: with the parameter at fault.
    """
    order = one_of(request.query_params.get("order") or "desc", "order", ("asc", "desc"))
    return Page(
        number(request, "limit", DEFAULT_PAGE, 1, MAX_PAGE), request.query_params.get("after", ""), order == "desc"
    )


def part_of(items: Sequence[T], wanted: Page, id_of: Callable[[T], str]) -> tuple[list[T], bool]:
    """A page of items in their order, and whether there are more after it.

    Raises:
        BadRequest: `after` names none of them.
    """
    ordered = list(reversed(items)) if wanted.newest_first else list(items)
    if wanted.after:
        start = next((place for place, item in enumerate(ordered) if id_of(item) == wanted.after), None)
        if start is None:
            raise unknown_item(wanted.after)
        ordered = ordered[start + 1 :]
    return ordered[: wanted.limit], len(ordered) > wanted.limit


def unknown_item(item_id: str) -> BadRequest:
    """The error of an `after` that names nothing."""
    return BadRequest(f"`after` is {item_id[:80]!r}; no item has this id.", param="after", code="invalid_value")


def listing(items: Sequence[dict[str, Any]], more: bool) -> dict[str, Any]:
    """A page as the API writes it."""
    ids = [item["id"] for item in items]
    return {
        "object": "list",
        "data": items,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "has_more": more,
    }
