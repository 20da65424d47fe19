"""What the workers of a service tell each other about adapters.

One of them, the leader, carries the document out on the engine they share. Before it unloads anything it has to know
that every worker has let go: that each follows at least the generation in which the adapter was retired, and that no
turn of any of them needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, Protocol

import msgspec
from msgspec import Struct, field

from macaron.mol.trials import Comparison
from macaron.server.control import ask_control

POLL_SECONDS = 1.0
"""How long a worker waits for news before it looks by itself."""

Progress = Literal["waiting", "loading", "probing", "ready", "failed"]


class Standing(Struct, frozen=True):
    """What became of one adapter on the engine.

    Attributes:
        reason: of the last failure, empty where there was none.
        failures: in a row.
        retry: Unix time of the next attempt, 0 where none is due.
        effect: mean total variation that the probe found, None where it has not.
    """

    state: Progress
    reason: str = ""
    failures: int = 0
    retry: float = 0.0
    effect: float | None = None


class Findings(Struct, frozen=True):
    """What the leader knows of the engine.

    Attributes:
        proved: engine names of adapters that are loaded and were proved by a probe.
        parked: those that were proved and left the engine for want of room, or are about to.
        standing: by engine name.
        fault: why the engine could not be asked, empty where it could.
        pause: seconds for which hops had to wait at the latest restart for adapters; None where there was none.
        settled: whether everything was looked at once since the service began.
    """

    proved: frozenset[str] = frozenset()
    parked: frozenset[str] = frozenset()
    standing: dict[str, Standing] = field(default_factory=dict)
    fault: str = ""
    pause: float | None = None
    settled: bool = False


class Report(Struct, frozen=True):
    """What a worker says of itself.

    Attributes:
        findings: only where it leads.
        seen: the news that it has acted on.
        trials, last_use: by engine name.
        demanded: engine names of parked adapters that turns wait for.
    """

    worker: int
    generation: int
    in_use: frozenset[str] = frozenset()
    findings: Findings | None = None
    seen: int = 0
    trials: dict[str, Comparison] = field(default_factory=dict)
    demanded: frozenset[str] = frozenset()
    last_use: dict[str, float] = field(default_factory=dict)


class Together(Struct, frozen=True):
    """What all workers have said.

    Attributes:
        leads: whether the worker that asks is the one that acts.
        generation: the oldest that any worker follows; 0 while one has not said.
        in_use: engine names that turns of any worker need.
        trials: sums of all workers that run.
        demanded, last_use: of any of them.
        agreed: whether every worker has acted on the newest findings.
        news: grows with each change; goes back into the next report.
    """

    leads: bool
    generation: int
    in_use: frozenset[str]
    findings: Findings
    trials: dict[str, Comparison]
    demanded: frozenset[str]
    last_use: dict[str, float]
    agreed: bool
    news: int


class Peers(Protocol):
    """How a worker meets the others."""

    async def meet(self, report: Report) -> Together:
        """Tell and hear; returns when there is news, or after `POLL_SECONDS`.

        Raises:
            OSError, ValueError: the supervisor does not answer.
        """
        ...


class Meeting:
    """Where the workers of one service meet. Used from one event loop."""

    def __init__(self, workers: Callable[[], Sequence[int]]) -> None:
        """`workers` gives the process ids of all workers that run."""
        self._workers = workers
        self._reports: dict[int, Report] = {}
        self._findings = Findings()
        self._chosen: int | None = None
        self._news = 1
        self._changed = asyncio.Event()

    async def meet(self, report: Report) -> Together:
        """See `Peers.meet`."""
        before = self._reports.get(report.worker)
        self._reports[report.worker] = report
        if report.findings is not None and self._leader() == report.worker:
            self._tell(report.findings != self._findings)
            self._findings = report.findings
        # What is in use changes all the time under load; the next round is early enough for it.
        self._tell(before is None or (before.generation, before.demanded) != (report.generation, report.demanded))
        if report.seen == self._news:
            changed = self._changed
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), POLL_SECONDS)
        return self._together(report.worker)

    def _tell(self, changed: bool) -> None:
        if changed:
            self._news += 1
            self._changed.set()
            self._changed = asyncio.Event()

    def _together(self, worker: int) -> Together:
        running = self._workers()
        self._reports = {number: said for number, said in self._reports.items() if number in running}
        heard = self._reports.values()
        whole = len(self._reports) == len(running)
        return Together(
            leads=self._leader() == worker,
            generation=min((said.generation for said in heard), default=0) if whole else 0,
            in_use=frozenset().union(*(said.in_use for said in heard)),
            findings=self._findings,
            trials=_summed(said.trials for said in heard),
            demanded=frozenset().union(*(said.demanded for said in heard)),
            last_use=_latest(said.last_use for said in heard),
            agreed=whole and all(said.seen == self._news for said in heard),
            news=self._news,
        )

    def _leader(self) -> int | None:
        """The first that spoke, as long as it runs: two must never change the engine at once."""
        running = self._workers()
        if self._chosen not in running:
            self._chosen = next((number for number in running if number in self._reports), None)
        return self._chosen


def _summed(all_trials: Iterable[Mapping[str, Comparison]]) -> dict[str, Comparison]:
    total: dict[str, Comparison] = {}
    for trials in all_trials:
        for name, comparison in trials.items():
            total[name] = total.get(name, Comparison()) + comparison
    return total


def _latest(all_uses: Iterable[Mapping[str, float]]) -> dict[str, float]:
    latest: dict[str, float] = {}
    for uses in all_uses:
        for name, moment in uses.items():
            latest[name] = max(moment, latest.get(name, moment))
    return latest


class Alone:
    """A service of one process without a supervisor."""

    def __init__(self, worker: int) -> None:
        self._meeting = Meeting(lambda: (worker,))

    async def meet(self, report: Report) -> Together:
        """See `Peers.meet`."""
        return await self._meeting.meet(report)


class Supervised:
    """A worker of a supervisor, over its control socket."""

    def __init__(self, control: Path) -> None:
        self._control = control

    async def meet(self, report: Report) -> Together:
        """See `Peers.meet`."""
        answer = await ask_control(self._control, "meet", report=msgspec.to_builtins(report))
        return msgspec.convert(answer, Together)
