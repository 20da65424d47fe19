"""Errors in the dialect of OpenAI's API."""

from __future__ import annotations

from typing import Any

import msgspec

from macaron.errors import MacaronError

MAX_MESSAGE = 4000
MAX_PARAM = 200


def openai_error(error: MacaronError) -> dict[str, Any]:
    """The body of an error response, and of an error event in a stream, bounded: a client's names may be in it."""
    param = error.param and error.param[:MAX_PARAM]
    return {"error": {"message": error.message[:MAX_MESSAGE], "type": error.kind, "param": param, "code": error.code}}


def openai_error_body(error: MacaronError) -> bytes:
    """`openai_error`, encoded."""
    return msgspec.json.encode(openai_error(error))
