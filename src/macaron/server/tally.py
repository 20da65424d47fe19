"""Counting on the path of every request: plain numbers, turned into metric families only when a scraper asks.

The library's own counters take a lock and several calls each, which together cost a tenth of a request. Workers of one
service leave their numbers in files, which whoever is asked adds up; a dead worker's file stays, so that nothing falls.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

Labels = tuple[str, ...]


class Kind(NamedTuple):
    """One metric. `bounds` are the upper ends of a histogram's buckets; a counter has none."""

    name: str
    text: str
    labels: Labels
    bounds: tuple[float, ...] = ()


class Numbers(Struct):
    """What one process has counted, by metric and label values joined by a tab.

    A histogram's numbers are its buckets, one for what exceeds them all, and the sum.
    """

    counters: dict[str, dict[str, float]] = {}
    histograms: dict[str, dict[str, list[float]]] = {}
    gauges: dict[str, float] = {}


class Tally(Collector):
    """The numbers of this process, and of the others whose files lie in `folder`."""

    def __init__(
        self, counters: Sequence[Kind], histograms: Sequence[Kind], gauges: Sequence[Kind], folder: str
    ) -> None:
        self._kinds = {kind.name: kind for kind in (*counters, *histograms, *gauges)}
        self._own = Numbers(
            counters={kind.name: defaultdict(float) for kind in counters},
            histograms={kind.name: {} for kind in histograms},
            gauges={kind.name: 0.0 for kind in gauges},
        )
        self._others: list[Numbers] = []
        self._file = Path(folder) / f"{os.getpid()}.json" if folder else None

    def counter(self, name: str) -> dict[str, float]:
        """The numbers of a counter, to be added to in place: by its label values, joined by a tab; a new one is 0."""
        return self._own.counters[name]

    def observe(self, name: str, labels: str, value: float) -> None:
        """Add to a histogram."""
        bounds = self._kinds[name].bounds
        buckets = self._own.histograms[name].get(labels)
        if buckets is None:
            buckets = self._own.histograms[name][labels] = [0.0] * (len(bounds) + 2)
        buckets[bisect_left(bounds, value)] += 1
        buckets[-1] += value

    def gauge(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._own.gauges[name] = value

    def save(self) -> None:
        """Leave the numbers where the other workers find them."""
        if self._file is not None:
            part = self._file.with_suffix(".part")
            part.write_bytes(msgspec.json.encode(self._own))
            part.replace(self._file)

    def load_others(self) -> None:
        """Read what the other workers left; it blocks. `collect` adds what was read last."""
        if self._file is not None:
            paths = [path for path in self._file.parent.glob("*.json") if path != self._file]
            self._others = [self._read(path) for path in paths]

    def collect(self) -> Iterator[Metric]:
        """See `prometheus_client`: the families, added up over all workers."""
        everybody = [self._own, *self._others]
        for name in self._own.counters:
            yield self._counter(name, everybody)
        for name in self._own.histograms:
            yield self._histogram(name, everybody)
        for name in self._own.gauges:
            kind = self._kinds[name]
            value = sum(numbers.gauges.get(name, 0.0) for numbers in everybody)
            yield GaugeMetricFamily(kind.name, kind.text, value=value)

    def _read(self, path: Path) -> Numbers:
        numbers = msgspec.json.decode(path.read_bytes(), type=Numbers)
        return numbers if Path(f"/proc/{path.stem}").exists() else replace(numbers, gauges={})

    def _counter(self, name: str, everybody: Sequence[Numbers]) -> Metric:
        kind = self._kinds[name]
        family = CounterMetricFamily(kind.name, kind.text, labels=kind.labels)
        totals: dict[str, float] = {}
        for numbers in everybody:
            for labels, value in numbers.counters.get(name, {}).items():
                totals[labels] = totals.get(labels, 0) + value
        for labels, value in totals.items():
            family.add_metric(labels.split("\t"), value)
        return family

    def _histogram(self, name: str, everybody: Sequence[Numbers]) -> Metric:
        kind = self._kinds[name]
        family = HistogramMetricFamily(kind.name, kind.text, labels=kind.labels)
        totals: dict[str, list[float]] = {}
        for numbers in everybody:
            for labels, values in numbers.histograms.get(name, {}).items():
                old = totals.get(labels)
                totals[labels] = values if old is None else [a + b for a, b in zip(old, values, strict=True)]
        for labels, values in totals.items():
            family.add_metric(labels.split("\t"), _cumulative(kind.bounds, values), values[-1])
        return family


def _cumulative(bounds: Sequence[float], values: Sequence[float]) -> list[tuple[str, float]]:
    total = 0.0
    buckets = []
    for bound, count in zip((*map(str, bounds), "+Inf"), values, strict=False):
        total += count
        buckets.append((bound, total))
    return buckets
