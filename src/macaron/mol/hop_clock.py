"""The time that an answer hop takes, from its start on, be that a speculation."""

from __future__ import annotations

import time

from macaron.conversation import Hop
from macaron.mol.collect import Collector
from macaron.mol.speculate import Started
from macaron.registry.cards import Specialist


class HopClock:
    """Times one answer hop."""

    def __init__(self, specialist: Specialist, started: Started) -> None:
        self._specialist = specialist
        self._started, self._clock = started.time, started.clock

    def hop(self, collector: Collector, outcome: str) -> Hop:
        """The hop as it is now, with what was collected of its answer."""
        seconds = time.perf_counter() - self._clock
        label, revision = self._specialist.label, self._specialist.revision
        return Hop("answer", label, revision, self._started, seconds, collector.queued, collector.usage, outcome)
