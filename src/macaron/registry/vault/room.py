"""Whether there is room: for one adapter, on the disk, in the vault, and in a tenant's share of it."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from macaron.registry.vault.errors import Oversize, VaultFull
from macaron.registry.vault.layout import MIN_FREE, Stored, VaultLimits

_REMEDY = "remove adapters that nothing uses, or raise the limit"


def check_adapter_size(size: int, limits: VaultLimits) -> None:
    """Refuse an adapter that no vault with these limits takes.

    Raises:
        Oversize: it is too large.
    """
    if size > limits.max_adapter_bytes:
        reason = f"it has more than the {limits.max_adapter_bytes} bytes an adapter may have here"
        raise Oversize("adapter", size, reason, "train with a lower rank, or save as F16")


def check_staging(area: Path, others: int, size: int, more: int, limits: VaultLimits) -> None:
    """See that `more` bytes can be brought in.

    Args:
        others: bytes that others are bringing in.
        size: bytes of this adapter with these.

    Raises:
        VaultFull: too much is being brought in at once, or the disk has no room.
    """
    if others + size > limits.max_bytes:
        reason = f"{others} bytes are being brought in already, and all together may be {limits.max_bytes}"
        raise VaultFull("staging", size, reason, "bring it again when the others have ended", code="staging_full")
    free = shutil.disk_usage(area).free
    if free - more < MIN_FREE:
        reason = f"the vault's disk has {free} bytes free, and {MIN_FREE} of them stay so"
        raise VaultFull("disk", more, reason, "free some space, and bring it again", code="disk_full")


def check_share(stored: Collection[Stored], tenant: str, size: int, *, there: bool, limits: VaultLimits) -> None:
    """See that the vault, and the tenant's share of it, can take one more adapter.

    Args:
        there: whether the vault has it already from another tenant, so that only the share grows.

    Raises:
        VaultFull: it cannot.
    """
    if not there:
        _check(stored, size, "vault", limits.max_adapters, limits.max_bytes)
    own = [item for item in stored if any(owner.tenant == tenant for owner in item.owners)]
    _check(own, size, "tenant", limits.tenant_max_adapters, limits.tenant_max_bytes)


def _check(stored: Collection[Stored], size: int, whose: str, most: int, most_bytes: int) -> None:
    if len(stored) >= most:
        reason = f"it holds {len(stored)} adapters and may hold {most}"
        raise VaultFull(whose, "", reason, _REMEDY, code=f"{whose}_full")
    held = sum(item.bytes for item in stored)
    if held + size > most_bytes:
        reason = f"it holds {held} bytes and may hold {most_bytes}"
        raise VaultFull(whose, size, reason, _REMEDY, code=f"{whose}_full")
