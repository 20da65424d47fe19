"""`POST /v1/chat/completions`."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from starlette.types import Receive, Scope, Send

from macaron.conversation import Delta, Item, Media, Message, ToolResult
from macaron.errors import BadRequest, MacaronError, NotFound, Unavailable
from macaron.mol.lookup import TurnRequest
from macaron.mol.turn import Answered, Chosen, Done, TurnEvent
from macaron.server.admission import RETRY_AFTER
from macaron.server.keys import Caller
from macaron.server.receive import CancelOnDisconnect, ClientLeft, header_map, read_body
from macaron.server.respond import JSON, Headers, Respond, fault, request_id, send_body, send_error
from macaron.server.service import Service
from macaron.server.stream import ChunkWriter, EventStream
from macaron.wire.chat import MEDIA_FIELDS, ChatRequest, chat_request
from macaron.wire.chat_answer import ChatStream, completion, usage_object
from macaron.wire.chat_options import VENDOR_OPTIONS

log = logging.getLogger("macaron.server")

SESSION_HEADERS = (b"x-session-id", b"session-id", b"x-conversation-id")
MAX_SESSION_NAME = 256


class ChatEndpoint:
    """Serves Chat Completions. A raw ASGI application, since every request passes through it."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        clock = time.perf_counter()
        exchange = _Exchange(self._service, send)
        status = 499
        try:
            await exchange.run(scope, receive)
            status = exchange.status
        except ClientLeft:
            pass
        except asyncio.CancelledError:
            # Only the end of the service comes from outside; who waits is told rather than left with half an answer.
            message = "The service stopped before the answer was complete."
            status = Unavailable.status
            await exchange.fail(Unavailable(message, code="stopping", retry_after=RETRY_AFTER))
        except Exception as error:
            told = error if isinstance(error, MacaronError) else _own_fault(scope, error)
            status = told.status
            if status >= 500 and told is error:
                log.warning("request %s: %s", scope["state"]["request_id"].decode(), told.detail or told.message)
            await exchange.fail(told)
        finally:
            exchange.close()
            self._service.metrics.request("chat", status, time.perf_counter() - clock)


class _Exchange:
    """One request and its response."""

    def __init__(self, service: Service, send: Send) -> None:
        self._service = service
        self._send = send
        self._stream: EventStream | None = None
        self._chunks: ChatStream | None = None
        self._headers: Headers = ()
        self._writer: ChunkWriter | None = None
        self._respond: Respond | None = None
        self.status = 499

    async def run(self, scope: Scope, receive: Receive) -> None:
        service = self._service
        headers = header_map(scope)
        self._headers = request_id(scope)
        self._writer = scope["state"].get("chunks")
        self._respond = scope["state"].get("respond")
        caller = service.keys.authenticate(headers)
        caller.require("chat", "This endpoint")
        # Who would be refused is, before a body is read. The place is taken once the request is known to be good.
        service.admission.check(caller.tenant)
        limits = service.contract.service
        body = await read_body(scope, receive, limits.max_body_bytes, limits.body_timeout)
        # A large body is decoded on a thread, since the others' requests would wait for it.
        chat = chat_request(body) if len(body) < 1_000_000 else await asyncio.to_thread(chat_request, body)
        del body
        trace = headers.get(b"x-macaron-trace") == b"1"
        if trace:
            caller.require("trace", "`x-macaron-trace`")
        turn = turn_request(service, caller, chat, headers)
        # In this order: a client that leaves while it waits gives its place in the queue back.
        with CancelOnDisconnect(scope, receive) as client:
            # Which turns run it is decided once it has a place: what is in force may change while it waits.
            async with (
                service.admission.place(caller.tenant),
                aclosing(service.turns_of(caller.tenant).run(turn, self._put if chat.stream else None)) as events,
            ):
                await (self._streamed if chat.stream else self._whole)(events, turn, chat, trace)
            self.status = 200
        if client.left:
            self.status = 499

    async def fail(self, error: MacaronError) -> None:
        """Tell the client: with a status before the response has begun, else with an event in it."""
        if self._stream is not None and self._chunks is not None and self._stream.begun:
            await self._stream.end(self._chunks.error(error))
        else:
            await send_error(self._send, error, self._headers)

    def close(self) -> None:
        """Whatever happened, nothing is written any more."""
        if self._stream is not None:
            self._stream.close()

    async def _whole(
        self, events: AsyncGenerator[TurnEvent, None], turn: TurnRequest, chat: ChatRequest, trace: bool
    ) -> None:
        chosen: Chosen | None = None
        body, headers = b"", self._headers
        async for event in events:
            match event:
                case Chosen():
                    chosen = event
                    self._service.metrics.turn(event.specialist.label, event.reason)
                case Answered():
                    shown = chosen if trace else None
                    usage = usage_object(event.usage, event.hops)
                    body = completion(
                        turn.id, int(time.time()), self._service.served, event.answers, usage, _metadata(shown, event)
                    )
                    headers = (JSON, *self._headers, *_trace_headers(shown, event))
                case Done():
                    if self._respond is None or not self._respond(body, headers):
                        await send_body(self._send, 200, body, headers)

    async def _streamed(
        self, events: AsyncGenerator[TurnEvent, None], turn: TurnRequest, chat: ChatRequest, trace: bool
    ) -> None:
        last = b""
        async for event in events:
            match event:
                case list() if self._stream and self._chunks:
                    await self._stream.write(self._chunks.chunks(event))
                case Chosen():
                    self._service.metrics.turn(event.specialist.label, event.reason)
                    shown = event if trace else None
                    self._stream = EventStream(self._send, (*self._headers, *_trace_headers(shown)), self._writer)
                    self._chunks = ChatStream(
                        turn.id,
                        int(time.time()),
                        self._service.served,
                        include_usage=chat.include_usage,
                        metadata=_metadata(shown),
                    )
                case Answered() if self._chunks:
                    last = self._chunks.finish(event.finishes, usage_object(event.usage, event.hops))
                case Done() if self._stream:
                    await self._stream.end(last)

    def _put(self, deltas: Sequence[Delta]) -> bool:
        """See `mol.turn.Early`."""
        if self._stream is None or self._chunks is None or not self._stream.open:
            return False
        self._stream.put(self._chunks.chunks(deltas))
        return True


