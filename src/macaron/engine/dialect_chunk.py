"""The shapes of a chat completion and of its chunks, as far as they are read."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from macaron.engine.dialect_error import error_from_payload
from macaron.errors import EngineError


class Function(Struct):
    """What a call calls; some engines send the arguments decoded."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class Call(Struct):
    """A tool call, or a piece of one."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class AnswerMessage(Struct):
    """A delta or a message; engines differ in the name under which they send reasoning."""

    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None


class ChunkChoice(Struct):
    """What a chunk says of one choice."""

    index: int | None = None
    delta: AnswerMessage | None = None
    message: AnswerMessage | None = None
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None
    token_ids: Any = None


TokenId = Annotated[int, Meta(ge=0, lt=2**31)]


class TokenEntry(Struct):
    """What of one token's log-probabilities is recorded; an engine of llama.cpp's says its id here."""

    logprob: float
    id: TokenId | None = None


class TokenEntries(Struct):
    """Log-probabilities without the alternatives and bytes, of which nobody asked for any."""

    content: list[TokenEntry] | None = None


class TokenChoice(Struct):
    """As `ChunkChoice`, where tokens are recorded and the client wants no log-probabilities: a fifth of the work."""

    index: int | None = None
    delta: AnswerMessage | None = None
    message: AnswerMessage | None = None
    finish_reason: str | None = None
    logprobs: TokenEntries | None = None
    token_ids: list[TokenId] | None = None


class PromptDetails(Struct):
    """What of the prompt came from a cache."""

    cached_tokens: int | None = None


class CompletionDetails(Struct):
    """What of the answer was reasoning."""

    reasoning_tokens: int | None = None


class UsageCounts(Struct):
    """Tokens as the engine counted them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    reasoning_tokens: int | None = None


class Chunk(Struct):
    """One event of a stream, or a whole completion."""

    choices: list[ChunkChoice] | None = None
    usage: UsageCounts | None = None
    prompt_token_ids: Any = None
    error: Any = None
    object: Any = None


class TokenChunk(Struct):
    """As `Chunk`, of `TokenChoice`s."""

    choices: list[TokenChoice] | None = None
    usage: UsageCounts | None = None
    prompt_token_ids: list[TokenId] | None = None
    error: Any = None
    object: Any = None


_CHUNK: Final = msgspec.json.Decoder(Chunk)
_TOKEN_CHUNK: Final = msgspec.json.Decoder(TokenChunk)


def decoded_chunk(payload: bytes, what: str, *, tokens: bool = False) -> Chunk | TokenChunk:
    """A chunk, or a whole completion, which differs only in `message` for `delta`.

    Args:
        tokens: a `TokenChunk` is enough; a payload whose tokens are not of its shape is read as a `Chunk` all the same.

    Raises:
        EngineError: the payload cannot be understood, or says that the engine failed.
        BadRequest: the payload says that the request was wrong.
    """
    if tokens:
        with suppress(msgspec.DecodeError, RecursionError):
            quick = _TOKEN_CHUNK.decode(payload)
            if quick.error is None and quick.object != "error":
                return quick
    try:
        chunk = _CHUNK.decode(payload)
        refused = chunk.error is not None or chunk.object == "error"
        complaint = msgspec.json.decode(payload) if refused else None
    except (msgspec.DecodeError, RecursionError) as error:
        raise EngineError(
            f"The engine sent a corrupt {what} ({error}); check that its address speaks Chat Completions.",
            code="corrupt_engine_answer",
        ) from None
    if refused:
        raise error_from_payload(None, complaint)
    return chunk
