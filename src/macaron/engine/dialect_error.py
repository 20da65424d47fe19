"""What an engine's refusal means: for the client, or for the operator."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from macaron.errors import (
    BadRequest,
    ContextOverflow,
    EngineError,
    EngineTimeout,
    MacaronError,
    Unavailable,
)

CLIPPED: Final = 2000
REFUSED: Final = (400, 413, 422)
"""Statuses that speak about the request itself; the others speak about the service's own access to the engine."""

OVERFLOW_NAMES: Final = ("exceed_context_size_error", "context_length_exceeded", "context_window_exceeded")
OVERFLOW_TEXTS: Final = (
    "maximum context length",
    "model's context length",
    "maximum model length",
    "available context size",
    "exceeds the context length",
    "prompt is too long",
)
# Several engines say with the same words that only the room asked for the answer is too large.
ANSWER_TOO_LONG: Final = re.compile(r"'?max_(?:completion_)?tokens'?[^.]{0,60} (?:is )?too large", re.IGNORECASE)
LIMIT: Final = re.compile(
    r"(?:context length|model length|context size|context window)[^0-9]{0,24}?([0-9]{2,9})", re.IGNORECASE
)
ASKED: Final = re.compile(
    r"(?:requested a total of|you requested|resulted in|you passed|the input \(|prompt \(length|prompt contains"
    r"|request has|request contains)[^0-9]{0,12}([0-9]{2,9})",
    re.IGNORECASE,
)


class _Complaint(Struct):
    """An engine's error, read leniently: every field may be missing or of another type."""

    message: str
    code: Any = None
    type: Any = None
    param: str | None = None
    asked: int | None = None
    limit: int | None = None


def error_from_reply(status: int, body: bytes, *, retry_after: float | None = None) -> MacaronError:
    """The error that stands for an engine's reply with a status of 400 and above.

    What the engine says about the request reaches the client in its words (`BadRequest`, `ContextOverflow` where the
    prompt does not fit). What it says about the service's own access, such as 401, 404 or 429, is the operator's
    (`EngineError`, `Unavailable` with `retry_after` in seconds), and so is every failure of its own.
    """
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        payload = body[:CLIPPED].decode("utf-8", "replace").strip()
    return error_from_payload(status, payload, retry_after=retry_after)


def error_from_payload(status: int | None, payload: Any, *, retry_after: float | None = None) -> MacaronError:
    """The same from a decoded error; `status` is None inside a stream, where the payload itself tells it."""
    complaint = _complaint(payload)
    status = _status_of(complaint) if status is None else status
    if status in REFUSED:
        return _refusal(complaint)
    said = f": {complaint.message}" if complaint.message else ""
    match status:
        case 401 | 403:
            # The text may quote a part of the key.
            return EngineError(
                f"The engine refused the service's own key (status {status}); check engine.api_key_env.",
                code="engine_access_denied",
            )
        case 404 | 405:
            return EngineError(
                f"The engine does not know what it was asked for (status {status}); the service's log says more.",
                code="engine_not_found",
                detail=f"The engine does not know the model or path asked for (status {status}){said}; check "
                "engine.address, engine.base_model and the adapters it was started with.",
            )
        case 429:
            return Unavailable(
                "The engine takes no more requests from this service now; try again later.",
                code="engine_overloaded",
                retry_after=retry_after,
            )
        case 503:
            return Unavailable(f"The engine is not ready (status 503){said}.", retry_after=retry_after)
        case 408 | 504:
            return EngineTimeout(f"The engine gave up in time (status {status}){said}.")
        case _:
            return EngineError(f"The engine failed (status {status}){said}.")


def _complaint(payload: Any) -> _Complaint:
    """The forms seen in the wild: OpenAI's object, a bare string, FastAPI's detail, and fields at the top level."""
    match payload:
        case {"error": inner} | {"detail": inner} if inner:
            payload = inner
    match payload:
        case str(message):
            return _Complaint(message[:CLIPPED])
        case {"message": str() as message}:
            return _from_fields(message, payload)
        case _:
            return _Complaint(_as_text(payload) if payload else "")


def _from_fields(message: str, fields: Mapping[str, Any]) -> _Complaint:
    text = message[:CLIPPED]
    param = fields.get("param")
    return _Complaint(
        text,
        fields.get("code", fields.get("status_code")),
        fields.get("type"),
        # vLLM's validation says where in the HTTP request a field is.
        param.removeprefix("body.") if isinstance(param, str) and param else None,
        _number(fields.get("n_prompt_tokens"), ASKED, text),
        _number(fields.get("n_ctx"), LIMIT, text),
    )


def _number(given: Any, pattern: re.Pattern[str], text: str) -> int | None:
    if isinstance(given, int):
        return given
    found = pattern.search(text)
    return int(found[1]) if found else None


def _as_text(value: Any) -> str:
    return msgspec.json.encode(value)[:CLIPPED].decode("utf-8", "replace")


def _status_of(complaint: _Complaint) -> int:
    if isinstance(complaint.code, int) and 400 <= complaint.code < 600:
        return complaint.code
    if isinstance(complaint.code, str) and complaint.code.isdecimal() and 400 <= int(complaint.code[:4]) < 600:
        return int(complaint.code[:4])
    kind = str(complaint.type).replace("_", "").lower()
    refused = kind in ("invalidrequesterror", "badrequesterror", "badrequest") or _overflows(complaint)
    return 400 if refused else 500


def _overflows(complaint: _Complaint) -> bool:
    if complaint.type in OVERFLOW_NAMES or complaint.code in OVERFLOW_NAMES:
        return True
    text = complaint.message.lower()
    return any(words in text for words in OVERFLOW_TEXTS) and ANSWER_TOO_LONG.search(text) is None


def _refusal(complaint: _Complaint) -> BadRequest:
    if _overflows(complaint):
        # An engine's `param` names a number of its own here (`input_tokens`), which no client has sent.
        return ContextOverflow(_overflow_text(complaint), param="messages")
    code = complaint.code if isinstance(complaint.code, str) and not complaint.code.isdecimal() else None
    message = complaint.message or "The engine refused the request and does not say why."
    return BadRequest(message, param=complaint.param, code=code)


def _overflow_text(complaint: _Complaint) -> str:
    room = f" of {complaint.limit} tokens" if complaint.limit else ""
    size = f"; it needs {complaint.asked}" if complaint.asked else ""
    return f"The request does not fit the model's maximum context length{room}{size}. Shorten it. ({complaint.message})"
