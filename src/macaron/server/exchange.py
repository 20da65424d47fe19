"""What every endpoint that runs a turn does: one request and its response, in any wire format.

A format is a `Dialect`: how a body is read, how a whole answer, the events of a stream and an error are written.
Everything else is decided here: who may call, how much may run, when the client left and what may still be said to it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Generic, NamedTuple, Protocol, TypeVar

from starlette.types import Receive, Scope, Send

from macaron.conversation import Delta
from macaron.errors import BadRequest, MacaronError, Unavailable
from macaron.mol.events import Answered, Chosen, Done, TurnEvent
from macaron.server.admission import RETRY_AFTER
from macaron.server.receive import CancelOnDisconnect, ClientLeft, header_map, read_body
from macaron.server.requests import turn_request
from macaron.server.respond import JSON, Headers, Respond, error_headers, fault, send_body
from macaron.server.service import Service
from macaron.server.stream import ChunkWriter, EventStream
from macaron.wire.parts import TurnParts

log = logging.getLogger("macaron.server")

TRACE_HEADERS = ("x-macaron-adapter", "x-macaron-session", "x-macaron-hops")
LARGE_BODY = 1_000_000

R = TypeVar("R", bound=TurnParts)


class Told(NamedTuple):
    """What a response says of itself. `chosen` is there where the client may see who answers."""

    id: str
    created: int
    model: str
    chosen: Chosen | None


class StreamFormat(NamedTuple):
    """How one streamed response is written. The functions are called as they are, since a chunk costs little else.

    Attributes:
        chunks: the events for deltas that arrived together; the first call also begins the response.
        finish: the terminal events, sent once the turn is committed.
        error: the events that end a response whose turn failed.
    """

    chunks: Callable[[Sequence[Delta]], bytes]
    finish: Callable[[Answered], bytes]
    error: Callable[[MacaronError], bytes]


class Dialect(Protocol[R]):
    """A wire format.

    Attributes:
        endpoint: its name in the metrics.
        id_prefix: what the ids of its responses begin with.
        session_headers: headers in which its clients name their sessions.
    """

    endpoint: str
    id_prefix: str
    session_headers: tuple[bytes, ...]

    def parse(self, body: bytes) -> R:
        """Read a request body; pure, and on a thread where the body is large.

        Raises:
            BadRequest: with the path of the field at fault.
        """
        ...

    def whole(self, told: Told, request: R, answered: Answered) -> bytes:
        """The body of an answer that is not streamed."""
        ...

    def stream(self, told: Told, request: R) -> StreamFormat:
        """The events of an answer that is."""
        ...

    def headers(self, scope: Scope) -> Headers:
        """The headers of every response, which name the request."""
        ...

    def error_body(self, error: MacaronError) -> bytes:
        """The body of a response that is an error."""
        ...


class TurnEndpoint(Generic[R]):
    """Serves turns in one dialect. A raw ASGI application, since every request passes through it."""

    def __init__(self, service: Service, dialect: Dialect[R]) -> None:
        self._service = service
        self._dialect = dialect

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(self._service, self._dialect, send)
        await see_through(exchange, self._service, self._dialect.endpoint, scope, receive)


class Answering(Protocol):
    """One request and its response, as an endpoint sees it through."""

    status: int

    async def run(self, scope: Scope, receive: Receive) -> None:
        """Answer the request, if it can be answered; `fail` tells the client of what is raised."""
        ...

    async def fail(self, error: MacaronError) -> None:
        """Tell the client."""
        ...

    def close(self) -> None:
        """Whatever happened, nothing is written any more."""
        ...


async def see_through(exchange: Answering, service: Service, endpoint: str, scope: Scope, receive: Receive) -> None:
    """Run an exchange to its end, tell its client of what goes wrong, and count it."""
    clock = time.perf_counter()
    status = 499
    try:
        await exchange.run(scope, receive)
        status = exchange.status
    except ClientLeft:
        pass  # nobody is there to be told; 499 is what is counted
    except asyncio.CancelledError:
        # Only the end of the service comes from outside; who waits is told rather than left with half an answer.
        status = Unavailable.status
        await exchange.fail(stopping())
    except Exception as error:
        told = told_error(scope, error)
        status = told.status
        await exchange.fail(told)
    finally:
        exchange.close()
        service.metrics.request(endpoint, status, time.perf_counter() - clock)


def stopping() -> Unavailable:
    """What a client is told whose answer the end of the service cuts off."""
    message = "The service stopped before the answer was complete."
    return Unavailable(message, code="stopping", retry_after=RETRY_AFTER)


class Exchange(Generic[R]):
    """One request and its response."""

    def __init__(self, service: Service, dialect: Dialect[R], send: Send) -> None:
        self._service = service
        self._dialect = dialect
        self._send = send
        self._stream: EventStream | None = None
        self._format: StreamFormat | None = None
        self._headers: Headers = ()
        self._writer: ChunkWriter | None = None
        self._respond: Respond | None = None
        self.status = 499

    async def run(self, scope: Scope, receive: Receive) -> None:
        """Answer the request, if it can be answered; `fail` tells the client of what is raised."""
        service, dialect = self._service, self._dialect
        headers = header_map(scope)
        self._headers = dialect.headers(scope)
        self._writer = scope["state"].get("chunks")
        self._respond = scope["state"].get("respond")
        caller = service.keys.authenticate(headers)
        caller.require("chat", "This endpoint")
        # Who would be refused is, before a body is read. The place is taken once the request is known to be good.
        service.admission.check(caller.tenant)
        limits = service.contract.service
        body = await read_body(scope, receive, limits.max_body_bytes, limits.body_timeout)
        # A large body is decoded on a thread, since the others' requests would wait for it.
        parse = dialect.parse
        request = parse(body) if len(body) < LARGE_BODY else await asyncio.to_thread(parse, body)
        del body
        trace = headers.get(b"x-macaron-trace") == b"1"
        if trace:
            caller.require("trace", "`x-macaron-trace`")
        turn = turn_request(service, caller, request, headers, dialect.id_prefix, dialect.session_headers)
        # In this order: a client that leaves while it waits gives its place in the queue back.
        with CancelOnDisconnect(scope, receive) as client:
            # Which turns run it is decided once it has a place: what is in force may change while it waits.
            async with (
                service.admission.place(caller.tenant),
                aclosing(service.turns_of(caller.tenant).run(turn, self._put if request.stream else None)) as events,
            ):
                await (self._streamed if request.stream else self._whole)(events, turn.id, request, trace)
            self.status = 200
        if client.left:
            self.status = 499

    async def fail(self, error: MacaronError) -> None:
        """Tell the client: with a status before the response has begun, else with an event in it."""
        if self._stream is not None and self._format is not None and self._stream.begun:
            await self._stream.end(self._format.error(error))
        else:
            body, headers = self._dialect.error_body(error), (*error_headers(error), *self._headers)
            await send_body(self._send, error.status, body, headers)

    def close(self) -> None:
        """Whatever happened, nothing is written any more."""
        if self._stream is not None:
            self._stream.close()

    async def _whole(self, events: AsyncGenerator[TurnEvent, None], name: str, request: R, trace: bool) -> None:
        chosen: Chosen | None = None
        body, headers = b"", self._headers
        async for event in events:
            match event:
                case Chosen():
                    chosen = event
                    self._service.metrics.turn(event.specialist.label, event.reason)
                case Answered():
                    shown = chosen if trace else None
                    told = Told(name, int(time.time()), self._service.served, shown)
                    body = self._dialect.whole(told, request, event)
                    headers = (JSON, *self._headers, *trace_headers(shown, event))
                case Done():
                    if self._respond is None or not self._respond(body, headers):
                        await send_body(self._send, 200, body, headers)

    async def _streamed(self, events: AsyncGenerator[TurnEvent, None], name: str, request: R, trace: bool) -> None:
        last = b""
        stream: EventStream | None = None
        # A local name, since every chunk passes here.
        chunks: Callable[[Sequence[Delta]], bytes] | None = None
        async for event in events:
            match event:
                case list() if stream is not None and chunks is not None:
                    await stream.write(chunks(event))
                case Chosen():
                    self._service.metrics.turn(event.specialist.label, event.reason)
                    shown = event if trace else None
                    stream = self._stream = EventStream(
                        self._send, (*self._headers, *trace_headers(shown)), self._writer
                    )
                    told = Told(name, int(time.time()), self._service.served, shown)
                    self._format = self._dialect.stream(told, request)
                    chunks = self._format.chunks
                case Answered() if self._format is not None:
                    last = self._format.finish(event)
                case Done() if stream is not None:
                    await stream.end(last)

    def _put(self, deltas: Sequence[Delta]) -> bool:
        """See `mol.early.Early`."""
        if self._stream is None or self._format is None or not self._stream.open:
            return False
        if data := self._format.chunks(deltas):
            self._stream.put(data)
        return True


def told_error(scope: Scope, error: Exception) -> MacaronError:
    """What the client is told of an error; the log is told what only the operator should read."""
    if isinstance(error, MacaronError):
        if error.status >= 500:
            log.warning("request %s: %s", scope["state"]["request_id"].decode(), error.detail or error.message)
        return error
    if isinstance(error, RecursionError):
        # The engine's request is written from deeper in the stack than the client's was read.
        return BadRequest("The request's JSON is nested too deeply; flatten it.", code="invalid_json")
    return fault(scope, error)


def trace_metadata(chosen: Chosen | None, done: Answered | None = None) -> dict[str, str] | None:
    """Who answers, why, and how long each hop took, for the formats whose responses have `metadata`."""
    if chosen is None:
        return None
    metadata = {
        "macaron_adapter": chosen.specialist.label,
        "macaron_revision": chosen.specialist.revision,
        "macaron_session": chosen.session,
        "macaron_reason": chosen.reason,
    }
    for hop in done.hops if done else chosen.hops:
        metadata[f"macaron_{hop.kind}_seconds"] = f"{hop.seconds:.4f}"
    return metadata


def trace_headers(chosen: Chosen | None, done: Answered | None = None) -> Headers:
    """Who answers, and the hops so far, where the client may see it."""
    if chosen is None:
        return ()
    kinds = [hop.kind for hop in (done.hops if done else chosen.hops)]
    if done is None:
        kinds.append("answer")
    return (
        (b"x-macaron-adapter", chosen.specialist.label.encode()),
        (b"x-macaron-session", chosen.session.encode()),
        (b"x-macaron-hops", ",".join(kinds).encode()),
    )
