"""`make bench-visible`: what a user waits for, in front of an engine double that takes as long as Venti's hops.

First without a bound on the engine, at Venti's own pace: each way of running a turn against the bare answer. Then with
eight concurrent hops, as Venti's `max_num_seqs` allows, on a faster clock: Poisson arrivals from simulated sessions
(`benchmarks.sessions` states the assumptions) at a share of what the engine can serve without speculation.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path

import msgspec
import uvloop

from benchmarks import report
from benchmarks.candidates import Candidate, profile_copy, start_engine, start_macaron
from benchmarks.instant_engine import Stats
from benchmarks.measure import reset_engine, wait_quiet
from benchmarks.open_loop import OpenLoop, Traffic, Turn, run_at_once, run_in_line
from benchmarks.process import fetch, leave_on_sigterm
from benchmarks.report import Grid, Target, number
from benchmarks.sessions import Habits, hit_rate

ROUTE, ANSWER, SUMMARY = 0.54, 3.17, 0.97
# Above the profile's summary cap, so that every turn has the summary hop that the measured ones had.
TOKENS = 256
MAX_CONCURRENT = 8
HABITS = Habits(persistence=0.8, mean_turns=6.0)
OTHER_HABITS = (Habits(0.6, 6.0), Habits(0.8, 3.0), HABITS, Habits(0.9, 6.0), Habits(0.95, 12.0))
# A turn counts as good when its terminal event comes within this multiple of a lone route and answer.
GOOD_WITHIN = 2.0
BARE, IN_LINE, OFF, HIT, MISS = "bare answer", "route + answer + summary in line", "off", "hit", "miss"


class Plan(msgspec.Struct, frozen=True):
    """How long a run takes. `pace` is the length of a second of the loaded part."""

    rounds: int
    at_once: int
    seconds: float
    pace: float


class Loaded(msgspec.Struct, frozen=True):
    """One run under load. Tokens are the engine's, of answers."""

    load: float
    speculate: bool
    turns: int
    good_rate: float
    hits: float
    first_p50: float
    first_p95: float
    terminal_p50: float
    terminal_p95: float
    terminal_mean: float
    wasted_tokens: int
    useful_tokens: int
    cancelled: int
    peak: int
    outcomes: dict[str, int]


def rank(values: list[float], share: float) -> float:
    """A percentile by rank of a list that is not empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def venti_options(pace: float) -> tuple[str, ...]:
    """The double's command line for Venti's hops, slowed or hastened."""
    seconds = {"route": ROUTE, "answer": ANSWER, "summary": SUMMARY}
    times = [word for kind, value in seconds.items() for word in (f"--{kind}-seconds", f"{value * pace:g}")]
    return (*times, "--tokens", str(TOKENS))


def start_service(stack: ExitStack, folder: Path, engine: Candidate, speculate: bool) -> Candidate:
    """The service with speculation on or off."""
    switch = "true" if speculate else "false"
    profile = profile_copy(folder, f"profile-{engine.port}-{switch}", speculate=switch)
    service = start_macaron(folder, engine, 1, profile, f"macaron, speculation {'on' if speculate else 'off'}")
    stack.callback(service.process.stop)
    return service


def measure_unloaded(folder: Path, plan: Plan) -> dict[str, list[Turn]]:
    """Turns by how they were run, interleaved."""
    turns: dict[str, list[Turn]] = {BARE: [], IN_LINE: [], OFF: [], HIT: [], MISS: []}
    with ExitStack() as stack:
        engine = start_engine(folder, *venti_options(1.0))
        stack.callback(engine.process.stop)
        off = start_service(stack, folder, engine, speculate=False)
        on = start_service(stack, folder, engine, speculate=True)
        for number_of_round in range(plan.rounds):
            name = f"round {number_of_round}"
            count = plan.at_once
            ways: dict[str, Coroutine[None, None, list[Turn]]] = {
                BARE: run_at_once(engine, "L2", count, name),
                IN_LINE: run_in_line(engine, count),
                OFF: run_at_once(off, "L2", count, f"off {name}"),
                HIT: run_at_once(on, "L2", count, f"hit {name}"),
                MISS: run_at_once(on, "L1", count, f"miss {name}"),
            }
            for way, run in ways.items():
                turns[way] += uvloop.run(run)
                wait_quiet(engine)
    return turns


def measure_loaded(folder: Path, plan: Plan, load: float, speculate: bool) -> Loaded:
    """One run at a share of the engine's capacity without speculation."""
    capacity = MAX_CONCURRENT / ((ROUTE + ANSWER + SUMMARY) * plan.pace)
    traffic = Traffic(load * capacity, plan.seconds, HABITS, seed=11)
    with ExitStack() as stack:
        engine = start_engine(folder, *venti_options(plan.pace), "--max-concurrent", str(MAX_CONCURRENT))
        stack.callback(engine.process.stop)
        service = start_service(stack, folder, engine, speculate)
        reset_engine(engine)
        began = time.perf_counter()
        turns = uvloop.run(OpenLoop(service, traffic).run())
        seconds = time.perf_counter() - began
        stats = wait_quiet(engine)
        loaded = summarise_loaded(turns, stats, load, speculate, seconds, plan.pace)
        return msgspec.structs.replace(loaded, outcomes=speculation_outcomes(service))


def speculation_outcomes(service: Candidate) -> dict[str, int]:
    """How often the service says that speculation hit, missed or was left out."""
    text = fetch(service.port, "/metrics").decode()
    found = re.findall(r'^macaron_speculation_total\{outcome="(\w+)"\} ([0-9.e+]+)$', text, re.MULTILINE)
    return {outcome: int(float(count)) for outcome, count in found}


