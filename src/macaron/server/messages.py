"""The dialect of `POST /v1/messages`."""

from __future__ import annotations

from starlette.types import Scope

from macaron.errors import MacaronError
from macaron.mol.events import Answered
from macaron.server.exchange import StreamFormat, Told
from macaron.server.requests import SESSION_HEADERS
from macaron.server.respond import Headers, anthropic_ids
from macaron.wire.messages import MessagesRequest, messages_request
from macaron.wire.messages_answer import message, usage_object
from macaron.wire.messages_error import anthropic_error_body
from macaron.wire.messages_stream import MessagesStream


class MessagesDialect:
    """See `Dialect`. Its responses have no place for a trace, which is in the headers only."""

    endpoint = "messages"
    id_prefix = "msg_"
    session_headers = (*SESSION_HEADERS, b"x-claude-code-session-id")

    def parse(self, body: bytes) -> MessagesRequest:
        """See `Dialect.parse`."""
        return messages_request(body)

    def whole(self, told: Told, request: MessagesRequest, answered: Answered) -> bytes:
        """See `Dialect.whole`."""
        usage = usage_object(answered.usage, answered.hops)
        return message(told.id, told.model, answered.answers[0], usage, thinking=request.thinking)

    def stream(self, told: Told, request: MessagesRequest) -> StreamFormat:
        """See `Dialect.stream`."""
        stream = MessagesStream(told.id, told.model, thinking=request.thinking)
        return StreamFormat(
            stream.chunks,
            lambda answered: stream.finish(answered.answers[0], answered.usage, answered.hops),
            stream.error,
        )

    def headers(self, scope: Scope) -> Headers:
        """See `Dialect.headers`."""
        return anthropic_ids(scope)

    def error_body(self, error: MacaronError) -> bytes:
        """See `Dialect.error_body`."""
        return anthropic_error_body(error)
