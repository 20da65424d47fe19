"""Registry packages as folders, found by the real pip."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.models import Patience
from macaron.train.data.packages import Wheel, WheelPackages, canonical, default_package_cache, wheel_of
from tests.models.conftest import FileServer
from tests.train.data.wheels import NAME, REQUIREMENT, archive_of, wheel

HASTE = Patience(attempts=2, pause=0.0, silence=5.0)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels as pip's only source."""
    for name in ("PIP_INDEX_URL", "PIP_CONSTRAINT", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", (tmp_path / "house").as_uri())
    wheel(tmp_path / "house" / NAME, {"tiny_rows/data/rows.json": b"[1, 2, 3]"})
    return tmp_path / "house"


def test_a_wheel_is_unpacked_once_and_found_again_without_pip(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = hashlib.sha256((house / NAME).read_bytes()).hexdigest()
    folder = WheelPackages(tmp_path / "cache").folder("Tiny_Rows==1.0")
    assert (folder / "tiny_rows/data/rows.json").read_bytes() == b"[1, 2, 3]"
    assert folder.name == f"tiny-rows-1.0-{sha256[:12]}"
    assert wheel_of(folder) == Wheel(REQUIREMENT, sha256)
    assert (house / NAME).exists()
    left = sorted(path.name for path in (tmp_path / "cache").iterdir())
    assert left == [folder.name, "tiny-rows-1.0.json", "tiny-rows-1.0.lock"]
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert WheelPackages(tmp_path / "cache").folder(REQUIREMENT) == folder


def test_processes_that_ask_at_once_get_the_same_folder(house: Path, tmp_path: Path) -> None:
    # Each WheelPackages opens the lock on its own, as another process would.
    with ThreadPoolExecutor(2) as pool:
        folders = list(pool.map(lambda _: WheelPackages(tmp_path / "cache").folder(REQUIREMENT), range(2)))
    assert folders[0] == folders[1]
    assert (folders[0] / "tiny_rows/data/rows.json").is_file()


def test_a_folder_whose_record_was_lost_is_taken_as_it_is(house: Path, tmp_path: Path) -> None:
    packages = WheelPackages(tmp_path / "cache")
    folder = packages.folder(REQUIREMENT)
    before = folder.stat().st_ino
    (tmp_path / "cache" / "tiny-rows-1.0.json").write_text("{")
    assert wheel_of(folder) is None
    assert packages.folder(REQUIREMENT) == folder
    assert folder.stat().st_ino == before
    assert wheel_of(folder) is not None


def test_what_a_kill_left_half_unpacked_is_not_used(house: Path, tmp_path: Path) -> None:
    sha256 = hashlib.sha256((house / NAME).read_bytes()).hexdigest()
    part = tmp_path / "cache" / f"tiny-rows-1.0-{sha256[:12]}.part"
    part.mkdir(parents=True)
    (part / "half").write_text("?")
    folder = WheelPackages(tmp_path / "cache").folder(REQUIREMENT)
    assert sorted(path.name for path in folder.iterdir()) == ["tiny_rows", "tiny_rows-1.0.dist-info"]


def test_a_hostile_wheel_leaves_nothing_behind(house: Path, tmp_path: Path) -> None:
    wheel(house / NAME, {"tiny_rows/../../../evil": b"!"})
    with pytest.raises(ConfigError, match="leads out of the folder"):
        WheelPackages(tmp_path / "cache").folder(REQUIREMENT)
    assert not list(tmp_path.rglob("evil"))
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.name.startswith("tiny-rows-1.0-")]


def test_a_package_that_is_nowhere_is_told_in_pips_words_without_a_word_of_weights(house: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tiny-rows==2\.0 cannot be fetched") as caught:
        WheelPackages(tmp_path / "cache").folder("tiny-rows==2.0")
    assert "No matching distribution found" in caught.value.message
    assert "weights" not in caught.value.message
    assert caught.value.code == "package_not_found"


@pytest.mark.parametrize(
    "requirement", ["bfcl-eval", "bfcl-eval>=1", "-r==1", "a==1 b==2", "a==../x", "", "a==1\n", "https://x/y.whl"]
)
def test_only_name_and_version_are_accepted(tmp_path: Path, requirement: str) -> None:
    with pytest.raises(ConfigError, match="is not name==version"):
        WheelPackages(tmp_path / "cache").folder(requirement)


def test_names_are_spelled_as_pip_does() -> None:
    assert canonical("Inspect_Evals==0.28.0") == "inspect-evals==0.28.0"


def test_packages_are_kept_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_package_cache() == tmp_path / "macaron" / "packages"


def test_a_cache_that_cannot_be_written_is_an_error(house: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(ConfigError, match="is not a folder"):
        WheelPackages(tmp_path / "cache").folder(REQUIREMENT)


def on_index(server: FileServer, path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    server.put(f"/files/{NAME}", content)
    server.put("/simple/tiny-rows/", f'<a href="/files/{NAME}#sha256={digest}">{NAME}</a>'.encode())
    server.types["/simple/tiny-rows/"] = "text/html"
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.origin}/simple")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_RETRIES", "0")
    return content


def test_a_wheel_on_an_index_is_downloaded_and_one_damaged_on_the_way_is_not_used(
    house: Path, server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = on_index(server, house / NAME, monkeypatch)
    sha256 = hashlib.sha256(content).hexdigest()
    part = tmp_path / "cache" / "tiny-rows-1.0.wheel" / f"{sha256[:12]}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"?" + content[1:100])
    packages = WheelPackages(tmp_path / "cache", patience=HASTE)
    with pytest.raises(ConfigError, match="was damaged on the way"):
        packages.folder(REQUIREMENT)
    assert not part.exists()
    assert (packages.folder(REQUIREMENT) / "tiny_rows/data/rows.json").is_file()
    assert not part.parent.exists()


def test_pip_fetches_where_only_pip_may(
    house: Path, server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_index(server, house / NAME, monkeypatch)
    WheelPackages(tmp_path / "first", patience=HASTE).folder(REQUIREMENT)
    # Only the request that follows pip's own, which is ours, meets the refusal.
    server.faults = [0] * (len(server.asked) - 1) + [403]
    folder = WheelPackages(tmp_path / "second", patience=HASTE).folder(REQUIREMENT)
    assert (folder / "tiny_rows/data/rows.json").is_file()
    assert server.faults == []


def test_a_wheel_that_is_no_archive_is_an_error(house: Path, tmp_path: Path) -> None:
    good = archive_of(tmp_path / "good.zip", "a")
    (house / NAME).write_bytes(good.read_bytes()[:-30])
    with pytest.raises(ConfigError):
        WheelPackages(tmp_path / "cache").folder(REQUIREMENT)
