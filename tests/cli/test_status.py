"""`macaron status` and `macaron trace`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.cli.terminal import COLUMNS, Terminal
from tests.harness import write_profile
from tests.processes import OPEN, Home, Service, serving, until

Start = Callable[..., Terminal]


def test_a_ready_service_tells_its_specialists_and_processes(service: Service) -> None:
    done = service.home.run("status", "--url", service.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"test-model at {service.url}: ready" in done.stdout
    assert f"supervisor {service.process.pid}; workers {service.control()['workers'][0]}, 0 restarts" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines() if line.startswith(" L")] == ["L0", "L1", "L2", "L3"]


def test_a_service_that_is_not_ready_is_status_1_with_the_reason(tmp_path: Path) -> None:
    home = Home(tmp_path, **OPEN)
    with serving(home, "--profile", str(write_profile(tmp_path, "http://127.0.0.1:9"))) as service:
        done = home.run("status", "--url", service.url)
        assert done.returncode == 1
        assert ": not ready" in done.stdout
        assert "cannot connect to the engine at 127.0.0.1:9" in done.stdout.replace("\n", " ")


def test_where_nothing_listens_the_remedy_is_told(service: Service) -> None:
    done = service.home.run("status", "--url", "http://127.0.0.1:1")
    assert done.returncode == 1
    assert "start the service with `macaron serve`" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("url", ["nonsense", "ftp://127.0.0.1", "http://127.0.0.1:99999", "http://"])
def test_an_address_that_is_none_is_named(url: str, service: Service) -> None:
    done = service.home.run("status", "--url", url)
    assert done.returncode == 1
    assert done.stderr.startswith(f"macaron: --url {url} is no address")


@pytest.mark.parametrize(
    ("command", "body"),
    [
        (["status"], b"<html>"),
        (["status"], b"[]"),
        (["status"], b'{"status":"ok"}'),
        (["status"], b'{"error":{}}'),
        (["trace", "x"], b'"x"'),
        (["chat", "x"], b'{"data":[]}'),
    ],
)
def test_what_is_no_macaron_service_is_told_apart(command: list[str], body: bytes, service: Service) -> None:
    with stranger(body) as url:
        done = service.home.run(*command, "--url", url)
    assert done.returncode == 1
    assert done.stderr == f"macaron: What answers at {url} is no Macaron service.\n"


@contextmanager
def stranger(body: bytes) -> Iterator[str]:
    """Another HTTP server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_trace_shows_the_hops_with_the_summary(service: Service) -> None:
    http = service.http()
    assert http.chat("@L1 @n=300 tell me", headers={"x-session-id": "traced"}).status == 200

    def lines() -> list[list[str]]:
        done = service.home.run("trace", "traced", "--url", service.url)
        assert (done.returncode, done.stderr) == (0, "")
        return [line.split() for line in done.stdout.splitlines()[2:]]

    until(lambda: len(lines()) == 3, 10, "the summary is there")
    route, answer, summary = lines()
    assert route[0] == "1"
    assert route[2:4] == ["L1", "route"]
    assert (answer[0], answer[-2:]) == ("answer", ["300", "completed"])
    assert (summary[0], summary[-1]) == ("summary", "ok")


def test_a_trace_fits_a_terminal(service: Service, terminal: Start) -> None:
    assert service.http().chat("@L3 hello", headers={"x-session-id": "narrow"}).status == 200
    trace = terminal("trace", "narrow")
    assert trace.ended() == 0
    assert "…" not in trace.shown
    assert max(len(line) for line in trace.shown.splitlines()) <= COLUMNS


def test_an_unknown_session_is_one_line(service: Service) -> None:
    done = service.home.run("trace", "nobody/../x y", "--url", service.url)
    assert done.returncode == 1
    assert done.stderr == "macaron: There is no session `nobody/../x y`.\n"
