"""Real processes for tests: `macaron serve` and other commands, with a home by which all of them are found again."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import platformdirs

from macaron.server.control import ask_control
from macaron.server.supervisor import control_path

ROOT = Path(__file__).parents[1]
ADDRESS = re.compile(r"http://(127\.0\.0\.1):(\d+)")
PATIENCE = 600.0
"""Seconds for what takes a few on a quiet machine. Beside busy neighbours it may take a hundred times as long."""
LOG_SHOWN = 8000
OPEN = {"MOL_ALLOW_UNAUTHENTICATED": "1"}


def until(condition: Callable[[], object], seconds: float, what: str) -> float:
    """Wait for a condition; returns how long it took, fails when it took longer than `seconds`."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds} s: {what}"
        time.sleep(0.01)
    return time.monotonic() - began


class Home:
    """A user's home in a folder. The weights' cache is the real one."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            # The path of a Unix socket must be short.
            "XDG_STATE_HOME": str(folder / "s"),
            "XDG_CACHE_HOME": str(platformdirs.user_cache_path()),
            # What is tested is this tree, also where another one is installed.
            "PYTHONPATH": str(ROOT / "src"),
            **variables,
        }
        self.runtime = folder / "s" / "macaron" / "run"
        self.key_file = folder / ".config" / "macaron" / "keys"

    def alive(self) -> list[int]:
        """Processes that run with this home, whoever their parent is."""
        mark = f"HOME={self.folder}".encode()
        return [pid for pid in _pids() if mark in _environ(pid)]

    def run(
        self, *arguments: str, typed: str = "", seconds: float = PATIENCE, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """A command of the command line, to its end; `typed` is its standard input."""
        return subprocess.run(
            [sys.executable, "-m", "macaron", *arguments],
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            input=typed,
        )


class Service:
    """`macaron serve`, the leader of a process group as in a terminal."""

    def __init__(self, home: Home, *arguments: str, **variables: str) -> None:
        self.home = home
        self._connections: list[Http] = []
        number = len(list(home.folder.glob("*.out")))
        self._out, self._log = home.folder / f"{number}.out", home.folder / f"{number}.log"
        self._began = time.monotonic()
        with self._out.open("wb") as out, self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "macaron", "serve", "--port", "0", *arguments],
                env={**home.environment, **variables},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                start_new_session=True,
            )

    def ready(self) -> Self:
        """Wait until it is; it has an address from now on."""
        until(lambda: "Stop with" in self.printed or self.process.poll() is not None, PATIENCE, "the service is ready")
        self.start_seconds = time.monotonic() - self._began
        found = ADDRESS.search(self.printed)
        assert found, f"it did not start: {self.log}"
        self.port = int(found[2])
        self.url = found[0]
        return self

    @property
    def printed(self) -> str:
        """Standard output so far."""
        return self._out.read_text()

    @property
    def log(self) -> str:
        """Standard error so far."""
        return self._log.read_text()

    def http(self, key: str = "", seconds: float = 20) -> Http:
        """A new connection, closed at the end of the service."""
        self._connections.append(Http(self.port, key, seconds))
        return self._connections[-1]

    def control(self, command: str = "status") -> dict[str, Any]:
        """Ask the supervisor."""
        return asyncio.run(ask_control(control_path(self.home.runtime, self.port), command))

    def signal(self, number: int) -> None:
        """What Ctrl-C does: a signal to the process group."""
        os.killpg(self.process.pid, number)

    def ended(self, seconds: float) -> int:
        """Wait for the end; returns the exit status."""
        return self.process.wait(seconds)

    def stop(self) -> None:
        """End it, whatever state it is in, and see that nothing is left."""
        for connection in self._connections:
            connection.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        until(lambda: not self.home.alive(), 5, "no process of the service is left")


@contextmanager
def serving(home: Home, *arguments: str, **variables: str) -> Iterator[Service]:
    """A service until the block ends."""
    service = Service(home, *arguments, **variables)
    try:
        yield service.ready()
    except BaseException:
        # Shown with a test that fails.
        sys.stderr.write(service.log[-LOG_SHOWN:])
        raise
    finally:
        service.stop()


@contextmanager
def instant_engine(*arguments: str) -> Iterator[str]:
    """The engine double of the benchmarks, in a process of its own; gives its address."""
    command = [sys.executable, "-m", "benchmarks.instant_engine", "--port", "0", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = ADDRESS.search(process.stdout.readline())
        assert found
        try:
            yield found[0]
        finally:
            process.terminate()


class Answer:
    """A response that was read to its end; `events` are those of a stream."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.text = body.decode()

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.text)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of a stream, without the last `[DONE]`."""
        lines = [line[6:] for line in self.text.splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"]


class Http:
    """One connection to a service; `begin` and `end` are the halves of a request."""

    def __init__(self, port: int, key: str = "", seconds: float = 20) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
        self._response: http.client.HTTPResponse | None = None
        self._headers = {"authorization": f"Bearer {key}"} if key else {}

    def begin(
        self, messages: list[dict[str, Any]], model: str = "test-model", headers: Mapping[str, str] = {}, **fields: Any
    ) -> http.client.HTTPResponse:
        """Send a Chat request; returns when the response's head is there."""
        body = json.dumps({"model": model, "messages": messages, **fields})
        head = {"content-type": "application/json", **self._headers, **headers}
        self._connection.request("POST", "/v1/chat/completions", body, head)
        self._response = self._connection.getresponse()
        return self._response

    def chat(self, text: str, model: str = "test-model", headers: Mapping[str, str] = {}, **fields: Any) -> Answer:
        """One question, answered."""
        return finished(self.begin([{"role": "user", "content": text}], model, headers, **fields))

    def post(self, messages: list[dict[str, Any]], **options: Any) -> Answer:
        """A conversation, answered."""
        return finished(self.begin(messages, **options))

    @property
    def local_port(self) -> int:
        """This end of the connection; it is open after a first request."""
        port: int = self._connection.sock.getsockname()[1]
        return port

    def create(self, path: str, headers: Mapping[str, str] = {}, **fields: Any) -> Answer:
        """A POST of any other path."""
        return finished(self.begin_create(path, headers, **fields))

    def begin_create(self, path: str, headers: Mapping[str, str] = {}, **fields: Any) -> http.client.HTTPResponse:
        """As `create`; returns when the response's head is there."""
        head = {"content-type": "application/json", **self._headers, **headers}
        self._connection.request("POST", path, json.dumps(fields), head)
        self._response = self._connection.getresponse()
        return self._response

    def get(self, path: str) -> Answer:
        """A GET."""
        self._connection.request("GET", path, headers=self._headers)
        return finished(self._connection.getresponse())

    def close(self) -> None:
        """Close the connection, and what was not read of a response."""
        self._connection.close()
        if self._response is not None:
            self._response.close()


def finished(response: http.client.HTTPResponse) -> Answer:
    """Read a response to its end."""
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
