"""Errors in the dialect of Anthropic's API."""

from __future__ import annotations

from typing import Any

import msgspec

from macaron.errors import ContextOverflow, MacaronError
from macaron.wire.errors import MAX_MESSAGE

KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
OVERFLOW = "prompt is too long: "
"""The words by which clients know that they should compact their history."""


def anthropic_error(error: MacaronError) -> dict[str, Any]:
    """The body of an error response, and of an error event in a stream."""
    kind = KINDS.get(error.status) or ("api_error" if error.status >= 500 else "invalid_request_error")
    said = OVERFLOW + error.message if error.code == ContextOverflow.default_code else error.message
    return {"type": "error", "error": {"type": kind, "message": said[:MAX_MESSAGE]}}


def anthropic_error_body(error: MacaronError) -> bytes:
    """`anthropic_error`, encoded."""
    return msgspec.json.encode(anthropic_error(error))
