"""`POST /v1/responses`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress

import msgspec
from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from macaron.errors import BadRequest, MacaronError, StoreError
from macaron.mol.events import Answered, Chosen, Done
from macaron.server.exchange import LARGE_BODY, see_through, stopping, told_error, trace_headers
from macaron.server.keys import Caller
from macaron.server.receive import CancelOnDisconnect, header_map, read_body
from macaron.server.requests import turn_request
from macaron.server.respond import JSON, Headers, request_id, send_body, send_error
from macaron.server.responses.background import start
from macaron.server.responses.follow import follow
from macaron.server.responses.history import History, history
from macaron.server.responses.run import Run, response_ended
from macaron.server.service import Service
from macaron.server.stream import EventStream
from macaron.wire.parts import TurnParts
from macaron.wire.responses import SEALED, ResponsesRequest, conversation_items, leading_system, responses_request
from macaron.wire.responses_answer import About, Body, error_events
from macaron.wire.responses_items import sealed_in
from macaron.wire.sse import DONE

MANY_ITEMS = 256
"""Items from which on reading them is not done on the event loop."""


class ResponsesEndpoint:
    """Makes responses. A raw ASGI application, as for every path that runs turns."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await see_through(_Exchange(self._service, scope, send), self._service, "responses", scope, receive)


class _Exchange:
    """One request and its response."""

    def __init__(self, service: Service, scope: Scope, send: Send) -> None:
        self._service = service
        self._send = send
        self._headers: Headers = request_id(scope)
        self._stream: EventStream | None = None
        self._scope = scope
        self._told = False
        self.status = 499

    async def run(self, scope: Scope, receive: Receive) -> None:
        """See `Answering.run`."""
        service = self._service
        headers = header_map(scope)
        caller = service.keys.authenticate(headers)
        caller.require("chat", "This endpoint")
        service.admission.check(caller.tenant)
        limits = service.contract.service
        body = await read_body(scope, receive, limits.max_body_bytes, limits.body_timeout)
        left_out = limits.leave_out_tools
        if len(body) < LARGE_BODY:
            request = responses_request(body, left_out)
        else:
            request = await asyncio.to_thread(responses_request, body, left_out)
        del body
        trace = headers.get(b"x-macaron-trace") == b"1"
        if trace:
            caller.require("trace", "`x-macaron-trace`")
        store = kept_by(service, request)
        with CancelOnDisconnect(scope, receive) as client:
            # What is looked up needs a place too, since it may have to wait for the response that it continues.
            async with service.admission.place(caller.tenant):
                run = await prepared(service, caller, request, headers, store)
                if not request.background:
                    await self._answer(run, request, client, trace)
            if request.background:
                await self._in_background(run, caller, request)
            if self.status == 499:
                self.status = 200
        if client.left:
            self.status = 499

    async def fail(self, error: MacaronError) -> None:
        """See `Answering.fail`."""
        if self._stream is not None and self._stream.begun:
            await self._stream.end(error_events(error))
        else:
            await send_error(self._send, self._scope, error)

    def close(self) -> None:
        """See `Answering.close`."""
        if self._stream is not None:
            self._stream.close()

    async def _in_background(self, run: Run, caller: Caller, request: ResponsesRequest) -> None:
        body = await start(self._service, run, caller.tenant, streamed=request.stream)
        if not request.stream:
            await send_body(self._send, 200, msgspec.json.encode(body), (JSON, *self._headers))
            return
        self._stream = EventStream(self._send, self._headers)
        await follow(self._service.store, caller.tenant, body["id"], -1, self._stream)

    async def _answer(self, run: Run, request: ResponsesRequest, client: CancelOnDisconnect, trace: bool) -> None:
        task = asyncio.current_task()
        assert task is not None
        ended = _Ended(task)
        run.vouch(ended.cancel)
        try:
            if run.stored:
                await run.keep("in_progress")
            await self._pass_on(run, request, trace)
        except asyncio.CancelledError as error:
            if ended.elsewhere and task.uncancel() == 0:
                await self._end_badly(run, response_ended())
            else:
                await self._end_badly(run, error if client.left else stopping())
        except BaseException as error:
            await self._end_badly(run, error)

    async def _pass_on(self, run: Run, request: ResponsesRequest, trace: bool) -> None:
        chosen: Chosen | None = None
        body: Body = {}
        headers = self._headers
        async with run.turn() as events:
            async for event in events:
                match event:
                    case list() if self._stream is not None:
                        await self._stream.write(b"".join(run.events.chunks(event)))
                    case Chosen():
                        chosen = event if trace else None
                        self._service.metrics.turn(event.specialist.label, event.reason)
                        if request.stream:
                            self._stream = EventStream(self._send, (*self._headers, *trace_headers(chosen)))
                            await self._stream.write(b"".join(run.events.begin()))
                    case Answered():
                        closing, body = run.finish(event)
                        headers = (JSON, *self._headers, *trace_headers(chosen, event))
                        if self._stream is not None:
                            await self._stream.write(b"".join(closing))
                    case Done():
                        await run.settle(body)
                        self._told = True
                        if self._stream is not None:
                            await self._stream.end(b"".join(run.events.terminal(body)) + DONE)
                        else:
                            await send_body(self._send, 200, msgspec.json.encode(body), headers)

    async def _end_badly(self, run: Run, error: BaseException) -> None:
        """The response did not come to its end: it has failed, or its client left."""
        if self._told:
            raise error
        begun = self._stream is not None and self._stream.begun
        if begun and isinstance(error, Exception):
            await self._tell_failed(run, told_error(self._scope, error))
            return
        if begun:
            # A client that has left is told nothing; its response is kept with what it was sent.
            self._service.background.start(run.end_as(run.events.cancelled()), f"end of {run.id}")
        else:
            self._service.background.start(run.discard(), f"end of {run.id}")
        raise error

    async def _tell_failed(self, run: Run, error: MacaronError) -> None:
        assert self._stream is not None
        body = run.events.failed(error)
        # A store that cannot take even this is no reason to leave the client without an end.
        with suppress(StoreError):
            await run.end_as(body)
        self._told = True
        self.status = error.status
        await self._stream.end(b"".join(run.events.terminal(body)) + DONE)


