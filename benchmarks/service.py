"""`make bench`: what the service costs, beside the bare engine, the floor prototype and LiteLLM's proxy, in one run.

Every candidate stands in front of the same engine double. Rounds are interleaved, so that a busy neighbour disturbs
all of them alike, and each round starts everybody afresh: two processes of the same code differed by 8 %, as
their memory happens to lie. Figures are medians over rounds, and CPU time of the service stands beside every one of
them, because the machine's cores also carry the load generator and the double.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

from benchmarks import report
from benchmarks.candidates import FLOOR, LITELLM, Candidate, start_engine, start_floor, start_litellm, start_macaron
from benchmarks.load import LoadProcess
from benchmarks.measure import Figure, Sample, ratio, run_sample, summarise
from benchmarks.process import leave_on_sigterm
from benchmarks.report import Grid, Target, number
from benchmarks.workload import Workload

DIRECT, ONE, TWO = "engine direct", "macaron, 1 worker", "macaron, 2 workers"
AIOHTTP, RAW, LITE = "floor, aiohttp", "floor, raw", "LiteLLM"
EVERYBODY = (DIRECT, ONE, TWO, AIOHTTP, RAW, LITE)
STREAM_TOKENS = 512
# Both sides of the summary cap of the benchmark profile, 192 tokens.
SHORT, LONG = 32, 256
WARM_SECONDS = 1.0


class Case(msgspec.Struct, frozen=True):
    """A workload at a concurrency, and who runs it. `once` lets each connection send a single request a round."""

    name: str
    workload: Workload
    connections: int
    candidates: tuple[str, ...]
    once: bool = False


class Plan(msgspec.Struct, frozen=True):
    """How long a run takes."""

    rounds: int
    seconds: float


def cases() -> list[Case]:
    """Everything that is measured."""
    long, short = Workload("", tokens=LONG), Workload("", tokens=SHORT)
    known = Workload("", tokens=LONG, history_bytes=100_000, known_history=True)
    new = Workload("", tokens=LONG, history_bytes=100_000)
    together = Workload("", tokens=STREAM_TOKENS, stream=True)
    spaced = Workload("", tokens=STREAM_TOKENS, stream=True, every=3)
    return [
        *(Case("3 hops", long, connections, EVERYBODY) for connections in (1, 16, 64)),
        *(Case("2 hops", short, connections, (ONE, TWO)) for connections in (1, 16, 64)),
        Case("100 KB known", known, 16, (DIRECT, ONE, TWO, AIOHTTP, RAW)),
        Case("100 KB new", new, 16, (ONE, TWO)),
        Case("stream together", together, 1, (DIRECT, ONE, LITE)),
        Case("stream together", together, 16, (DIRECT, ONE)),
        Case("stream 3 ms", spaced, 24, (DIRECT, ONE), once=True),
    ]


def start_all(stack: ExitStack, folder: Path, options: argparse.Namespace) -> dict[str, Candidate]:
    """Start everybody who can be; say who is left out."""
    engine = start_engine(folder)
    running = {DIRECT: engine}
    stack.callback(engine.process.stop)

    def add(candidate: Candidate | None, absent: str) -> None:
        if candidate is None:
            print(absent)
            return
        stack.callback(candidate.process.stop)
        running[candidate.name] = candidate

    if not options.no_macaron:
        add(start_macaron(folder, engine, 1), "")
        add(start_macaron(folder, engine, 2), "")
    for client in ("aiohttp", "raw"):
        add(start_floor(folder, engine, client), f"floor prototype left out: {FLOOR.name} is not beside this project")
    if not options.no_litellm:
        add(
            start_litellm(folder, engine),
            f"LiteLLM left out: no {LITELLM.parent.parent.name} (see benchmarks/README.md)",
        )
    return running


def run_rounds(plan: Plan, options: argparse.Namespace) -> dict[tuple[str, int, str], Figure]:
    """Interleaved rounds; figures by case, connections and candidate."""
    samples: dict[tuple[str, int, str], list[Sample]] = {}
    for turn in range(plan.rounds):
        with tempfile.TemporaryDirectory(prefix="macaron-bench-") as folder, ExitStack() as stack:
            running = start_all(stack, Path(folder), options)
            for key, sample in _round(plan, running, reverse=bool(turn % 2)):
                samples.setdefault(key, []).append(sample)
        print(f"round {turn + 1} of {plan.rounds} done")
    return {key: summarise(values) for key, values in samples.items()}


def _round(plan: Plan, running: dict[str, Candidate], reverse: bool) -> Iterator[tuple[tuple[str, int, str], Sample]]:
    with LoadProcess() as load:
        for candidate in running.values():
            run_sample(load, candidate, running[DIRECT], Workload(candidate.model, tokens=LONG), 8, WARM_SECONDS)
        for case, candidate in _jobs(running, reverse):
            seconds = 0.0 if case.once else plan.seconds
            sample = run_sample(load, candidate, running[DIRECT], case.workload, case.connections, seconds)
            yield (case.name, case.connections, candidate.name), sample


def _jobs(running: dict[str, Candidate], reverse: bool) -> Iterator[tuple[Case, Candidate]]:
    """Cases in order; candidates in an order that turns round from round to round."""
    for case in cases():
        names = [name for name in case.candidates if name in running]
        for name in reversed(names) if reverse else names:
            yield case, running[name]


def added(figure: Figure, direct: Figure) -> str:
    """Latency over asking the engine for the answer directly."""
    return f"{number(figure.p50 - direct.p50, 2)} / {number(figure.p99 - direct.p99, 2)}"


def figures_grid(figures: dict[tuple[str, int, str], Figure]) -> Grid:
    """Every figure, case by case."""
    rows = []
    for (case, connections, name), figure in figures.items():
        # With more connections a difference of latencies is a queue in front of a busy core, not what a turn adds.
        direct = figures.get(("3 hops" if case == "2 hops" else case, 1, DIRECT)) if connections == 1 else None
        per_chunk = figure.cpu / STREAM_TOKENS if case.startswith("stream") else None
        rows.append(
            (
                f"{case}, c={connections}",
                name,
                number(figure.rate),
                number(figure.p50, 2),
                number(figure.p99, 2),
                added(figure, direct) if direct and name != DIRECT else "–",
                number(figure.cpu),
                f"{min(figure.cpus):,.0f}–{max(figure.cpus):,.0f}",
                number(per_chunk, 1),
                number(sum(figure.hops.values()), 2),
                number(figure.errors),
            )
        )
    columns = ("case", "candidate", "req/s", "p50 ms", "p99 ms", "added p50 / p99 ms")
    return Grid("Service", (*columns, "CPU µs/req", "over rounds", "CPU µs/chunk", "hops/req", "errors"), rows)


def targets(figures: dict[tuple[str, int, str], Figure]) -> list[Target]:
    """The figures to reach, from the same run; ratios are taken within each round."""

    def over(figure: Callable[[Figure], list[float]], name: str, base: str) -> float | None:
        one, other = figures.get(("3 hops", 16, name)), figures.get(("3 hops", 16, base))
        return ratio(figure(one), figure(other)) if one and other else None

    def chunk(case: str, connections: int) -> float | None:
        figure = figures.get((case, connections, ONE))
        return figure.cpu / STREAM_TOKENS if figure else None

    def cpus(figure: Figure) -> list[float]:
        return figure.cpus

    def rates(figure: Figure) -> list[float]:
        return figure.rates

    one, direct = figures.get(("3 hops", 1, ONE)), figures.get(("3 hops", 1, DIRECT))
    return [
        Target("CPU of 3 hops, c=16, over the floor's aiohttp mode", over(cpus, ONE, AIOHTTP), 1.25, "×"),
        Target("  the same over its raw mode (an aim)", over(cpus, ONE, RAW), 2.0, "×"),
        Target("req/s of 3 hops, c=16, of the floor's aiohttp mode", over(rates, ONE, AIOHTTP), 0.75, "×", True),
        Target("added latency p50 of 3 hops, c=1", one.p50 - direct.p50 if one and direct else None, 1.0, "ms"),
        Target("CPU a streamed chunk, 3 ms apart", chunk("stream 3 ms", 24), 25.0, "µs"),
        Target("CPU a streamed chunk, together", chunk("stream together", 16), 25.0, "µs"),
        Target("CPU of 3 hops, c=16, two workers over one", over(cpus, TWO, ONE), 1.1, "×"),
    ]


def main() -> None:
    """Run, print, write the results."""
    leave_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round: under 90 seconds, for a first look")
    parser.add_argument("--no-litellm", action="store_true", help="leave LiteLLM's proxy out")
    parser.add_argument("--no-macaron", action="store_true", help="only what the service is compared with")
    options = parser.parse_args()
    plan = Plan(rounds=1, seconds=0.7) if options.quick else Plan(rounds=5, seconds=1.5)
    began = time.monotonic()
    figures = run_rounds(plan, options)
    grids = [figures_grid(figures), report.targets_grid(targets(figures))]
    report.show(grids)
    everything = {
        "plan": plan,
        "targets": targets(figures),
        "figures": [
            {"case": case, "connections": connections, "candidate": name, "figure": figure}
            for (case, connections, name), figure in figures.items()
        ],
    }
    folder_of_results = report.write("service", everything, grids)
    print(f"{report.description()}; {time.monotonic() - began:.0f} s; written to {folder_of_results}")


if __name__ == "__main__":
    main()
