"""Weights are fetched once, checked, and found again at once."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.hcp import WeightsSection
from macaron.models import Patience, Stage, cached_path, fetch_weights, is_cached
from tests.models.conftest import FileServer

HASTE = Patience(attempts=2, pause=0.0, silence=5.0)


def section(url: str, content: bytes, path: str = "") -> WeightsSection:
    return WeightsSection(file="m.gguf", url=url, path=path, sha256=hashlib.sha256(content).hexdigest())


def fetch(weights: WeightsSection, cache: Path, stages: list[Stage] | None = None) -> Path:
    def progress(stage: Stage, done: int, total: int | None) -> None:
        if stages is not None:
            stages.append(stage)

    return fetch_weights(weights, cache_dir=cache, patience=HASTE, progress=progress)


def test_an_address_is_fetched_checked_and_kept(server: FileServer, tmp_path: Path, content: bytes) -> None:
    weights = section(server.put("/m", content), content)
    path = fetch(weights, tmp_path)
    assert path == cached_path(weights, tmp_path)
    assert path.read_bytes() == content
    assert is_cached(weights, tmp_path)
    assert not list(tmp_path.rglob("*.part"))


def test_a_second_start_asks_no_network_and_reads_nothing(server: FileServer, tmp_path: Path, content: bytes) -> None:
    weights = section(server.put("/m", content), content)
    fetch(weights, tmp_path)
    stages: list[Stage] = []
    server.files.clear()
    fetch(weights, tmp_path, stages)
    assert stages == []
    assert len(server.asked) == 1


def test_a_file_that_was_changed_is_fetched_again(server: FileServer, tmp_path: Path, content: bytes) -> None:
    weights = section(server.put("/m", content), content)
    path = fetch(weights, tmp_path)
    path.write_bytes(b"damaged")
    assert not is_cached(weights, tmp_path)
    assert fetch(weights, tmp_path).read_bytes() == content
    assert len(server.asked) == 2


def test_a_file_put_there_by_hand_is_checked_and_taken(server: FileServer, tmp_path: Path, content: bytes) -> None:
    weights = section(server.origin + "/absent", content)
    path = cached_path(weights, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    stages: list[Stage] = []
    assert fetch(weights, tmp_path, stages) == path
    assert set(stages) == {"check"}
    assert server.asked == []


def test_a_touched_file_is_read_again_but_not_fetched(server: FileServer, tmp_path: Path, content: bytes) -> None:
    weights = section(server.put("/m", content), content)
    path = fetch(weights, tmp_path)
    os.utime(path, (1, 1))
    stages: list[Stage] = []
    fetch(weights, tmp_path, stages)
    assert set(stages) == {"check"}
    assert len(server.asked) == 1


def test_wrong_bytes_are_deleted_and_named(server: FileServer, tmp_path: Path, content: bytes) -> None:
    weights = section(server.put("/m", content[:-1] + b"?"), content)
    with pytest.raises(ConfigError, match=r"has SHA-256 .* the contract names .*; it was deleted") as caught:
        fetch(weights, tmp_path)
    assert caught.value.code == "wrong_hash"
    assert not list(tmp_path.rglob("*.gguf")) + list(tmp_path.rglob("*.part"))


def test_a_wrong_size_is_refused(server: FileServer, tmp_path: Path, content: bytes) -> None:
    weights = WeightsSection(file="m.gguf", url=server.put("/m", content), size=len(content) + 1)
    with pytest.raises(ConfigError, match=f"has {len(content)} bytes, the contract names {len(content) + 1}"):
        fetch(weights, tmp_path)


def test_an_interrupted_fetch_is_resumed_by_the_next_one(server: FileServer, tmp_path: Path, content: bytes) -> None:
    weights = section(server.put("/m", content), content)
    part = cached_path(weights, tmp_path).with_name("m.gguf.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(content[:2_000_000])
    assert fetch(weights, tmp_path).read_bytes() == content
    assert server.asked == [("/m", "bytes=2000000-")]


def test_a_full_disk_is_told_as_such(server: FileServer, tmp_path: Path, content: bytes) -> None:
    weights = section(server.put("/m", content), content)
    part = cached_path(weights, tmp_path).with_name("m.gguf.part")
    part.parent.mkdir(parents=True)
    part.symlink_to("/dev/full")
    with pytest.raises(ConfigError, match=r"the disk of .* is full; free some space") as caught:
        fetch(weights, tmp_path)
    assert caught.value.code == "disk_full"


def test_a_cache_that_cannot_be_made_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written: Not a directory"):
        fetch(section("http://127.0.0.1:1/m", b""), tmp_path / "file")


def test_different_sources_of_one_file_name_do_not_meet(server: FileServer, tmp_path: Path) -> None:
    first, second = (section(server.put(f"/{text}", text.encode()), text.encode()) for text in ("one", "two"))
    assert fetch(first, tmp_path).read_bytes() == b"one"
    assert fetch(second, tmp_path).read_bytes() == b"two"
    assert is_cached(first, tmp_path)


def test_a_path_is_checked_and_used_in_place(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.gguf").write_bytes(content)
    weights = section("", content, path="m.gguf")
    cache = tmp_path / "cache"
    assert fetch_weights(weights, folder=tmp_path, cache_dir=cache) == tmp_path / "m.gguf"
    stages: list[Stage] = []
    fetch_weights(weights, folder=tmp_path, cache_dir=cache, progress=lambda stage, done, total: stages.append(stage))
    assert stages == []
    (tmp_path / "m.gguf").write_bytes(b"another")
    with pytest.raises(ConfigError, match="has SHA-256"):
        fetch_weights(weights, folder=tmp_path, cache_dir=cache)
    (tmp_path / "m.gguf").unlink()
    with pytest.raises(ConfigError, match="is not a file"):
        fetch_weights(weights, folder=tmp_path, cache_dir=cache)


PROCESS = """
import sys
from pathlib import Path
from macaron.hcp import WeightsSection
from macaron.models import fetch_weights
file, url, sha256, cache = sys.argv[1:]
said = set()
def progress(stage, done, total):
    if stage not in said:
        said.add(stage)
        print(stage, flush=True)
print(fetch_weights(WeightsSection(file=file, url=url, sha256=sha256), cache_dir=Path(cache), progress=progress))
"""


def test_of_two_processes_one_fetches_and_the_other_waits(server: FileServer, tmp_path: Path, content: bytes) -> None:
    weights = section(server.put("/m", content), content)
    command = [sys.executable, "-c", PROCESS, weights.file, weights.url, weights.sha256, str(tmp_path)]
    server.hold = threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert server.reached.wait(20)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "wait\n"
            server.hold.set()
            path = f"{cached_path(weights, tmp_path)}\n"
            assert first.communicate(timeout=20)[0].endswith(path)
            assert second.communicate(timeout=20)[0] == path
    assert (first.returncode, second.returncode) == (0, 0)
    assert len(server.asked) == 1
