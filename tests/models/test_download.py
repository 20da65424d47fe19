"""Downloading over a network that fails."""

from __future__ import annotations

import socket
import ssl
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from macaron.errors import ConfigError, Unavailable
from macaron.models.download import DownloadRefusedError, Patience, download
from macaron.models.progress import Stage, silent
from tests.models.conftest import FileServer, handler_of

HASTE = Patience(attempts=3, pause=0.0, silence=5.0)


def fetch(url: str, part: Path, *, size: int = 0, resume: bool = True, patience: Patience = HASTE) -> bytes:
    download(url, part, size=size, resume=resume, progress=silent, patience=patience)
    return part.read_bytes()


def test_a_file_arrives_whole(server: FileServer, tmp_path: Path, content: bytes) -> None:
    assert fetch(server.put("/file", content), tmp_path / "part") == content
    assert server.asked == [("/file", None)]


def test_a_drop_in_the_middle_is_resumed_with_a_range(server: FileServer, tmp_path: Path, content: bytes) -> None:
    server.faults = [-1_000_000, -500_000]
    assert fetch(server.put("/file", content), tmp_path / "part") == content
    assert server.asked == [("/file", None), ("/file", "bytes=1000000-"), ("/file", "bytes=1500000-")]


def test_an_earlier_process_is_resumed(server: FileServer, tmp_path: Path, content: bytes) -> None:
    part = tmp_path / "part"
    part.write_bytes(content[:700_000])
    assert fetch(server.put("/file", content), part) == content
    assert server.asked == [("/file", "bytes=700000-")]


def test_what_cannot_be_checked_is_not_resumed(server: FileServer, tmp_path: Path, content: bytes) -> None:
    part = tmp_path / "part"
    part.write_bytes(b"of another file")
    server.faults = [-1_000_000]
    assert fetch(server.put("/file", content), part, resume=False) == content
    assert server.asked == [("/file", None), ("/file", None)]


def test_a_server_without_ranges_begins_again_cleanly(server: FileServer, tmp_path: Path, content: bytes) -> None:
    server.ranges = False
    server.faults = [-1_000_000]
    assert fetch(server.put("/file", content), tmp_path / "part") == content
    assert len(server.asked) == 2


def test_a_server_that_always_drops_is_given_up_and_the_bytes_are_kept(
    server: FileServer, tmp_path: Path, content: bytes
) -> None:
    server.ranges = False
    server.faults = [-1_000_000, -900_000, -1_000_000, -900_000, -1_000_000]
    with pytest.raises(Unavailable, match=r"the connection ended after \d+ of 3145728 bytes"):
        fetch(server.put("/file", content), tmp_path / "part")
    assert len(server.asked) == 3
    assert (tmp_path / "part").read_bytes() == content[:1_000_000]


def test_a_part_that_is_complete_needs_no_request(server: FileServer, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "part").write_bytes(content)
    assert fetch(server.put("/file", content), tmp_path / "part", size=len(content)) == content
    assert server.asked == []


def test_a_part_that_is_too_long_begins_again(server: FileServer, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "part").write_bytes(content + b"more")
    assert fetch(server.put("/file", content), tmp_path / "part") == content
    assert server.asked == [("/file", f"bytes={len(content) + 4}-"), ("/file", None)]


def test_a_busy_server_is_asked_again(server: FileServer, tmp_path: Path, content: bytes) -> None:
    server.faults = [503, 429]
    assert fetch(server.put("/file", content), tmp_path / "part") == content


def test_pauses_grow_between_tries(server: FileServer, tmp_path: Path) -> None:
    server.faults = [503] * 5
    pauses: list[float] = []
    patience = Patience(attempts=4, pause=0.5)
    with pytest.raises(Unavailable, match="the server answered 503; 0 bytes are kept"):
        download(
            server.put("/file", b"x"), tmp_path / "part", size=0, resume=True, progress=silent, patience=patience,
            pause=pauses.append,
        )  # fmt: skip
    assert pauses == [0.5, 1.0, 2.0]


