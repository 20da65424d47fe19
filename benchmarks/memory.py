"""`python -m benchmarks.memory`: the service's memory before and after load that it must not keep anything of.

20,000 unauthenticated requests to as many paths, then 1,000 chats with 200 KB of history each, none seen before.
"""

from __future__ import annotations

import argparse
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import uvloop

from benchmarks import report
from benchmarks.candidates import Candidate, start_engine, start_macaron
from benchmarks.http_client import burst
from benchmarks.measure import wait_quiet
from benchmarks.process import Memory, leave_on_sigterm
from benchmarks.report import Grid, Target, number
from benchmarks.workload import Workload, build_template

MEBIBYTE = 1024 * 1024
UNAUTHENTICATED, CHATS, HISTORY_BYTES = 20_000, 1_000, 200_000
WARM_REQUESTS = 2_000
CONNECTIONS = 16
SETTLE_SECONDS = 3.0


class Stage(msgspec.Struct, frozen=True):
    """Memory after something was sent, and the statuses of the answers."""

    name: str
    memory: Memory
    statuses: dict[int, int]


def keyless(count: int) -> Iterator[bytes]:
    """Requests without a key or with a wrong one, each with words of its own, half to paths that do not exist."""
    for place in range(count):
        word = secrets.token_hex(8)
        path = f"/v1/models?{word}" if place % 4 < 2 else f"/v1/{word}"
        key = f"authorization: Bearer {word}\r\n" if place % 2 else ""
        yield f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{key}\r\n".encode()


def chats(service: Candidate, count: int, history: int, first: int) -> Iterator[bytes]:
    """Chats that have nothing in common."""
    template = build_template(Workload(service.model, history_bytes=history), 0, service.headers)
    return (template.request(first + number_of_request) for number_of_request in range(count))


def run_stages(folder: Path, workers: int) -> list[Stage]:
    """Start a service with one key, warm it up, send each load in turn."""
    key = secrets.token_urlsafe(24)
    key_file = folder / "keys"
    key_file.write_text(f"bench:{key}\n")
    key_file.chmod(0o600)
    with ExitStack() as stack:
        engine = start_engine(folder)
        stack.callback(engine.process.stop)
        started = start_macaron(folder, engine, workers, env={"MOL_API_KEY_FILE": str(key_file)})
        stack.callback(started.process.stop)
        service = msgspec.structs.replace(started, headers={"authorization": f"Bearer {key}"})

        def stage(name: str, requests: Iterator[bytes]) -> Stage:
            statuses: Counter[int] = uvloop.run(burst(service.port, requests, CONNECTIONS))
            wait_quiet(engine)
            time.sleep(SETTLE_SECONDS)
            return Stage(name, service.process.memory(), dict(statuses))

        # The first chats fill caches and the allocator's pools, which is not growth.
        return [
            stage("warm", chats(service, WARM_REQUESTS, 0, 0)),
            stage(f"{UNAUTHENTICATED:,} unauthenticated requests", keyless(UNAUTHENTICATED)),
            stage(f"{CHATS:,} chats of {HISTORY_BYTES // 1000} KB", chats(service, CHATS, HISTORY_BYTES, 10_000)),
            stage("the same again", chats(service, CHATS, HISTORY_BYTES, 20_000)),
        ]


def stages_grid(stages: list[Stage]) -> Grid:
    """Memory by stage, and what was added since the first."""
    rows = [
        (
            stage.name,
            number(stage.memory.rss / MEBIBYTE, 1),
            number(stage.memory.pss / MEBIBYTE, 1),
            f"{(stage.memory.rss - stages[0].memory.rss) / MEBIBYTE:+.1f}",
            ", ".join(f"{count}× {status}" for status, count in stage.statuses.items()),
        )
        for stage in stages
    ]
    return Grid("Memory of the service's processes", ("after", "RSS MiB", "PSS MiB", "since warm", "answers"), rows)


def main() -> None:
    """Run, print, write the results."""
    leave_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="macaron-bench-") as folder:
        stages = run_stages(Path(folder), options.workers)
    growth = (stages[2].memory.rss - stages[0].memory.rss) / MEBIBYTE
    targets = [Target("growth of RSS over both loads", growth, 30.0, "MiB")]
    grids = [stages_grid(stages), report.targets_grid(targets)]
    report.show(grids)
    written = report.write("memory", {"workers": options.workers, "stages": stages, "targets": targets}, grids)
    print(f"{report.description()}; written to {written}")


if __name__ == "__main__":
    main()
