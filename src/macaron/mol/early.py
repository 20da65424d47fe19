"""The shorter way of an answer's pieces: from where the engine's bytes arrive to the client, past the turn's task."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from macaron.conversation import Delta
from macaron.engine.base import EngineEvent
from macaron.mol.collect import Collector

Early = Callable[[Sequence[Delta]], bool]
"""Writes pieces of the answer where they arrive, or returns False and has not touched them."""


class Shortcut:
    """The sink of an answer hop: what the client can be sent at once goes there without waking the turn.

    Attributes:
        open: whether the turn waits for the next piece, and the response has begun.
    """

    def __init__(self, collector: Collector, early: Early | None) -> None:
        self._collector = collector
        self._early = early
        self.open = False

    def __call__(self, events: Sequence[EngineEvent]) -> bool:
        if not self.open or self._early is None:
            return False
        deltas = [event for event in events if isinstance(event, Delta)]
        if deltas and not self._early(deltas):
            return False
        self._collector.add(events)
        return True
