"""Processes of a benchmark: started, waited for, measured from /proc, stopped."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

TICKS = os.sysconf("SC_CLK_TCK")
POLL_SECONDS = 0.02


class ProcessError(Exception):
    """A process did not start, did not answer or ended; the message holds the end of its log."""


class Memory(msgspec.Struct, frozen=True):
    """Memory of a process tree in bytes: resident, and proportional (pages shared in the tree counted once)."""

    rss: int
    pss: int


class Process:
    """A child process in a session of its own, with its output in a log file."""

    def __init__(
        self, name: str, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self.name = name
        self.log = log
        with log.open("wb") as output:
            self._popen = subprocess.Popen(
                list(argv),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                start_new_session=True,
            )

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Process id of the tree's root."""
        return self._popen.pid

    def wait_ready(self, port: int, path: str, seconds: float) -> float:
        """Wait until `path` answers 200; return the seconds it took.

        Raises:
            ProcessError: the process ended or did not answer in time.
        """
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            if self._popen.poll() is not None:
                raise ProcessError(f"{self.name} ended with code {self._popen.returncode}: {self.log_tail()}")
            if get_status(port, path) == 200:
                return time.monotonic() - began
            time.sleep(POLL_SECONDS)
        raise ProcessError(f"{self.name} did not answer {path} within {seconds:g} s: {self.log_tail()}")

    def log_tail(self, size: int = 1500) -> str:
        """The end of what the process wrote."""
        return self.log.read_bytes()[-size:].decode(errors="replace")

    def cpu_seconds(self) -> float:
        """User and system time of the living tree so far, in steps of one clock tick."""
        return sum(_cpu_ticks(pid) for pid in process_tree(self.pid)) / TICKS

    def memory(self) -> Memory:
        """Memory of the tree now."""
        return memory_of(process_tree(self.pid))

    def stop(self, seconds: float = 15.0) -> None:
        """SIGTERM, and SIGKILL to its whole session if it is still there after `seconds`."""
        if self._popen.poll() is None:
            self._popen.terminate()
            try:
                self._popen.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(self._popen.pid, signal.SIGKILL)
                self._popen.wait()


def leave_on_sigterm() -> None:
    """Let SIGTERM end this program as an exception does, so that the processes it started are stopped."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def memory_of(pids: Iterable[int]) -> Memory:
    """Memory of some processes now."""
    sizes = [_memory(pid) for pid in pids]
    return Memory(sum(size.rss for size in sizes), sum(size.pss for size in sizes))


def process_tree(root: int) -> list[int]:
    """`root` and its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _stat_fields(int(entry))):
            children.setdefault(int(fields[1]), []).append(int(entry))
    tree, open_ends = [], [root]
    while open_ends:
        pid = open_ends.pop()
        tree.append(pid)
        open_ends.extend(children.get(pid, ()))
    return tree


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def get_status(port: int, path: str) -> int:
    """Status of a GET on this machine, 0 where nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def fetch(port: int, path: str, method: str = "GET") -> bytes:
    """Body of a small request on this machine.

    Raises:
        ProcessError: the answer is not 200.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status != 200:
        raise ProcessError(f"{method} {path} on port {port} answered {response.status}: {body[:200]!r}")
    return body


def _stat_fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; empty where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _cpu_ticks(pid: int) -> int:
    fields = _stat_fields(pid)
    return int(fields[11]) + int(fields[12]) if fields else 0


def _memory(pid: int) -> Memory:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return Memory(0, 0)
    sizes = {line.split()[0]: int(line.split()[1]) * 1024 for line in lines[1:] if line.endswith("kB")}
    return Memory(sizes.get("Rss:", 0), sizes.get("Pss:", 0))