class _Ended:
    """Cancels a task because its response was ended elsewhere."""

    def __init__(self, task: asyncio.Task[object]) -> None:
        self._task = task
        self.elsewhere = False

    def cancel(self) -> None:
        self.elsewhere = True
        self._task.cancel()


def kept_by(service: Service, request: ResponsesRequest) -> bool:
    """Whether a response is kept.

    Raises:
        BadRequest: the service keeps no text, and the request needs it to.
    """
    if service.contract.store.chat == "full":
        return request.store is not False
    for name, wanted in (
        ("store", request.store),
        ("background", request.background),
        ("conversation", request.conversation),
        ("previous_response_id", request.previous),
    ):
        if wanted:
            message = f'`{name}` cannot be honoured: this service keeps no text ([store] chat = "digests").'
            raise BadRequest(message, param=name, code="unsupported_value")
    return False


async def prepared(
    service: Service, caller: Caller, request: ResponsesRequest, headers: Mapping[bytes, bytes], store: bool
) -> Run:
    """A request as a response that can be made."""
    found = await history(service.store, caller.tenant, request)
    many = len(found.before) + len(found.input) > MANY_ITEMS
    parts = await asyncio.to_thread(_parts, request, found) if many else _parts(request, found)
    turn = turn_request(service, caller, parts, headers, "resp_")
    turn = replace(
        turn,
        parent=request.previous,
        keep=request.store is not False,
        carriers=sealed_in((*found.before, *found.input)),
        carry=SEALED in request.include,
    )
    about = About(
        id=turn.id,
        created=int(time.time()),
        model=service.served,
        echo=request.echo,
        store=store,
        background=request.background,
        previous=request.previous,
        conversation=request.conversation,
        names=request.names,
        summary=request.summary,
    )
    resumable = request.background and request.stream
    return Run(service, about, turn, found, truncate=request.truncate, resumable=resumable)


def _parts(request: ResponsesRequest, found: History) -> TurnParts:
    items = conversation_items([*found.before, *found.input], request.instructions)
    system, items_after = leading_system(request.instructions, items)
    return TurnParts(
        model=request.model,
        system=system,
        items=items_after,
        tools=request.tools,
        options=request.options,
        # In the background pieces are taken as they come, so that cancelling stops the engine at once.
        stream=request.stream or request.background,
        user=request.user or found.user,
        session=request.conversation or "",
    )
