"""The errors of the project: one root and a few children, each renderable in any wire dialect.

To add one: derive from the child whose HTTP status fits, and give it a `code` that a program can branch on.
"""

from __future__ import annotations

from typing import ClassVar


class MacaronError(Exception):
    """Something went wrong that a person or a client can act on.

    Attributes:
        message: one sentence: what is wrong, with the value, and the remedy.
        param: path of the offending field in the caller's terms, such as `messages[3].role`.
        code: stable machine-readable reason.
        retry_after: seconds after which a retry may succeed, where that is known.
        detail: what only the operator should read; it goes to the log and never to a client.
    """

    status: ClassVar[int] = 500
    kind: ClassVar[str] = "server_error"
    default_code: ClassVar[str | None] = None

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        detail: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code or self.default_code
        self.retry_after = retry_after
        self.detail = detail

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.__dict__.copy()))


def _rebuild(cls: type[MacaronError], state: dict[str, object]) -> MacaronError:
    error = cls.__new__(cls, state["message"])
    error.__dict__.update(state)
    return error


class BadRequest(MacaronError):
    """The request cannot be honoured as it is written; sending it again unchanged cannot succeed."""

    status = 400
    kind = "invalid_request_error"


class ContextOverflow(BadRequest):
    """The conversation does not fit the model's context; clients compact their history on this code."""

    default_code = "context_length_exceeded"


class Unauthorized(MacaronError):
    """No key, or one that is not known."""

    status = 401
    kind = "authentication_error"
    default_code = "invalid_api_key"


class Forbidden(MacaronError):
    """The caller is known, or its origin is, and may not do this."""

    status = 403
    kind = "permission_error"


class Conflict(MacaronError):
    """The change does not fit what is there now; after what the message asks for, it can succeed."""

    status = 409
    kind = "invalid_request_error"
    default_code = "conflict"


class NotFound(MacaronError):
    """The thing named does not exist for this caller."""

    status = 404
    kind = "invalid_request_error"
    default_code = "not_found"


class TooLarge(MacaronError):
    """The body is larger than the service accepts."""

    status = 413
    kind = "invalid_request_error"
    default_code = "request_too_large"


class TimedOut(MacaronError):
    """The client did not finish sending its request in time."""

    status = 408
    kind = "invalid_request_error"
    default_code = "request_timeout"


class Busy(MacaronError):
    """The service or this caller's share of it is full; `retry_after` says when to try again."""

    status = 429
    kind = "rate_limit_error"
    default_code = "overloaded"


class Unavailable(MacaronError):
    """A part the request needs is not there now: the engine, the store, or the service is stopping."""

    status = 503
    kind = "server_error"
    default_code = "unavailable"


class EngineError(MacaronError):
    """The engine failed, or answered something that cannot be used."""

    status = 502
    kind = "server_error"
    default_code = "engine_error"


class EngineTimeout(EngineError):
    """The engine did not answer within the time limit of the hop."""

    status = 504
    default_code = "engine_timeout"


class NotSupported(MacaronError):
    """The engine behind this service cannot do what was asked, whoever asks and however often."""

    status = 501
    default_code = "not_supported"


class StoreError(Unavailable):
    """The store could not make a record durable or read one back."""

    default_code = "store_unavailable"


class ConfigError(MacaronError):
    """A contract, key file, option or environment of the operator's is wrong; nothing was started."""

    kind = "configuration_error"
    default_code = "invalid_configuration"
