"""Numbers for scrapers. Every label's values are bounded: no path, key or text of a client becomes one."""

from __future__ import annotations

import os
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.multiprocess import MultiProcessCollector

from macaron.conversation import Hop
from macaron.mol.observer import Event, Speculation

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
OUTCOMES = frozenset({"ok", "fallback", "cancelled", "empty"})
MULTIPROCESS_DIR = "PROMETHEUS_MULTIPROC_DIR"

M = TypeVar("M", bound=MetricWrapperBase)


class Metrics:
    """Implements `mol.observer.Observer` for one worker; `render` gives the numbers of all workers of a service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._children: dict[tuple[object, ...], object] = {}
        self._requests = self._counter("requests", "Requests by endpoint and status.", ("endpoint", "status"))
        self._request_seconds = self._histogram("request_seconds", "Time to the terminal event.", ("endpoint",))
        self._hops = self._counter("hops", "Hops by kind, adapter and outcome.", ("kind", "adapter", "outcome"))
        self._hop_seconds = self._histogram("hop_seconds", "Time of a hop.", ("kind", "adapter"))
        self._queued = self._histogram("hop_queued_seconds", "Part of a hop spent waiting for the engine.", ("kind",))
        self._tokens = self._counter("tokens", "Tokens by hop, adapter and sort.", ("kind", "adapter", "sort"))
        self._first = self._histogram("time_to_first_token_seconds", "From request to first piece.", ("adapter",))
        self._turns = self._counter("turns", "Turns by adapter and why it was chosen.", ("adapter", "reason"))
        self._speculation = self._counter("speculation", "What became of speculation.", ("outcome",))
        self._events = self._counter("events", "Fallbacks and other things worth counting.", ("event",))
        self._active = self._gauge("active_requests", "Requests that are running.")
        self._waiting = self._gauge("queued_requests", "Requests that wait for a place.")

    def hop(self, hop: Hop) -> None:
        """See `Observer.hop`."""
        outcome = hop.outcome if hop.outcome in OUTCOMES else "failed"
        self._child(self._hops, hop.kind, hop.label, outcome).inc()
        self._child(self._hop_seconds, hop.kind, hop.label).observe(hop.seconds)
        if hop.queued:
            self._child(self._queued, hop.kind).observe(hop.queued)
        usage = hop.usage
        for sort, count in (("prompt", usage.prompt), ("completion", usage.completion), ("cached", usage.cached)):
            if count:
                self._child(self._tokens, hop.kind, hop.label, sort).inc(count)

    def first_token(self, label: str, seconds: float) -> None:
        """See `Observer.first_token`."""
        self._child(self._first, label).observe(seconds)

    def speculation(self, outcome: Speculation) -> None:
        """See `Observer.speculation`."""
        self._child(self._speculation, outcome).inc()

    def event(self, event: Event) -> None:
        """See `Observer.event`."""
        self._child(self._events, event).inc()

    def turn(self, label: str, reason: str) -> None:
        """A turn has got its specialist."""
        self._child(self._turns, label, reason).inc()

    def request(self, endpoint: str, status: int, seconds: float) -> None:
        """A request has ended; `endpoint` is the name of a route, never a path."""
        self._child(self._requests, endpoint, status).inc()
        self._child(self._request_seconds, endpoint).observe(seconds)

    def load(self, active: int, waiting: int) -> None:
        """How many requests run and wait now."""
        self._active.set(active)
        self._waiting.set(waiting)

    def render(self) -> bytes:
        """The text format of Prometheus."""
        if MULTIPROCESS_DIR not in os.environ:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def _child(self, metric: M, *labels: object) -> M:
        """A metric's child, remembered: finding it anew costs more than counting."""
        key = (metric, *labels)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*labels)
        return child  # type: ignore[return-value]

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> Counter:
        return Counter(f"macaron_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, labels: tuple[str, ...]) -> Histogram:
        return Histogram(f"macaron_{name}", text, labels, registry=self.registry, buckets=SECONDS)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"macaron_{name}", text, registry=self.registry, multiprocess_mode="livesum")