def summarise_loaded(
    turns: list[Turn], stats: Stats, load: float, speculate: bool, seconds: float, pace: float
) -> Loaded:
    """Percentiles in seconds of the run's own clock; rates a second of it."""
    firsts, terminals = [turn.first for turn in turns], [turn.terminal for turn in turns]
    good = sum(terminal <= GOOD_WITHIN * (ROUTE + ANSWER) * pace for terminal in terminals)
    return Loaded(
        load,
        speculate,
        len(turns),
        good / seconds,
        hits=sum(turn.hit for turn in turns) / len(turns),
        first_p50=rank(firsts, 0.5),
        first_p95=rank(firsts, 0.95),
        terminal_p50=rank(terminals, 0.5),
        terminal_p95=rank(terminals, 0.95),
        terminal_mean=statistics.fmean(terminals),
        wasted_tokens=stats.wasted_tokens.get("answer", 0),
        useful_tokens=stats.hops.get("answer", 0) * TOKENS,
        cancelled=stats.cancelled.get("answer", 0),
        peak=stats.peak,
        outcomes={},
    )


def overheads(turns: dict[str, list[Turn]]) -> dict[str, float]:
    """Time to the terminal event over the bare answer's, in percent, by medians."""
    bare = statistics.median(turn.terminal for turn in turns[BARE])
    return {way: 100 * (statistics.median(turn.terminal for turn in of) / bare - 1) for way, of in turns.items()}


def unloaded_grid(turns: dict[str, list[Turn]]) -> Grid:
    """Every way of running a turn."""
    over = overheads(turns)
    rows = []
    for way, of in turns.items():
        firsts, terminals = [turn.first for turn in of], [turn.terminal for turn in of]
        rows.append(
            (
                way if way in (BARE, IN_LINE) else f"macaron, speculation {way}",
                number(rank(firsts, 0.5), 3),
                number(rank(firsts, 0.95), 3),
                number(rank(terminals, 0.5), 3),
                number(rank(terminals, 0.95), 3),
                f"{over[way]:+.1f} %",
                number(len(of)),
            )
        )
    columns = ("turn", "first token p50 s", "p95 s", "terminal p50 s", "p95 s", "terminal over bare", "turns")
    return Grid("Venti's hops, engine unbounded", columns, rows)


def loaded_grid(runs: list[Loaded], pace: float) -> Grid:
    """Runs under load; times are given in Venti's seconds."""
    rows = [
        (
            f"{100 * run.load:.0f} %, {'on' if run.speculate else 'off'}",
            number(run.first_p50 / pace, 2),
            number(run.first_p95 / pace, 2),
            number(run.terminal_p50 / pace, 2),
            number(run.terminal_p95 / pace, 2),
            number(run.terminal_mean / pace, 2),
            f"{number(run.wasted_tokens)} ({100 * run.wasted_tokens / max(1, run.useful_tokens):.1f} %)",
            "/".join(number(run.outcomes.get(outcome, 0)) for outcome in ("hit", "miss", "skipped")),
            f"{100 * run.hits:.0f} %",
            number(run.good_rate * pace, 2),
            number(run.turns),
        )
        for run in runs
    ]
    columns = ("load, speculation", "first token p50 s", "p95 s", "terminal p50 s", "p95 s", "mean s", "wasted tokens")
    more = ("hit/miss/skipped", "predictor right", "good turns/s", "turns")
    return Grid(
        f"At most {MAX_CONCURRENT} hops at once (Venti's seconds, run at {pace:g} of them)", columns + more, rows
    )


def weighted_grid(over: dict[str, float]) -> Grid:
    """The headline: the overhead weighted by how often the predictor is right, for several habits."""
    rows = []
    for habits in OTHER_HABITS:
        rate = hit_rate(habits)
        mark = " (used above)" if habits == HABITS else ""
        weighted = rate * over[HIT] + (1 - rate) * over[MISS]
        name = f"persistence {habits.persistence:g}, {habits.mean_turns:g} turns{mark}"
        rows.append((name, f"{100 * rate:.1f} %", f"{weighted:+.1f} %"))
    columns = ("simulated sessions (a Markov chain)", "predictor right", "terminal over bare, weighted")
    return Grid("Headline", columns, rows)


def main() -> None:
    """Run, print, write the results."""
    leave_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer turns, for a first look")
    options = parser.parse_args()
    plan = Plan(1, 4, 8.0, 0.1) if options.quick else Plan(3, 4, 40.0, 0.2)
    with tempfile.TemporaryDirectory(prefix="macaron-bench-") as folder:
        turns = measure_unloaded(Path(folder), plan)
        cases = [(load, speculate) for load in (0.5, 0.9) for speculate in (False, True)]
        runs = [measure_loaded(Path(folder), plan, load, speculate) for load, speculate in cases]
    over = overheads(turns)
    weighted = hit_rate(HABITS) * over[HIT] + (1 - hit_rate(HABITS)) * over[MISS]
    targets = [
        Target("terminal over the bare answer, speculation hits", over[HIT], 2.0, "%"),
        Target("terminal over the bare answer, speculation misses", over[MISS], 18.0, "%"),
        Target("terminal over the bare answer, speculation off", over[OFF], 18.0, "%"),
    ]
    grids = [unloaded_grid(turns), loaded_grid(runs, plan.pace), weighted_grid(over), report.targets_grid(targets)]
    report.show(grids)
    figures = {"plan": plan, "habits": HABITS, "overheads": over, "weighted": weighted, "turns": turns, "loaded": runs}
    written = report.write("visible", figures | {"targets": targets}, grids)
    print(f"{report.description()}; written to {written}")


if __name__ == "__main__":
    main()
