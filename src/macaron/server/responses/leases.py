"""The responses that this worker is making: it vouches for them, and learns when somebody else has ended one."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from macaron.errors import StoreError
from macaron.store.base import Store

LEASE_SECONDS = 30.0
"""After which a response whose worker says nothing has failed."""

Key = tuple[str, str]
"""Scope and id of a record."""


class Leases:
    """Responses by scope and id, and how each is cancelled."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[Key, Callable[[], object]] = {}

    def until(self) -> float:
        """Unix time until which a lease holds that begins now."""
        return time.time() + LEASE_SECONDS

    def hold(self, key: Key, cancel: Callable[[], object]) -> None:
        """Vouch for a response; `cancel` is called where somebody else has ended it."""
        self._held[key] = cancel

    def drop(self, key: Key) -> None:
        """Its end is written, or it never began."""
        self._held.pop(key, None)

    def cancel(self, key: Key) -> None:
        """Cancel a response where it is made here."""
        if cancel := self._held.pop(key, None):
            cancel()

    async def renew(self) -> None:
        """Renew all leases, and cancel what was ended elsewhere. A store that fails now may not at the next time."""
        if not self._held:
            return
        asked = list(self._held)
        with suppress(StoreError):
            still_open = await self._store.renew_leases(asked, self.until())
            for key in set(asked) - still_open:
                self.cancel(key)