def _own_fault(scope: Scope, error: Exception) -> MacaronError:
    if isinstance(error, RecursionError):
        # The engine's request is written from deeper in the stack than the client's was read.
        return BadRequest("The request's JSON is nested too deeply; flatten it.", code="invalid_json")
    return fault(scope, error)


def turn_request(service: Service, caller: Caller, chat: ChatRequest, headers: Mapping[bytes, bytes]) -> TurnRequest:
    """A Chat request as a turn, checked against what this service and its engine can do.

    Raises:
        NotFound: the model is not served here.
        BadRequest: the engine cannot honour an option or a kind of content.
        Forbidden: the key may not pin a specialist.
    """
    if not service.serves(chat.model):
        message = f"The model `{chat.model[:80]}` is not served here; ask for `{service.served}`."
        raise NotFound(message, param="model", code="model_not_found")
    _check_options(service, chat)
    _check_media(service, (*chat.system, *chat.items))
    pin = headers.get(b"x-macaron-adapter")
    if pin is not None:
        caller.require("pin", "`x-macaron-adapter`")
    scope = f"{caller.tenant}\x1f{chat.user}"
    return TurnRequest(
        id=service.ids.new("chatcmpl-"),
        tenant=caller.tenant,
        user=chat.user,
        system=chat.system,
        items=chat.items,
        tools=chat.tools,
        options=chat.options,
        stream=chat.stream,
        n=chat.n,
        session=_session(scope, headers),
        pin=pin.decode("latin-1") if pin is not None else None,
    )


def session_id(scope: str, name: str) -> str:
    """The id of a session that a client named: the same name in another scope is another session."""
    return "sess_" + hashlib.sha256(f"{scope}\x1f{name}".encode()).hexdigest()[:32]


def _session(scope: str, headers: Mapping[bytes, bytes]) -> str | None:
    for header in SESSION_HEADERS:
        if value := headers.get(header):
            if len(value) > MAX_SESSION_NAME:
                name = header.decode()
                raise BadRequest(f"`{name}` is longer than {MAX_SESSION_NAME} characters.", param=name)
            return session_id(scope, value.decode("latin-1"))
    return None


def _check_options(service: Service, chat: ChatRequest) -> None:
    capabilities = service.engine.capabilities
    for name in chat.options:
        if name in VENDOR_OPTIONS and name not in capabilities.extra_options:
            raise BadRequest(
                f"`{name}` is not understood by the {service.engine.kind} engine behind this model.",
                param=name,
                code="unsupported_parameter",
            )
    if chat.options.get("logprobs") and not capabilities.logprobs:
        raise BadRequest("The engine gives no log-probabilities.", param="logprobs", code="unsupported_parameter")


def _check_media(service: Service, items: tuple[Item, ...]) -> None:
    for item in items:
        if isinstance(item, Message | ToolResult):
            for part in item.parts:
                if isinstance(part, Media):
                    _check_part(service, part)


def _check_part(service: Service, part: Media) -> None:
    if not service.engine.capabilities.media:
        raise BadRequest(
            f"The model reads text only; leave the `{part.kind}` part out.",
            param="messages",
            code="unsupported_content",
        )
    field = MEDIA_FIELDS[part.kind][0]
    content = part.raw[part.kind][field]
    hosts = service.contract.engine.media_hosts
    # The content of sound is no address but bare base64.
    if ":" in content if field == "data" else not _allowed(content, hosts):
        raise BadRequest(
            "Only `data:` URLs are passed to the engine; send the content itself.",
            param=f"{part.kind}.{field}",
            code="url_not_allowed",
        )


def _allowed(url: str, hosts: tuple[str, ...]) -> bool:
    if url.startswith("data:"):
        return True
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0]
    return scheme == "https" and host in hosts


def _trace_headers(chosen: Chosen | None, done: Answered | None = None) -> Headers:
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


def _metadata(chosen: Chosen | None, done: Answered | None = None) -> dict[str, str] | None:
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
