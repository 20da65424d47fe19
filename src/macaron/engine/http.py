"""What the engines behind a Chat Completions server share; a subclass says how its server is addressed."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from macaron.conversation import AnswerEvent, Delta, Usage
from macaron.engine.base import Capabilities, ChatMessage, Choice, EngineEvent, Health, HopRequest, Sink
from macaron.engine.dialect import EventParser, encode_body, error_from_reply, events_from_completion
from macaron.engine.labels import parse_label
from macaron.engine.link.base import Link, Reply
from macaron.engine.special import SpecialTokens
from macaron.errors import EngineError, EngineTimeout, MacaronError, NotSupported

CHAT: Final = "/v1/chat/completions"
JSON: Final = {"content-type": "application/json"}
PROBE_TIMEOUT: Final = 5.0
FORWARD_TIMEOUT: Final = 600.0
ADAPTER_TIMEOUT: Final = 300.0
REASON_LENGTH: Final = 500
# How long to wait for the end of a body whose last event has come, so that its connection can be used again.
DRAIN_TIMEOUT: Final = 0.02

T = TypeVar("T")


class ModelCard(Struct):
    """One entry of `/v1/models`; an adapter has the base as its `parent`."""

    id: str
    parent: str | None = None
    max_model_len: int | None = None


class _ModelList(Struct):
    data: list[ModelCard] = []


class HttpEngine(ABC):
    """An `Engine` in front of a server that speaks Chat Completions over a link.

    Args:
        link: to the server; it belongs to the engine from now on.
        base_model: the name under which the server knows the bare base.
        special: the tokenizer's control tokens; every hop is freed of them in one place.
        context_length: tokens, used as long as the server does not say.
    """

    health_path: str | None = "/health"

    def __init__(
        self, link: Link, *, base_model: str, special: SpecialTokens, context_length: int | None = None
    ) -> None:
        self._link = link
        self._base_model = base_model
        self._special = special
        self._context_length = context_length

    @property
    @abstractmethod
    def kind(self) -> str:
        """See `Engine.kind`."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """See `Engine.capabilities`."""

    @abstractmethod
    def _address(self, hop: HopRequest) -> dict[str, Any]:
        """The fields that choose the model and the adapter."""

    @abstractmethod
    def _constraint(self, hop: HopRequest) -> dict[str, Any]:
        """The fields that constrain a route hop to its labels, going on after its prefill."""

    async def start(self) -> None:
        """See `Engine.start`. A server that is not up yet is asked again with every `health`."""
        with suppress(MacaronError):
            await self._list_models()

    async def close(self) -> None:
        """See `Engine.close`."""
        await self._link.close()

    async def choose(self, hop: HopRequest) -> Choice:
        """See `Engine.choose`."""
        fields = {"temperature": 0, **self._constraint(hop), **self._address(hop), "stream": False}
        body = self._render(hop, hop.options, fields, hop.prefill)
        return choice_from(await self._complete(body, hop.timeout), hop.choices, hop.prefill)

    async def answer(self, hop: HopRequest, sink: Sink | None = None) -> AsyncGenerator[Sequence[EngineEvent], None]:
        """See `Engine.answer`. Closing the iterator closes the connection, upon which the server ends its work."""
        body = await self._answer_body(hop)
        choices, shown = _choices(hop.options), not hop.sampled or bool(hop.options.get("logprobs"))
        if not hop.stream:
            whole = await self._link.request("POST", CHAT, body, JSON, timeout=hop.timeout)
            yield _events(whole, choices, sampled=hop.sampled, logprobs=shown)
            return
        parser = EventParser(choices=choices, sampled=hop.sampled, logprobs=shown)
        async with self._link.stream("POST", CHAT, body, JSON, timeout=hop.timeout) as reply:
            if reply.status != 200 or "json" in reply.headers.get("content-type", ""):
                whole = Reply(reply.status, reply.headers, await reply.read())
                yield _events(whole, choices, sampled=hop.sampled, logprobs=shown)
                return
            intake = _Intake(parser, sink)
            more = True
            while more and not parser.ended:
                try:
                    more = await reply.pour(intake.take)
                except EngineError:
                    if parser.ended or not parser.complete:
                        raise
                    more = False
                if intake.events:
                    yield intake.events
                    intake.events = []
            last = parser.finish()
            if last:
                yield last
            with suppress(EngineError):
                await Deadline(DRAIN_TIMEOUT).bound(anext(aiter(reply.chunks()), None))

    async def health(self) -> Health:
        """See `Engine.health`."""
        try:
            if self.health_path is not None:
                reply = await self._link.request("GET", self.health_path, timeout=PROBE_TIMEOUT)
                if reply.status != 200:
                    return Health(False, f"The engine's {self.health_path} answered {reply.status}.")
            cards = await self._list_models()
        except MacaronError as error:
            return Health(False, error.message)
        adapters = tuple(card.id for card in cards if card.parent is not None)
        return Health(True, adapters=adapters, models=tuple(card.id for card in cards))

    async def count_tokens(self, messages: Sequence[ChatMessage], options: Mapping[str, Any]) -> int | None:
        """See `Engine.count_tokens`; this dialect has no way to ask."""
        return None

    async def forward(self, path: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """See `Forwarding.forward`."""
        clean = {name: self._special.neutralise_value(value) for name, value in fields.items()}
        body = encode_body({**clean, "model": self._base_model})
        reply = await self._link.request("POST", path, body, JSON, timeout=FORWARD_TIMEOUT)
        if reply.status in (404, 405, 501):
            raise NotSupported(f"The {self.kind} engine behind this model has no {path}.")
        if reply.status != 200:
            raise error_from_reply(reply.status, reply.body, retry_after=_retry_after(reply.headers))
        try:
            return msgspec.json.decode(reply.body, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as error:
            raise EngineError(f"The engine's answer at {path} is no JSON object ({error}).") from None

    async def list_adapters(self) -> frozenset[str]:
        """See `Pluggable.list_adapters`."""
        return frozenset(card.id for card in await self._list_models() if card.parent is not None)

    async def _adapter_call(self, path: str, body: Mapping[str, Any], remedy: str) -> bytes:
        """A call that loads or unloads an adapter; gives the reply's body.

        Raises:
            EngineError: the engine refused or failed; where it has no such call, `remedy` says what to do.
        """
        reply = await self._link.request("POST", path, encode_body(body), JSON, timeout=ADAPTER_TIMEOUT)
        if reply.status == 200:
            return reply.body
        if reply.status in (404, 405) and b"adapter" not in reply.body.lower():
            raise EngineError(f"The engine has no {path}; {remedy}.", code="adapters_are_fixed")
        error = error_from_reply(reply.status, reply.body)
        # Whoever registers an adapter has to know what the engine itself says of it.
        said = (error.detail or error.message)[:REASON_LENGTH]
        raise EngineError(f"The engine's {path} answered {reply.status}: {said}", code="adapter_call_failed")

    async def _answer_body(self, hop: HopRequest) -> bytes:
        return self._render(hop, hop.options, self._answer_fields(hop))

    def _answer_fields(self, hop: HopRequest) -> dict[str, Any]:
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        sampled = self._sampled_fields() if hop.sampled else {}
        return {**self._address(hop), **sampled, **(streamed if hop.stream else {"stream": False})}

    def _sampled_fields(self) -> dict[str, Any]:
        """The fields by which the server tells an answer's tokens; none where it cannot."""
        return {}

    def _render(
        self, hop: HopRequest, options: Mapping[str, Any], fields: Mapping[str, Any], prefill: str = ""
    ) -> bytes:
        """The body of a hop. Every hop passes here, so that no control token of a client's gets past."""
        messages = [*hop.messages, {"role": "assistant", "content": prefill}] if prefill else hop.messages
        body = encode_body({**options, **fields, "messages": messages})
        if not self._special.may_be_in(body, messages):
            return body
        clean, shown = self._special.neutralise_body(messages, options)
        if clean is messages and shown is options:
            return body
        return encode_body({**shown, **fields, "messages": clean})

    async def _complete(self, body: bytes, timeout: float) -> list[AnswerEvent]:
        return _events(await self._link.request("POST", CHAT, body, JSON, timeout=timeout))

    async def _list_models(self) -> list[ModelCard]:
        reply = await self._link.request("GET", "/v1/models", timeout=PROBE_TIMEOUT)
        if reply.status != 200:
            raise error_from_reply(reply.status, reply.body, retry_after=_retry_after(reply.headers))
        try:
            cards = msgspec.json.decode(reply.body, type=_ModelList).data
        except (msgspec.DecodeError, RecursionError) as error:
            raise EngineError(f"The engine's /v1/models is no list of models ({error}).") from None
        named = [card for card in cards if card.id == self._base_model]
        bases = named or [card for card in cards if card.parent is None]
        if len(bases) == 1 and bases[0].max_model_len:
            self._context_length = bases[0].max_model_len
        return cards


