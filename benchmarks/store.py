"""`python -m benchmarks.store`: what a durable commit costs, with `durability` normal and full.

The service's own SQLite store, one step a commit, first one at a time, then 64 callers at once, whose commits the
store may batch. Both durabilities are measured in turn, round by round, on files beside each other.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import tempfile
import time
from pathlib import Path
from typing import Literal

import msgspec
import uvloop

from benchmarks import report
from benchmarks.fill import session_step
from benchmarks.load import Spread, spread
from benchmarks.report import Grid, number
from macaron.store import migrate, open_store
from macaron.store.base import Limits, Store

Durability = Literal["normal", "full"]
DURABILITIES: tuple[Durability, ...] = ("normal", "full")
CALLERS = (1, 64)


class Commits(msgspec.Struct):
    """Latencies in seconds of the commits of one durability and number of callers, and the time they took in all."""

    latencies: list[float] = []
    seconds: float = 0.0


Figures = dict[tuple[Durability, int], Commits]


async def commit(store: Store, callers: int, count: int, into: Commits) -> None:
    """Commit `count` steps."""

    async def caller() -> None:
        for _ in range(count // callers):
            step = session_step(secrets.token_hex(12), 1000)
            began = time.perf_counter()
            await store.put_steps([step])
            into.latencies.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    into.seconds += time.perf_counter() - began


async def measure(folder: Path, rounds: int, count: int) -> Figures:
    """All combinations, interleaved."""
    stores: dict[Durability, Store] = {}
    for durability in DURABILITIES:
        path = folder / f"{durability}.db"
        await asyncio.to_thread(migrate, path)
        stores[durability] = open_store(f"sqlite://{path}", limits=Limits(), durability=durability)
    figures: Figures = {}
    for _ in range(rounds):
        for callers in CALLERS:
            for durability, store in stores.items():
                await commit(store, callers, count, figures.setdefault((durability, callers), Commits()))
    for store in stores.values():
        await store.close()
    return figures


def commits_grid(spreads: dict[tuple[Durability, int], Spread], figures: Figures) -> Grid:
    """A row a combination."""
    rows = [
        (
            f"{durability}, {callers} caller{'s' if callers > 1 else ''}",
            number(of.p50, 3),
            number(of.p95, 3),
            number(of.p99, 3),
            number(1000 * max(figures[durability, callers].latencies), 1),
            number(len(figures[durability, callers].latencies) / figures[durability, callers].seconds),
        )
        for (durability, callers), of in spreads.items()
    ]
    return Grid("Commits of one step", ("durability", "p50 ms", "p95 ms", "p99 ms", "max ms", "steps/s"), rows)


def main() -> None:
    """Run, print, write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1280, help="steps a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made: the disk to measure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="macaron-bench-", dir=options.folder) as folder:
        figures = uvloop.run(measure(Path(folder), options.rounds, options.count))
    spreads = {key: spread(commits.latencies) for key, commits in figures.items()}
    grids = [commits_grid(spreads, figures)]
    report.show(grids)
    rows = [{"durability": key[0], "callers": key[1], "milliseconds": of} for key, of in spreads.items()]
    print(f"{report.description()}; written to {report.write('store', {'commits': rows}, grids)}")


if __name__ == "__main__":
    main()
