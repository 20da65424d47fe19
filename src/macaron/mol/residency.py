"""Which adapters turns need now: what must not leave the engine, and what has to come back to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from macaron.errors import Unavailable

TOOL_SECONDS = 900.0
"""How long a turn that waits for its tools' results keeps its adapter. One that takes longer goes on with the label's
revision of then."""

RETURN_SECONDS = 60.0
"""How long a turn waits for an adapter to come back."""


class Residency:
    """Counts the uses of each adapter on one event loop, by its engine name. The bare base, None, is left out.

    Attributes:
        absent: what left the engine for want of room; turns wait for it in `present`.
        last_use: Unix time of the latest use that began.
        ask: called when something absent is needed.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._uses: dict[str, int] = {}
        self._kept: dict[str, float] = {}
        self._returns: dict[str, asyncio.Event] = {}
        self.absent: frozenset[str] = frozenset()
        self.last_use: dict[str, float] = {}
        self.ask: Callable[[], None] = lambda: None

    def use(self, adapter: str | None) -> Use:
        """A context that needs an adapter until its end."""
        return Use(self._uses, self.last_use, adapter)

    def keep(self, adapter: str | None, seconds: float) -> None:
        """Need an adapter for some time, for the rest of a turn that the client goes on with."""
        if adapter is not None:
            self._kept[adapter] = self._clock() + seconds

    def leave(self, absent: frozenset[str]) -> None:
        """What is absent from now on; whoever waits for another goes on."""
        self.absent = absent
        for adapter in self._returns.keys() - absent:
            self._returns.pop(adapter).set()

    @property
    def demanded(self) -> frozenset[str]:
        """What turns wait for."""
        return frozenset(self._returns)

    async def present(self, adapter: str | None) -> None:
        """Wait until an absent adapter is back; all turns that need it wait for the same return.

        Raises:
            Unavailable: it does not come back within `RETURN_SECONDS`.
        """
        while adapter is not None and adapter in self.absent:
            back = self._returns.get(adapter)
            if back is None:
                back = self._returns[adapter] = asyncio.Event()
                self.ask()
            with self.use(adapter):
                try:
                    await asyncio.wait_for(back.wait(), RETURN_SECONDS)
                except TimeoutError:
                    reason = f"The specialist's adapter did not come back within {RETURN_SECONDS:g} s"
                    raise Unavailable(f"{reason}; try again.", code="adapter_absent", retry_after=5.0) from None

    def in_use(self) -> frozenset[str]:
        """What is needed now."""
        now = self._clock()
        self._kept = {adapter: end for adapter, end in self._kept.items() if end > now}
        return frozenset((*self._uses, *self._kept))


class Use:
    """One use of an adapter."""

    __slots__ = ("_adapter", "_last_use", "_uses")

    def __init__(self, uses: dict[str, int], last_use: dict[str, float], adapter: str | None) -> None:
        self._uses = uses
        self._last_use = last_use
        self._adapter = adapter

    def __enter__(self) -> None:
        if self._adapter is not None:
            self._uses[self._adapter] = self._uses.get(self._adapter, 0) + 1
            self._last_use[self._adapter] = time.time()

    def __exit__(self, *_: object) -> None:
        if self._adapter is not None:
            left = self._uses[self._adapter] - 1
            if left:
                self._uses[self._adapter] = left
            else:
                del self._uses[self._adapter]
