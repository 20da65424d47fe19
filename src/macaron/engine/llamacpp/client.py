"""The calls of llama.cpp's server that the engine uses, over a link."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from macaron.conversation import AnswerEvent
from macaron.engine.base import ChatMessage
from macaron.engine.dialect import EventParser, encode_body, error_from_reply
from macaron.engine.link.base import Link
from macaron.errors import EngineError, MacaronError

COMPLETIONS = "/v1/chat/completions"
JSON_HEADERS = {"content-type": "application/json"}
SHORT_TIMEOUT = 30.0
HEALTH_TIMEOUT = 5.0


class _Rendered(Struct):
    prompt: str


class _Token(Struct):
    id: int
    piece: str | list[int]


class _Tokens(Struct):
    tokens: list[_Token]


class _Generation(Struct):
    n_ctx: int


class _Props(Struct):
    total_slots: int
    default_generation_settings: _Generation


class _Adapter(Struct):
    id: int


Shape = TypeVar("Shape", _Rendered, _Tokens, _Props, list[_Adapter])


class Layout(NamedTuple):
    """What a server was launched with: slots, tokens a slot holds, adapters."""

    slots: int
    slot_context: int
    adapters: int


class ServerClient:
    """One engine process over `link`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def close(self) -> None:
        """Close the link."""
        await self._link.close()

    async def stream(
        self, body: Mapping[str, Any], *, sampled: bool = False, logprobs: bool = True
    ) -> AsyncGenerator[Sequence[AnswerEvent], None]:
        """A streamed chat completion; leaving the iteration cancels it in the engine. `sampled` and `logprobs` as for
        `EventParser`.

        Raises:
            BadRequest, ContextOverflow, EngineError: as the engine refused it, or failed.
        """
        parser = EventParser(sampled=sampled, logprobs=logprobs)
        async with self._link.stream("POST", COMPLETIONS, encode_body(body), JSON_HEADERS) as reply:
            if reply.status != 200:
                raise error_from_reply(reply.status, await reply.read())
            async for chunk in reply.chunks():
                events = parser.feed(chunk)
                if events:
                    yield events
        yield parser.finish()

    async def tokenize(self, text: str) -> list[tuple[int, str]]:
        """Token ids of `text` and what each stands for; empty for a token that is not text by itself."""
        body = {"content": text, "add_special": True, "parse_special": True, "with_pieces": True}
        tokens = (await self._post("/tokenize", body, _Tokens)).tokens
        return [(token.id, token.piece if isinstance(token.piece, str) else "") for token in tokens]

    async def render(self, messages: Sequence[ChatMessage], template_kwargs: Mapping[str, Any]) -> str:
        """The prompt that the engine's template makes of `messages`."""
        body = {"messages": messages, "chat_template_kwargs": template_kwargs}
        return (await self._post("/apply-template", body, _Rendered)).prompt

    async def fault(self) -> str | None:
        """Why the engine cannot serve now, None where it can. Of all calls only this one never waits for its work."""
        try:
            reply = await self._link.request("GET", "/health", timeout=HEALTH_TIMEOUT)
        except MacaronError as error:
            return error.message
        return None if reply.status == 200 else error_from_reply(reply.status, reply.body).message

    async def layout(self) -> Layout:
        """The server's own word; it waits for the engine's work, so ask once."""
        props = await self._call("GET", "/props", None, _Props)
        adapters = await self._call("GET", "/lora-adapters", None, list[_Adapter])
        return Layout(props.total_slots, props.default_generation_settings.n_ctx, len(adapters))

    async def _post(self, path: str, body: Mapping[str, Any], shape: type[Shape]) -> Shape:
        return await self._call("POST", path, encode_body(body), shape)

    async def _call(self, method: str, path: str, body: bytes | None, shape: type[Shape]) -> Shape:
        reply = await self._link.request(method, path, body, JSON_HEADERS, timeout=SHORT_TIMEOUT)
        if reply.status != 200:
            raise error_from_reply(reply.status, reply.body)
        try:
            return msgspec.json.decode(reply.body, type=shape)
        except msgspec.MsgspecError as error:
            raise EngineError(f"The engine's reply to {path} cannot be read: {error}.") from None
