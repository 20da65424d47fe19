"""What PostgreSQL's errors mean to an operator. Clients are told a reason, never an address."""

from __future__ import annotations

from macaron.errors import ConfigError, MacaronError, StoreError
from macaron.store.postgres.url import redacted

RETRY_SECONDS = 1.0

_REMEDIES = {
    "08": "check that the server runs and can be reached",
    "28": "check user and password, and the server's pg_hba.conf",
    "3D": "create the database, or name another one in [store] url",
    "42": "give its user the rights on schema macaron, or let `macaron serve` migrate it with a user that has them",
    "53": "the server is out of connections, memory or disk: see its log",
    "55": "another session holds a lock: see pg_stat_activity",
    "57": "the server was stopped, or too slow: see its log",
}
"""By the class of the error, the first two letters of its code."""

_REFUSED = ("22", "23", "40", "54")
"""Classes of errors that are about what one write holds, not about the server."""


def sqlstate(error: BaseException | None) -> str:
    """The server's code of an error, empty where the server did not say it."""
    return getattr(error, "sqlstate", None) or ""


def refused(error: MacaronError) -> bool:
    """Whether the server or its driver did not take what was written, so that other writes beside it may be taken."""
    return isinstance(error.__cause__, ValueError) or sqlstate(error.__cause__).startswith(_REFUSED)


def lost(error: BaseException | None) -> bool:
    """Whether the connection went, so that a read can be tried on another one."""
    code = sqlstate(error)
    if code:
        return code.startswith("08") or code in ("57P01", "57P02")
    return isinstance(error, ConnectionError) or type(error).__name__ in ("InterfaceError", "InternalClientError")


def store_error(url: str, error: Exception) -> StoreError:
    """The error of one operation, chained to its cause."""
    reason, remedy = _reason(error), _remedy(error)
    failure = StoreError(
        f"the database of the store: {reason}; try again in a moment",
        retry_after=RETRY_SECONDS,
        detail=f"store {redacted(url)}: {reason}; {remedy}",
    )
    failure.__cause__ = error
    return failure


def config_error(url: str, error: Exception) -> ConfigError:
    """The error of a store that cannot be opened, for its operator."""
    return ConfigError(f"store {redacted(url)} cannot be opened: {_reason(error)}; {_remedy(error)}", param="store.url")


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    code = sqlstate(error)
    if code.startswith(_REFUSED):
        # The server's words may quote what was to be stored.
        return f"it refused the record ({type(error).__name__}, {code})"
    if code:
        return f"{type(error).__name__} ({code})"
    if isinstance(error, OSError):
        return error.strerror if error.errno and error.strerror else "it cannot be reached"
    return type(error).__name__


def _remedy(error: Exception) -> str:
    code = sqlstate(error)
    if code[:2] in _REMEDIES:
        return _REMEDIES[code[:2]]
    return _REMEDIES["08"] if isinstance(error, OSError) or not code else "see the server's log"
