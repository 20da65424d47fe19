"""Which adapters turns need now: what must not leave the engine."""

from __future__ import annotations

import time
from collections.abc import Callable

TOOL_SECONDS = 900.0
"""How long a turn that waits for its tools' results keeps its adapter. One that takes longer goes on with the label's
revision of then."""


class Residency:
    """Counts the uses of each adapter on one event loop, by its engine name. The bare base, None, is left out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._uses: dict[str, int] = {}
        self._kept: dict[str, float] = {}

    def use(self, adapter: str | None) -> Use:
        """A context that needs an adapter until its end."""
        return Use(self._uses, adapter)

    def keep(self, adapter: str | None, seconds: float) -> None:
        """Need an adapter for some time, for the rest of a turn that the client goes on with."""
        if adapter is not None:
            self._kept[adapter] = self._clock() + seconds

    def in_use(self) -> frozenset[str]:
        """What is needed now."""
        now = self._clock()
        self._kept = {adapter: end for adapter, end in self._kept.items() if end > now}
        return frozenset((*self._uses, *self._kept))


class Use:
    """One use of an adapter."""

    __slots__ = ("_adapter", "_uses")

    def __init__(self, uses: dict[str, int], adapter: str | None) -> None:
        self._uses = uses
        self._adapter = adapter

    def __enter__(self) -> None:
        if self._adapter is not None:
            self._uses[self._adapter] = self._uses.get(self._adapter, 0) + 1

    def __exit__(self, *_: object) -> None:
        if self._adapter is not None:
            left = self._uses[self._adapter] - 1
            if left:
                self._uses[self._adapter] = left
            else:
                del self._uses[self._adapter]