def test_a_server_that_falls_silent_is_given_up(server: FileServer, tmp_path: Path) -> None:
    server.hold = threading.Event()
    with pytest.raises(Unavailable, match="nothing came for too long"):
        fetch(server.put("/file", b"x"), tmp_path / "part", patience=Patience(attempts=1, silence=0.1))
    server.hold.set()


def test_more_bytes_than_the_file_has_are_not_taken(server: FileServer, tmp_path: Path, content: bytes) -> None:
    server.lengths = False
    with pytest.raises(ConfigError, match="more than the 1000 bytes"):
        fetch(server.put("/file", content), tmp_path / "part", size=1000)
    assert (tmp_path / "part").stat().st_size <= 1000


def test_another_range_than_asked_for_is_not_appended(server: FileServer, tmp_path: Path, content: bytes) -> None:
    server.wrong_range = True
    (tmp_path / "part").write_bytes(content[:10])
    with pytest.raises(ConfigError, match="another range"):
        fetch(server.put("/file", content), tmp_path / "part")


@pytest.mark.parametrize("status", [401, 403, 407])
def test_a_server_that_wants_a_key_refuses(server: FileServer, tmp_path: Path, status: int) -> None:
    server.faults = [status]
    with pytest.raises(DownloadRefusedError, match=f"status {status}"):
        fetch(server.put("/file", b"x"), tmp_path / "part")


def test_a_missing_file_is_an_error_at_once(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the server answered 404") as caught:
        fetch(server.origin + "/none?token=hunter2", tmp_path / "part")
    assert "hunter2" not in caught.value.message
    assert len(server.asked) == 1


def test_a_redirect_is_followed_but_not_to_other_schemes(server: FileServer, tmp_path: Path) -> None:
    server.put("/file", b"x")
    server.redirects = {"/moved": "/file", "/local": "file:///etc/hostname"}
    assert fetch(server.origin + "/moved", tmp_path / "part") == b"x"
    with pytest.raises(ConfigError):
        fetch(server.origin + "/local", tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://host/file"])
def test_only_the_web_is_fetched_from(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="is not an http or https address"):
        fetch(url, tmp_path / "part")


def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        with pytest.raises(Unavailable, match="Connection refused"):
            fetch(f"http://127.0.0.1:{reserved.getsockname()[1]}/file", tmp_path / "part")


def test_progress_counts_the_whole_file_also_when_resumed(server: FileServer, tmp_path: Path, content: bytes) -> None:
    reports: list[tuple[Stage, int, int | None]] = []
    (tmp_path / "part").write_bytes(content[:1000])
    download(
        server.put("/file", content), tmp_path / "part", size=0, resume=True, patience=HASTE,
        progress=lambda stage, done, total: reports.append((stage, done, total)),
    )  # fmt: skip
    assert reports[0] == ("download", 1000, len(content))
    assert reports[-1] == ("download", len(content), len(content))
    assert [done for _, done, _ in reports] == sorted(done for _, done, _ in reports)


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

    class QuietServer(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that leaves during the handshake is what is wanted here."""

    with QuietServer(("127.0.0.1", 0), handler_of(FileServer())) as http:
        http.socket = context.wrap_socket(http.socket, server_side=True)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            with pytest.raises(DownloadRefusedError, match=r"the certificate of 127\.0\.0\.1 cannot be verified"):
                fetch(f"https://127.0.0.1:{http.server_address[1]}/file", tmp_path / "part")
        finally:
            http.shutdown()
            thread.join(10)


def test_a_part_longer_than_the_known_size_begins_again(server: FileServer, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "part").write_bytes(content + b"more")
    assert fetch(server.put("/file", content), tmp_path / "part", size=len(content)) == content
    assert server.asked == [("/file", None)]
