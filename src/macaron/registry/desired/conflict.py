"""The error of a change that does not fit the registry's present state."""

from __future__ import annotations

from macaron.errors import MacaronError


class Conflict(MacaronError):
    """The change does not fit what is registered now; after what the message asks for, it can succeed."""

    status = 409
    kind = "invalid_request_error"
    default_code = "conflict"
