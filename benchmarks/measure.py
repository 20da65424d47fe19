"""One measurement: a job of the load generator with the CPU time and the hops it cost, and medians over rounds."""

from __future__ import annotations

import statistics
import time

import msgspec

from benchmarks.candidates import Candidate
from benchmarks.instant_engine import Stats
from benchmarks.load import LoadProcess, Result
from benchmarks.process import fetch
from benchmarks.workload import Workload

SETTLE_SECONDS = 20.0
QUIET_SECONDS = 0.05


class Sample(msgspec.Struct, frozen=True):
    """One round of one case. CPU times are microseconds a request: of the service, of the double, of the load."""

    result: Result
    cpu: float
    engine_cpu: float
    hops: dict[str, float]


class Figure(msgspec.Struct, frozen=True):
    """Medians over a case's rounds. Latencies are milliseconds, `cpu` microseconds a request, `rate` requests a second.

    `rates` and `cpus` are those of each round, in order, for comparisons within a round.
    """

    rate: float
    p50: float
    p99: float
    cpu: float
    engine_cpu: float
    load_cpu: float
    hops: dict[str, float]
    errors: int
    rates: list[float]
    cpus: list[float]
    first: float | None = None


def engine_stats(engine: Candidate) -> Stats:
    """What the double has served since its last reset."""
    return msgspec.json.decode(fetch(engine.port, "/stats"), type=Stats)


def reset_engine(engine: Candidate) -> None:
    """Start the double's count again."""
    fetch(engine.port, "/reset", "POST")


def wait_quiet(engine: Candidate) -> Stats:
    """Wait until the double has served nothing for a moment, so that the hops behind the answers are counted too.

    Raises:
        TimeoutError: hops keep coming.
    """
    stop_at = time.monotonic() + SETTLE_SECONDS
    before = engine_stats(engine)
    while time.monotonic() < stop_at:
        time.sleep(QUIET_SECONDS)
        now = engine_stats(engine)
        if not now.active and not now.queued and now.hops == before.hops:
            return now
        before = now
    raise TimeoutError(f"the engine was still serving {SETTLE_SECONDS:g} s after the load ended")


def run_sample(
    load: LoadProcess, candidate: Candidate, engine: Candidate, workload: Workload, connections: int, seconds: float
) -> Sample:
    """Run one job and account for what it cost."""
    reset_engine(engine)
    workload = msgspec.structs.replace(workload, model=candidate.model)
    before, engine_before = candidate.process.cpu_seconds(), engine.process.cpu_seconds()
    result = load.run(candidate.port, workload, connections, seconds, candidate.headers)
    stats = wait_quiet(engine)
    spent, engine_spent = candidate.process.cpu_seconds() - before, engine.process.cpu_seconds() - engine_before
    served = result.requests + result.errors + (connections if workload.known_history else 0)
    return Sample(
        result,
        cpu=1e6 * spent / served,
        engine_cpu=1e6 * engine_spent / served,
        hops={kind: count / served for kind, count in stats.hops.items()},
    )


def summarise(samples: list[Sample]) -> Figure:
    """Medians over the rounds of one case on one candidate."""
    results = [sample.result for sample in samples]
    cpus = [sample.cpu for sample in samples]
    rates = [result.requests / result.seconds for result in results]
    firsts = [result.first.p50 for result in results if result.first is not None]
    return Figure(
        rate=statistics.median(rates),
        p50=statistics.median(result.latency.p50 for result in results),
        p99=statistics.median(result.latency.p99 for result in results),
        cpu=statistics.median(cpus),
        engine_cpu=statistics.median(sample.engine_cpu for sample in samples),
        load_cpu=statistics.median(1e6 * result.load_cpu / result.requests for result in results),
        hops=samples[-1].hops,
        errors=sum(result.errors for result in results),
        rates=rates,
        cpus=cpus,
        first=statistics.median(firsts) if firsts else None,
    )


def ratio(values: list[float], base: list[float]) -> float:
    """Median over rounds of one candidate's figure over another's: what disturbs a round disturbs both."""
    return statistics.median(value / other for value, other in zip(values, base, strict=True))
