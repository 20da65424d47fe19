"""Takes away the files of adapters that nobody registered, or that were removed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from datetime import datetime

from macaron.registry.desired import REVISION_DIGITS, Desired
from macaron.registry.vault import InUse, NotStored, Vault, VaultFailure

log = logging.getLogger("macaron.adapters")

EVERY_SECONDS = 60.0
UNREGISTERED_SECONDS = 3600.0
"""How long an upload waits for its registration. A registration that was killed after its files came in leaves them."""


class Sweeper:
    """Over the vault, from time to time."""

    def __init__(self, vault: Vault, clock: Callable[[], float] = time.time) -> None:
        self._vault = vault
        self._clock = clock
        self._next = 0.0

    async def sweep(self, desired: Desired, listed: Collection[str]) -> None:
        """Remove what the document does not name, and the engine does not have any more.

        Args:
            listed: adapters of the engine by name; it may read their files again.
        """
        if self._clock() < self._next:
            return
        self._next = self._clock() + EVERY_SECONDS
        held = frozenset(name.rpartition("@")[2] for name in listed)
        try:
            await asyncio.to_thread(self._remove, desired, held)
        except VaultFailure as error:
            log.warning("old adapters were not removed: %s", error.message)

    def _remove(self, desired: Desired, held: frozenset[str]) -> None:
        self._vault.tidy()
        removed = frozenset(item.revision for item in desired.bound)
        before = self._clock() - UNREGISTERED_SECONDS
        for stored in self._vault.list():
            digits = stored.revision.removeprefix("sha256:")[:REVISION_DIGITS]
            for owner in stored.owners:
                old = stored.revision in removed or datetime.fromisoformat(owner.since).timestamp() < before
                if digits not in held and old:
                    self._give_up(stored.revision, owner.tenant, desired)

    def _give_up(self, revision: str, tenant: str, desired: Desired) -> None:
        named = registered(desired, tenant)
        if revision in named:
            return
        try:
            self._vault.remove(revision, tenant, lambda: named)
            log.info("the files of %s were removed", revision)
        except (InUse, NotStored):
            pass  # it is brought again, or somebody else was quicker


def registered(desired: Desired, tenant: str) -> frozenset[str]:
    """Revisions that a tenant's entries name."""
    return frozenset(item.revision for entry in desired.entries if entry.tenant == tenant for item in entry.revisions)
