"""The dialect of `POST /v1/chat/completions`."""

from __future__ import annotations

from starlette.types import Scope

from macaron.errors import MacaronError
from macaron.mol.events import Answered
from macaron.server.exchange import StreamFormat, Told, trace_metadata
from macaron.server.requests import SESSION_HEADERS
from macaron.server.respond import Headers, request_id
from macaron.wire.chat import ChatRequest, chat_request
from macaron.wire.chat_answer import ChatStream, completion, usage_object
from macaron.wire.errors import openai_error_body


class ChatDialect:
    """See `Dialect`."""

    endpoint = "chat"
    id_prefix = "chatcmpl-"
    session_headers = SESSION_HEADERS

    def parse(self, body: bytes) -> ChatRequest:
        """See `Dialect.parse`."""
        return chat_request(body)

    def whole(self, told: Told, request: ChatRequest, answered: Answered) -> bytes:
        """See `Dialect.whole`."""
        usage = usage_object(answered.usage, answered.hops)
        metadata = trace_metadata(told.chosen, answered)
        return completion(told.id, told.created, told.model, answered.answers, usage, metadata)

    def stream(self, told: Told, request: ChatRequest) -> StreamFormat:
        """See `Dialect.stream`."""
        chat = ChatStream(
            told.id,
            told.created,
            told.model,
            include_usage=request.include_usage,
            metadata=trace_metadata(told.chosen),
        )
        return StreamFormat(
            chat.chunks,
            lambda answered: chat.finish(answered.finishes, usage_object(answered.usage, answered.hops)),
            chat.error,
        )

    def headers(self, scope: Scope) -> Headers:
        """See `Dialect.headers`."""
        return request_id(scope)

    def error_body(self, error: MacaronError) -> bytes:
        """See `Dialect.error_body`."""
        return openai_error_body(error)
