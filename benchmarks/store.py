"""`python -m benchmarks.store`: what a durable commit costs, with `durability` normal and full, and what a look-up.

The service's own SQLite store, one step a commit, first one at a time, then 64 callers at once, whose commits the
store may batch. A look-up finds a step by its digest and reads its path. Both durabilities are measured in turn, round
by round, on files beside each other; with `--postgres URL` a database of yours, too, which keeps what is written.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import uvloop

from benchmarks import report
from benchmarks.fill import session_step
from benchmarks.load import spread
from benchmarks.report import Grid, number
from macaron.conversation import Step
from macaron.store import open_store, taken
from macaron.store.base import Limits, Store

CALLERS = (1, 64)


class Calls(msgspec.Struct):
    """Latencies in seconds of the calls to one store by a number of callers, and the time they took in all."""

    latencies: list[float] = []
    seconds: float = 0.0


Call = Callable[[Store, Step], Awaitable[object]]
Figures = dict[tuple[str, int], Calls]


async def commit(store: Store, step: Step) -> None:
    """Put a step."""
    await store.put_steps([step])


async def look_up(store: Store, step: Step) -> None:
    """Find a step that is there, as a request does."""
    found = await store.locate(step.scope, [step.digest], asked="v1:new", head=step.head)
    assert found.prefix is not None
    assert await store.path(step.scope, found.prefix.step.id)


async def measured(call: Call, store: Store, steps: Sequence[Step], callers: int, into: Calls) -> None:
    """Call once for each step."""

    async def caller(number: int) -> None:
        for step in steps[number::callers]:
            began = time.perf_counter()
            await call(store, step)
            into.latencies.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*map(caller, range(callers)))
    into.seconds += time.perf_counter() - began


async def measure(urls: dict[str, str], rounds: int, count: int) -> tuple[Figures, Figures]:
    """Commits and look-ups of all combinations, interleaved."""
    commits: Figures = {}
    lookups: Figures = {}
    async with AsyncExitStack() as stack:
        stores: dict[str, Store] = {}
        for name, url in urls.items():
            await stack.enter_async_context(taken(url))
            stores[name] = open_store(url, limits=Limits(), durability="full" if name == "full" else "normal")
            stack.push_async_callback(stores[name].close)
        for _ in range(rounds):
            for callers in CALLERS:
                for name, store in stores.items():
                    steps = [session_step(secrets.token_hex(12), 1000) for _ in range(count)]
                    for call, into in ((commit, commits), (look_up, lookups)):
                        await measured(call, store, steps, callers, into.setdefault((name, callers), Calls()))
    return commits, lookups


def calls_grid(title: str, figures: Figures) -> Grid:
    """A row a combination."""
    spreads = {key: spread(calls.latencies) for key, calls in figures.items()}
    rows = [
        (
            f"{name}, {callers} caller{'s' if callers > 1 else ''}",
            number(of.p50, 3),
            number(of.p95, 3),
            number(of.p99, 3),
            number(1000 * max(figures[name, callers].latencies), 1),
            number(len(figures[name, callers].latencies) / figures[name, callers].seconds),
        )
        for (name, callers), of in spreads.items()
    ]
    return Grid(title, ("store", "p50 ms", "p95 ms", "p99 ms", "max ms", "calls/s"), rows)


def rows_of(figures: Figures) -> list[dict[str, object]]:
    """For the file of results."""
    return [{"store": key[0], "callers": key[1], "milliseconds": spread(of.latencies)} for key, of in figures.items()]


def main() -> None:
    """Run, print, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1280, help="steps a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made: the disk to measure")
    parser.add_argument("--postgres", default="", help="a database's address, to be measured beside the files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="macaron-bench-", dir=options.folder) as folder:
        urls = {name: f"sqlite://{Path(folder).absolute()}/{name}.db" for name in ("normal", "full")}
        if options.postgres:
            urls["postgres"] = options.postgres
        commits, lookups = uvloop.run(measure(urls, options.rounds, options.count))
    grids = [calls_grid("Commits of one step", commits), calls_grid("Look-ups of one step", lookups)]
    report.show(grids)
    results = {"commits": rows_of(commits), "lookups": rows_of(lookups)}
    print(f"{report.description()}; written to {report.write('store', results, grids)}")


if __name__ == "__main__":
    main()
