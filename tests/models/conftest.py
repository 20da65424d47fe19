"""A real HTTP server with the faults that downloads meet."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass
class FileServer:
    """Serves `files`; every request consumes the first entry of `faults`, if any.

    A fault is a status to answer, or, negative, after how many bytes of the body the connection ends.
    """

    origin: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    lengths: bool = True
    faults: list[int] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)
    wrong_range: bool = False
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    reached: threading.Event = field(default_factory=threading.Event)
    hold: threading.Event | None = None

    def put(self, path: str, content: bytes) -> str:
        self.files[path] = content
        return self.origin + path


def handler_of(state: FileServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.asked.append((self.path, wanted))
            state.reached.set()
            if state.hold is not None:
                state.hold.wait(20)
            fault = state.faults.pop(0) if state.faults else 0
            if self.path in state.redirects:
                self.reply(302, b"", {"Location": state.redirects[self.path]})
            elif fault > 0:
                self.reply(fault, b"")
            elif self.path not in state.files:
                self.reply(404, b"")
            else:
                self.give(state.files[self.path], wanted, -fault)

        def give(self, content: bytes, wanted: str | None, cut: int) -> None:
            headers = {"Content-Type": state.types.get(self.path, "application/octet-stream")}
            status, start = 200, 0
            if wanted and state.ranges:
                start = int(wanted.removeprefix("bytes=").partition("-")[0])
                if start >= len(content):
                    self.reply(416, b"")
                    return
                status = 206
                first = start + 1 if state.wrong_range else start
                headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
            self.reply(status, content[start:], headers, cut)

        def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None, cut: int = 0) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            if state.lengths:
                self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            with suppress(ConnectionError):  # the client may have left
                self.wfile.write(body[:cut] if cut else body)
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            return

    return Handler


@pytest.fixture
def server() -> Iterator[FileServer]:
    state = FileServer()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler_of(state)) as http:
        state.origin = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield state
        http.shutdown()
        thread.join(10)


@pytest.fixture(scope="session")
def content() -> bytes:
    """3 MB that do not repeat within a block."""
    return b"".join(hashlib.sha256(str(number).encode()).digest() for number in range(98_304))
