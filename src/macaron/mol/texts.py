"""Texts that live in this process only: bounded in number, in bytes, and in the time since they were last used."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

TEXT_SECONDS = 3600.0
"""Texts of conversations that are not kept are forgotten when nobody has needed them for this long."""


class Bounds(Struct, frozen=True):
    """At most `count` texts of `bytes` of UTF-8 together, each for `seconds` after its last use."""

    count: int
    bytes: int
    seconds: float = TEXT_SECONDS


class Texts:
    """Texts by the id of a step. What was used longest ago goes first; `sweep` has to be called for time to count."""

    def __init__(self, bounds: Bounds, clock: Callable[[], float] = time.monotonic) -> None:
        self._bounds = bounds
        self._clock = clock
        self._texts: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._bytes = 0

    def __contains__(self, step_id: str) -> bool:
        return step_id in self._texts

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def bytes(self) -> int:
        """Bytes of all texts together."""
        return self._bytes

    def get(self, step_id: str) -> str | None:
        """The text of a step; asking for it is a use."""
        found = self._texts.get(step_id)
        if found is None:
            return None
        self._texts[step_id] = (found[0], self._clock())
        self._texts.move_to_end(step_id)
        return found[0]

    def put(self, step_id: str, text: str) -> None:
        """Keep a text, in place of an earlier one. One that is larger than all may be together is not kept."""
        self._drop(step_id)
        size = _size(text)
        if size > self._bounds.bytes:
            return
        self._texts[step_id] = (text, self._clock())
        self._bytes += size
        while len(self._texts) > self._bounds.count or self._bytes > self._bounds.bytes:
            self._drop(next(iter(self._texts)))

    def put_first(self, step_id: str, text: str) -> str:
        """Keep a text unless there is one; returns the one in force."""
        known = self.get(step_id)
        if known is None:
            self.put(step_id, text)
        return text if known is None else known

    def sweep(self) -> None:
        """Forget what was not used for too long."""
        oldest = self._clock() - self._bounds.seconds
        while self._texts and next(iter(self._texts.values()))[1] <= oldest:
            self._drop(next(iter(self._texts)))

    def _drop(self, step_id: str) -> None:
        found = self._texts.pop(step_id, None)
        if found is not None:
            self._bytes -= _size(found[0])


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
