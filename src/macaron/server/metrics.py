"""Numbers for scrapers. Every label's values are bounded: no path, key or text of a client becomes one."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from macaron.conversation import Hop
from macaron.experience import Counts
from macaron.mol.observer import CarrierOutcome, Event, Speculation
from macaron.server.tally import Kind, Tally
from macaron.server.tracing import Tracing

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
OUTCOMES = frozenset({"ok", "fallback", "cancelled", "empty"})
FOLDER_VARIABLE = "MACARON_METRICS_FOLDER"

COUNTERS = (
    Kind("macaron_requests", "Requests by endpoint and status.", ("endpoint", "status")),
    Kind("macaron_hops", "Hops by kind, adapter and outcome.", ("kind", "adapter", "outcome")),
    Kind("macaron_tokens", "Tokens by hop, adapter and sort.", ("kind", "adapter", "sort")),
    Kind("macaron_turns", "Turns by adapter and why it was chosen.", ("adapter", "reason")),
    Kind("macaron_speculation", "What became of speculation.", ("outcome",)),
    Kind("macaron_recorded_turns", "Turns for training: recorded, dropped and failed.", ("outcome",)),
    Kind("macaron_carriers", "Carriers of stateless clients: made, opened, or why not opened.", ("outcome",)),
    Kind("macaron_events", "Fallbacks and other things worth counting.", ("event",)),
)
HISTOGRAMS = (
    Kind("macaron_request_seconds", "Time to the end of the response.", ("endpoint",), SECONDS),
    Kind("macaron_hop_seconds", "Time of a hop.", ("kind", "adapter"), SECONDS),
    Kind("macaron_hop_queued_seconds", "Part of a hop spent waiting for the engine.", ("kind",), SECONDS),
    Kind("macaron_time_to_first_token_seconds", "From a request to its first piece.", ("adapter",), SECONDS),
)
GAUGES = (
    Kind("macaron_active_requests", "Requests that are running.", ()),
    Kind("macaron_queued_requests", "Requests that wait for a place.", ()),
)


class Metrics:
    """Implements `mol.observer.Observer` for one worker; `render` gives the numbers of all workers of a service."""

    def __init__(self, tracing: Tracing | None = None) -> None:
        self._tracing = tracing
        self.tally = Tally(COUNTERS, HISTOGRAMS, GAUGES, os.environ.get(FOLDER_VARIABLE, ""))
        self._requests = self.tally.counter("macaron_requests")
        self._hops = self.tally.counter("macaron_hops")
        self._tokens = self.tally.counter("macaron_tokens")
        self._turns = self.tally.counter("macaron_turns")
        self._registry = CollectorRegistry()
        self._registry.register(self.tally)

    def hop(self, hop: Hop) -> None:
        """See `Observer.hop`."""
        if self._tracing is not None:
            self._tracing.hop(hop)
        tally, tokens, usage = self.tally, self._tokens, hop.usage
        who = f"{hop.kind}\t{hop.label}"
        self._hops[f"{who}\t{hop.outcome if hop.outcome in OUTCOMES else 'failed'}"] += 1
        tally.observe("macaron_hop_seconds", who, hop.seconds)
        if hop.queued:
            tally.observe("macaron_hop_queued_seconds", hop.kind, hop.queued)
        if usage.prompt:
            tokens[f"{who}\tprompt"] += usage.prompt
        if usage.completion:
            tokens[f"{who}\tcompletion"] += usage.completion
        if usage.cached:
            tokens[f"{who}\tcached"] += usage.cached

    def first_token(self, label: str, seconds: float) -> None:
        """See `Observer.first_token`."""
        self.tally.observe("macaron_time_to_first_token_seconds", label, seconds)

    def speculation(self, outcome: Speculation) -> None:
        """See `Observer.speculation`."""
        self.tally.counter("macaron_speculation")[outcome] += 1

    def event(self, event: Event) -> None:
        """See `Observer.event`."""
        self.tally.counter("macaron_events")[event] += 1

    def carrier(self, outcome: CarrierOutcome) -> None:
        """See `Observer.carrier`."""
        self.tally.counter("macaron_carriers")[outcome] += 1

    def recorded(self, counts: Counts) -> None:
        """What became of the turns that were to be recorded, since the start."""
        numbers = self.tally.counter("macaron_recorded_turns")
        for outcome, count in counts._asdict().items():
            if count:
                numbers[outcome] = count

    def turn(self, label: str, reason: str) -> None:
        """A turn has got its specialist."""
        self._turns[f"{label}\t{reason}"] += 1

    def request(self, endpoint: str, status: int, seconds: float) -> None:
        """A request has ended; `endpoint` is the name of a route, never a path."""
        self._requests[f"{endpoint}\t{status}"] += 1
        self.tally.observe("macaron_request_seconds", endpoint, seconds)

    def load(self, active: int, waiting: int) -> None:
        """How many requests run and wait now."""
        self.tally.gauge("macaron_active_requests", active)
        self.tally.gauge("macaron_queued_requests", waiting)

    def render(self) -> bytes:
        """The text format of Prometheus."""
        return generate_latest(self._registry)
