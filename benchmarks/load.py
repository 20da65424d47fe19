"""The closed-loop load generator, a process of its own: jobs come as JSON lines on stdin, results go to stdout."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from time import perf_counter
from types import TracebackType
from typing import IO

import msgspec
import uvloop

from benchmarks.http_client import Client, Exchange, connect
from benchmarks.workload import Template, Workload, build_template

LOST_SECONDS = 60.0


class Job(msgspec.Struct, frozen=True):
    """`connections` clients that each send their next request when they have the answer to the last, for `seconds`.

    `first_number` numbers the requests; no two jobs on one service may share numbers, or their requests are resends.
    """

    port: int
    workload: Workload
    connections: int
    seconds: float
    first_number: int
    headers: dict[str, str] = {}


class Spread(msgspec.Struct, frozen=True):
    """Percentiles in milliseconds."""

    p50: float
    p95: float
    p99: float
    mean: float


class Result(msgspec.Struct, frozen=True):
    """What a job measured. `latency` is to the last byte, `first` to the first text of a stream."""

    requests: int
    errors: int
    seconds: float
    latency: Spread
    first: Spread | None
    load_cpu: float
    error: str = ""
    next_number: int = 0


def spread(seconds: list[float]) -> Spread:
    """Percentiles by rank of a list that is not empty."""
    ordered = sorted(seconds)

    def rank(share: float) -> float:
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return Spread(rank(0.50), rank(0.95), rank(0.99), 1000 * sum(ordered) / len(ordered))


class ClosedLoop:
    """Runs one job."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._number = job.first_number
        self._stop_at = 0.0
        self._templates: dict[Client, Template] = {}
        self._exchanges: list[Exchange] = []
        self._failed: list[Exchange] = []
        self._running = 0
        self._finished = asyncio.Event()

    async def run(self) -> Result:
        """Connect, send until the time is up, wait for the last answers."""
        clients = [await connect(self._job.port, self._on_done) for _ in range(self._job.connections)]
        for place, client in enumerate(clients):
            self._templates[client] = build_template(self._job.workload, place, self._job.headers)
        await self._prime(clients)
        cpu, began = _own_cpu(), perf_counter()
        self._stop_at = began + self._job.seconds
        await self._send_all({client: self._next(client) for client in clients})
        cpu, seconds = _own_cpu() - cpu, perf_counter() - began
        for client in clients:
            client.close()
        return self._result(seconds, cpu)

    async def _prime(self, clients: list[Client]) -> None:
        """Let the service answer each conversation's last question, uncounted."""
        priming = {client: self._templates[client].priming for client in clients if self._templates[client].priming}
        if priming:
            await self._send_all(priming)
            self._exchanges.clear()

    async def _send_all(self, requests: dict[Client, bytes]) -> None:
        """Send a request on each connection and wait until all of them rest."""
        self._finished.clear()
        self._running = len(requests)
        for client, request in requests.items():
            client.send(request)
        await asyncio.wait_for(self._finished.wait(), self._job.seconds + LOST_SECONDS)

    def _next(self, client: Client) -> bytes:
        self._number += 1
        return self._templates[client].request(self._number)

    def _on_done(self, client: Client, exchange: Exchange) -> None:
        (self._exchanges if exchange.status == 200 else self._failed).append(exchange)
        if exchange.status != 0 and perf_counter() < self._stop_at:
            client.send(self._next(client))
            return
        self._running -= 1
        if not self._running:
            self._finished.set()

    def _result(self, seconds: float, cpu: float) -> Result:
        error = ""
        if self._failed:
            error = f"{self._failed[0].status}: {b''.join(self._failed[0].body)[:300].decode(errors='replace')}"
        if not self._exchanges:
            raise RuntimeError(f"no request succeeded on port {self._job.port}; the first failure was {error}")
        firsts = [exchange.first - exchange.began for exchange in self._exchanges if exchange.first]
        return Result(
            requests=len(self._exchanges),
            errors=len(self._failed),
            seconds=seconds,
            latency=spread([exchange.end - exchange.began for exchange in self._exchanges]),
            first=spread(firsts) if firsts else None,
            load_cpu=cpu,
            error=error,
            next_number=self._number,
        )


class LoadProcess:
    """A running generator; `run` sends it a job and waits for the result."""

    def __init__(self) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._number = 0

    def __enter__(self) -> LoadProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _pipe(self._popen.stdin).close()
        self._popen.wait(10)

    def run(
        self, port: int, workload: Workload, connections: int, seconds: float, headers: dict[str, str] | None = None
    ) -> Result:
        """Run one job; requests are numbered on from the last one.

        Raises:
            RuntimeError: no request succeeded; the message is the generator's.
        """
        job = Job(port, workload, connections, seconds, self._number, headers or {})
        pipe = _pipe(self._popen.stdin)
        pipe.write(msgspec.json.encode(job) + b"\n")
        pipe.flush()
        line = _pipe(self._popen.stdout).readline()
        answer = msgspec.json.decode(line) if line else "the load generator ended"
        if isinstance(answer, str):
            raise RuntimeError(answer)
        result = msgspec.convert(answer, Result)
        self._number = result.next_number
        return result


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _own_cpu() -> float:
    times = os.times()
    return times.user + times.system


def main() -> None:
    """Run jobs from stdin until it ends."""
    for line in sys.stdin.buffer:
        job = msgspec.json.decode(line, type=Job)

        async def run(job: Job = job) -> Result:
            return await ClosedLoop(job).run()

        try:
            answer = msgspec.json.encode(uvloop.run(run()))
        except (RuntimeError, TimeoutError, OSError) as error:
            answer = msgspec.json.encode(f"{type(error).__name__}: {error}")
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
