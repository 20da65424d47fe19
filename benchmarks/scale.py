"""`python -m benchmarks.scale`: CPU a request with a full store against an empty one, and as a history grows.

The full store holds a million sessions and 5,000 open tool loops. Both services stand in front of the same engine
double and are measured in turn. Then the history of a request grows to 1 MB, known to the service and new to it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

import msgspec

from benchmarks import report
from benchmarks.candidates import Candidate, start_engine, start_macaron
from benchmarks.fill import fill_store
from benchmarks.load import LoadProcess
from benchmarks.measure import Figure, Sample, ratio, run_sample, summarise
from benchmarks.process import leave_on_sigterm
from benchmarks.report import Grid, Target, number
from benchmarks.workload import Workload

EMPTY, FULL = "empty store", "full store"
CONNECTIONS = 16
KILOBYTES = (125, 250, 500, 1000)
HISTORY_CONNECTIONS = 4


class Plan(msgspec.Struct, frozen=True):
    """How much is stored and how long is measured."""

    sessions: int
    open_calls: int
    rounds: int
    seconds: float


def store_cases() -> dict[str, Workload]:
    """First turns, and second turns of conversations that the service knows."""
    return {"new conversation": Workload(""), "known conversation": Workload("", known_history=True)}


def history_cases() -> dict[tuple[str, int], Workload]:
    """Histories by kind and kilobytes."""
    return {
        (kind, size): Workload("", history_bytes=1000 * size, known_history=kind == "known")
        for kind in ("known", "new")
        for size in KILOBYTES
    }


def measure_stores(folder: Path, plan: Plan) -> dict[tuple[str, str], Figure]:
    """Figures by case and store."""
    full = folder / "full.db"
    seconds = fill_store(full, plan.sessions, plan.open_calls)
    size = full.stat().st_size / 1e6
    print(
        f"stored {plan.sessions:,} sessions and {plan.open_calls:,} open tool loops in {seconds:.0f} s, {size:.0f} MB"
    )
    samples: dict[tuple[str, str], list[Sample]] = {}
    with ExitStack() as stack:
        engine = start_engine(folder)
        stack.callback(engine.process.stop)
        services = {
            EMPTY: start_macaron(folder, engine, name=EMPTY),
            FULL: start_macaron(folder, engine, name=FULL, store=f"sqlite://{full}"),
        }
        for service in services.values():
            stack.callback(service.process.stop)
        load = stack.enter_context(LoadProcess())
        for service in services.values():
            run_sample(load, service, engine, Workload(""), CONNECTIONS, plan.seconds)
        for _ in range(plan.rounds):
            for case, workload in store_cases().items():
                for name, service in services.items():
                    sample = run_sample(load, service, engine, workload, CONNECTIONS, plan.seconds)
                    samples.setdefault((case, name), []).append(sample)
    return {key: summarise(values) for key, values in samples.items()}


def measure_histories(folder: Path, plan: Plan) -> dict[tuple[str, int], Figure]:
    """Figures by kind of history and its kilobytes."""
    samples: dict[tuple[str, int], list[Sample]] = {}
    with ExitStack() as stack:
        engine = start_engine(folder)
        stack.callback(engine.process.stop)
        service: Candidate = start_macaron(folder, engine)
        stack.callback(service.process.stop)
        load = stack.enter_context(LoadProcess())
        run_sample(load, service, engine, Workload(""), CONNECTIONS, plan.seconds)
        for _ in range(plan.rounds):
            for key, workload in history_cases().items():
                sample = run_sample(load, service, engine, workload, HISTORY_CONNECTIONS, plan.seconds)
                samples.setdefault(key, []).append(sample)
    return {key: summarise(values) for key, values in samples.items()}


def curvature(figures: dict[tuple[str, int], Figure], kind: str) -> float:
    """CPU a byte between the two largest histories over that between the two before: 1 where CPU is linear in bytes."""
    cpus = [figures[kind, size].cpu for size in KILOBYTES]
    slopes = [(cpus[n + 1] - cpus[n]) / (KILOBYTES[n + 1] - KILOBYTES[n]) for n in range(len(KILOBYTES) - 1)]
    return slopes[-1] / statistics.fmean(slopes[:-1])


def doubling(figures: dict[tuple[str, int], Figure], kind: str) -> float:
    """CPU of the largest history over that of the one before, half as large: at most 2 where CPU is linear in bytes."""
    return figures[kind, KILOBYTES[-1]].cpu / figures[kind, KILOBYTES[-2]].cpu


def figure_row(case: str, name: str, figure: Figure) -> tuple[str, ...]:
    """One figure for a table."""
    span = f"{min(figure.cpus):,.0f}–{max(figure.cpus):,.0f}"
    return (case, name, number(figure.rate), number(figure.p50, 2), number(figure.cpu), span, number(figure.errors))


def main() -> None:
    """Run, print, write the results."""
    leave_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=1_000_000)
    parser.add_argument("--open-calls", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    plan = Plan(options.sessions, options.open_calls, options.rounds, 1.5)
    with tempfile.TemporaryDirectory(prefix="macaron-bench-") as folder:
        stores = measure_stores(Path(folder), plan)
    with tempfile.TemporaryDirectory(prefix="macaron-bench-") as folder:
        histories = measure_histories(Path(folder), plan)
    targets = [
        Target(
            f"CPU with a full store over an empty one, {case}",
            ratio(stores[case, FULL].cpus, stores[case, EMPTY].cpus),
            1.1,
            "×",
        )
        for case in store_cases()
    ]
    targets += [
        Target(f"CPU of 1 MB over 500 KB, {kind} history (linear: 2)", doubling(histories, kind), 2.2, "×")
        for kind in ("known", "new")
    ]
    targets += [
        Target(f"CPU a byte from 500 KB to 1 MB over that below, {kind} history", curvature(histories, kind), 1.2, "×")
        for kind in ("known", "new")
    ]
    columns = ("case", "", "req/s", "p50 ms", "CPU µs/req", "over rounds", "errors")
    rows = [figure_row(case, name, figure) for (case, name), figure in stores.items()]
    rows += [figure_row(f"{kind} history", f"{size} KB", figure) for (kind, size), figure in histories.items()]
    grids = [Grid("Stores and histories, 3 hops", columns, rows), report.targets_grid(targets)]
    report.show(grids)
    figures = {"plan": plan, "targets": targets, "rows": rows}
    print(f"{report.description()}; written to {report.write('scale', figures, grids)}")


if __name__ == "__main__":
    main()
