"""Why the vault refuses: each error with the field, the value, the reason and the remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from macaron.errors import BadRequest, Conflict, MacaronError, NotFound, TooLarge, Unavailable
from macaron.registry.check.report import shown


class VaultError(MacaronError):
    """The vault cannot do what was asked; nothing in it changed.

    Attributes:
        param: the field, file or archive member it is about.
        value: what stands there, clipped and printable; empty where nothing does.
        reason, remedy: the message's parts.
    """

    def __init__(
        self,
        field: str,
        value: object,
        reason: str,
        remedy: str,
        *,
        code: str | None = None,
        detail: str | None = None,
    ) -> None:
        self.value, self.reason, self.remedy = shown(value), reason, remedy
        place = f"{field} ({self.value})" if self.value else field
        super().__init__(f"{place}: {reason}; {remedy}", param=field, code=code, detail=detail)


class Unsuitable(VaultError, BadRequest):
    """What was brought is no adapter that may come in."""

    default_code = "unsuitable_adapter"


class Oversize(VaultError, TooLarge):
    """A file, an adapter or an upload has more bytes than it may have."""


class NotStored(VaultError, NotFound):
    """There is no such adapter for this tenant."""

    default_code = "unknown_adapter"


class InUse(VaultError, Conflict):
    """The adapter cannot go yet: something still runs on it or is about to."""

    default_code = "adapter_in_use"


class VaultFull(VaultError):
    """There is no room: `disk_full`, `vault_full`, `tenant_full` or `staging_full`."""

    status = 507
    default_code = "vault_full"


class VaultFailure(VaultError, Unavailable):
    """The disk refused, or what lies on it is damaged."""

    default_code = "vault_unavailable"


@contextmanager
def on_disk() -> Iterator[None]:
    """Turn the system's refusals into errors that say what to do; the path goes to the operator only."""
    try:
        yield
    except OSError as error:
        words, where = error.strerror or "error", str(error.filename or "")
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            remedy = "free some space, or remove adapters that nothing uses, and bring it again"
            raise VaultFull(
                "disk", words, "there is no room for the adapter", remedy, code="disk_full", detail=where
            ) from error
        remedy = "see that the vault's disk and its rights are in order, and try again"
        raise VaultFailure("disk", words, "the vault cannot be read or written", remedy, detail=where) from error
