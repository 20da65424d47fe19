"""The endpoints that ask for a response, or end it."""

from __future__ import annotations

import time

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from macaron.errors import BadRequest, MacaronError, NotFound
from macaron.server.receive import CancelOnDisconnect
from macaron.server.respond import request_id
from macaron.server.responses.asking import Asking, asking, listing, number, page, part_of
from macaron.server.responses.documents import find, read, revised
from macaron.server.responses.follow import follow
from macaron.server.stream import EventStream
from macaron.store.base import Record
from macaron.wire.responses_answer import error_events


async def retrieve(request: Request) -> Response | ASGIApp:
    """A response as it is now, or with `?stream=true` its events after the sequence number `starting_after`."""
    asked = asking(request)
    record = await _found(asked)
    if request.query_params.get("stream", "").lower() not in ("true", "1"):
        return asked.answer(read(record).response)
    if not read(record).streamed:
        message = (
            "Events are kept of responses made with `background: true` and `stream: true` only; leave `stream` out."
        )
        raise BadRequest(message, param="stream", code="not_streamed")
    return _Followed(asked, record.id, number(request, "starting_after", -1, -1, 2**31))


class _Followed:
    """The events of a response, as an ASGI application."""

    def __init__(self, asked: Asking, response_id: str, after: int) -> None:
        self._asked = asked
        self._id = response_id
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = EventStream(send, request_id(scope))
        try:
            with CancelOnDisconnect(scope, receive):
                await follow(self._asked.service.store, self._asked.tenant, self._id, self._after, stream)
        except MacaronError as error:
            await stream.end(error_events(error))
        finally:
            stream.close()


async def remove(request: Request) -> Response:
    """Delete a response: its content, and that of its step. What continues it keeps its own."""
    asked = asking(request)
    record = await _found(asked)
    store = asked.service.store
    await store.delete_record(asked.tenant, record.id)
    asked.service.leases.cancel((asked.tenant, record.id))
    await store.delete_step(f"{record.scope}\x1f{record.user}" if record.user else record.scope, record.id)
    return asked.answer({"id": record.id, "object": "response", "deleted": True})


async def cancel(request: Request) -> Response:
    """Cancel a response that is made in the background; one that is finished stays as it is."""
    asked = asking(request)
    record = await _found(asked)
    if record.open:
        body = msgspec.json.decode(read(record).response)
        if not body["background"]:
            message = "Only a response made with `background: true` can be cancelled; close the connection of another."
            raise BadRequest(message, param="response_id", code="not_in_background")
        cancelled = revised(record, status="cancelled")
        await asked.service.store.revise_record(asked.tenant, record.id, cancelled, open=False)
        asked.service.leases.cancel((asked.tenant, record.id))
        record = await _found(asked)
    return asked.answer(read(record).response)


async def input_items(request: Request) -> Response:
    """The items that a response was given as its own input, in pages."""
    asked = asking(request)
    record = await _found(asked)
    items = msgspec.json.decode(read(record).input)
    return asked.answer(listing(*part_of(items, page(request), lambda item: str(item["id"]))))


async def compact(request: Request) -> Response:
    """Compaction would be an item that only this service could read; there is none."""
    asking(request)
    raise NotFound("Conversations are not compacted here; shorten `input` instead.", code="unknown_path")


async def _found(asked: Asking) -> Record:
    return await find(asked.service.store, asked.tenant, asked.name("response_id"), time.time())


def response_routes() -> list[Route]:
    """The paths under `/v1/responses/`."""
    path = "/v1/responses/{response_id}"
    return [
        Route("/v1/responses/compact", compact, methods=["POST"]),
        Route(path, _Retrieve(), methods=["GET"]),
        Route(path, remove, methods=["DELETE"]),
        Route(f"{path}/cancel", cancel, methods=["POST"]),
        Route(f"{path}/input_items", input_items, methods=["GET"]),
    ]


class _Retrieve:
    """`retrieve` as an ASGI application, since a stream of events is one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await retrieve(Request(scope, receive))
        await answer(scope, receive, send)
