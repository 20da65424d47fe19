"""The engine double's replies, encoded once and kept: building them must cost the benchmark nothing."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

WORDS = (
    "plain",
    " sugar",
    " shell",
    " with",
    " almond",
    " cream",
    " and",
    " jam",
    ",",
    " baked",
    " twice",
    ".",
    " Then",
)
PROMPT_TOKENS = 120
CONTEXT_LENGTH = 262_144
EVENTS_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
REASONS = {200: "OK", 404: "Not Found"}


class Reply(msgspec.Struct, frozen=True):
    """A reply as bytes: `whole` with its headers; `frames`, for a stream, one a token without them."""

    whole: bytes
    frames: tuple[bytes, ...] = ()


def encode_json(value: Any, status: int = 200) -> bytes:
    """A JSON response with its headers."""
    body = msgspec.json.encode(value)
    head = (
        f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@lru_cache(maxsize=1)
def models_reply() -> bytes:
    """The base and four adapters on it, as vLLM lists them."""
    base: dict[str, Any] = {"id": "base", "object": "model", "created": 0, "owned_by": "vllm", "root": "base"}
    base |= {"parent": None, "max_model_len": CONTEXT_LENGTH}
    labels = [base | {"id": f"L{n}", "root": f"/loras/L{n}", "parent": "base", "max_model_len": None} for n in range(4)]
    return encode_json({"object": "list", "data": [base, *labels]})


def answer_text(tokens: int) -> str:
    """What every answer of that length says."""
    return "".join(_words(tokens))


@lru_cache(maxsize=32)
def route_reply(label: str) -> Reply:
    """A label in one token."""
    return Reply(encode_json(_completion(label, 1)))


@lru_cache(maxsize=64)
def answer_reply(tokens: int, stream: bool, usage: bool) -> Reply:
    """An answer of `tokens` words, as one JSON object or as an event a word."""
    if not stream:
        return Reply(encode_json(_completion(answer_text(tokens), tokens)))
    events = [[_event({"content": word})] for word in _words(tokens)]
    events[0].insert(0, _event({"role": "assistant", "content": ""}))
    events[-1].append(_event({}, "stop"))
    if usage:
        events[-1].append(_data(_envelope("chat.completion.chunk") | {"choices": [], "usage": _usage(tokens)}))
    events[-1].append(b"data: [DONE]\n\n")
    frames = [b"".join(_chunk(event) for event in group) for group in events]
    frames[-1] += b"0\r\n\r\n"
    return Reply(EVENTS_HEAD + b"".join(frames), tuple(frames))


def _words(tokens: int) -> list[str]:
    return [WORDS[n % len(WORDS)] for n in range(tokens)]


def _envelope(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-double", "object": kind, "created": 0, "model": "base"}


def _usage(tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": tokens,
        "total_tokens": PROMPT_TOKENS + tokens,
    }


def _completion(text: str, tokens: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "reasoning": None, "tool_calls": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return _envelope("chat.completion") | {"choices": [choice], "usage": _usage(tokens)}


def _event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _data(_envelope("chat.completion.chunk") | {"choices": [choice]})


def _data(value: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
