"""Errors in the dialect of OpenAI's API."""

from __future__ import annotations

from typing import Any

import msgspec

from macaron.errors import MacaronError


def openai_error(error: MacaronError) -> dict[str, Any]:
    """The body of an error response, and of an error event in a stream."""
    return {"error": {"message": error.message, "type": error.kind, "param": error.param, "code": error.code}}


def openai_error_body(error: MacaronError) -> bytes:
    """`openai_error`, encoded."""
    return msgspec.json.encode(openai_error(error))