class _Intake:
    """Parses the pieces of an answer where they arrive. `events` are those that the sink has not taken."""

    def __init__(self, parser: EventParser, sink: Sink | None) -> None:
        self._parser = parser
        self._sink = sink
        self.events: list[AnswerEvent] = []

    def take(self, data: bytes) -> bool:
        """See `StreamReply.pour`."""
        events = self._parser.feed(data)
        if events and (self._sink is None or not self._sink(events)):
            self.events = events
            return False
        return not self._parser.ended


class Deadline:
    """The time by which a hop has to be over; only waiting for the engine counts against it, not the consumer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = asyncio.get_running_loop().time() + seconds

    def remaining(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self._end - asyncio.get_running_loop().time())

    async def bound(self, waiting: Awaitable[T]) -> T:
        """The result of `waiting`, which is cancelled when the time is over.

        Raises:
            EngineTimeout: it was.
        """
        try:
            async with asyncio.timeout_at(self._end):
                return await waiting
        except TimeoutError:
            raise EngineTimeout(f"The engine did not finish within the hop's {self._seconds:g} seconds.") from None


def _events(reply: Reply, choices: int = 1, *, sampled: bool = False, logprobs: bool = True) -> list[AnswerEvent]:
    if reply.status != 200:
        raise error_from_reply(reply.status, reply.body, retry_after=_retry_after(reply.headers))
    return events_from_completion(reply.body, choices, sampled=sampled, logprobs=logprobs)


def choice_from(events: Sequence[AnswerEvent], labels: Sequence[str], prefill: str) -> Choice:
    """What a route hop said, from the events of its only choice."""
    text, reasoning, usage = "", "", Usage()
    for event in events:
        match event:
            case Delta(choice=0):
                text += event.text
                reasoning += event.reasoning
            case Usage():
                usage = event
    if not text and reasoning.strip() in labels:
        # Some reasoning parsers take a constrained answer for thinking, because no end of thinking comes in it.
        text = reasoning
    return Choice(parse_label(text, labels, prefill), text, usage)


def labels_after(prefill: str, labels: Sequence[str]) -> list[str]:
    """What of each label is still to be written, where the prefill's end is the beginning of all of them."""
    for start in range(len(prefill)):
        begun = prefill[start:]
        if all(label.startswith(begun) and label != begun for label in labels):
            return [label.removeprefix(begun) for label in labels]
    return list(labels)


def _choices(options: Mapping[str, Any]) -> int:
    count = options.get("n")
    return count if isinstance(count, int) and count > 0 else 1


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a Retry-After header; one that is a date is left out."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds <= 86_400 else None
