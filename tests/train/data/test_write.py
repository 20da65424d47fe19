"""Data sets on the disk: whole or not there."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from macaron.errors import ConfigError
from macaron.train.data.build import build
from macaron.train.data.manifest import load_manifest, open_data_set
from macaron.train.data.write import claimed
from tests.train.data.making import NoPackages, recipe_of, sft


def made(folder: Path, *names: str) -> Path:
    out = folder / "out"
    build(recipe_of(folder, "", a=[sft(name) for name in names]), out, NoPackages())
    return out


def test_a_data_set_is_replaced_by_a_new_build_and_other_files_stay(tmp_path: Path) -> None:
    out = made(tmp_path, "1")
    (out / "notes.txt").write_text("mine")
    made(tmp_path, "2", "3")
    assert [row.id for row in open_data_set(out).rows("train")] == ["2", "3"]
    assert (out / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["train.jsonl", "manifest.json"])
def test_files_that_no_build_made_are_never_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("{}")
    with pytest.raises(ConfigError, match=f"already has a file {name} that is of no data set"):
        made(tmp_path, "1")
    assert (tmp_path / "out" / name).read_text() == "{}"


def test_a_full_disk_is_a_clear_error_and_leaves_the_old_data_set(tmp_path: Path) -> None:
    out = made(tmp_path, "1")
    (out / "train.jsonl.part").symlink_to("/dev/full")
    with pytest.raises(ConfigError, match="is full; free some space") as caught:
        made(tmp_path, "2")
    assert caught.value.code == "disk_full"
    assert [row.id for row in open_data_set(out).rows("train")] == ["1"]
    assert sorted(path.name for path in out.iterdir()) == ["dev.jsonl", "manifest.json", "test.jsonl", "train.jsonl"]


def test_a_file_in_the_folders_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(ConfigError, match="is not a folder; choose another"):
        made(tmp_path, "1")


def test_two_builds_in_one_folder_are_refused(tmp_path: Path) -> None:
    out = made(tmp_path, "1")
    handle = os.open(out, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(ConfigError, match="another process builds a data set in") as caught:
        made(tmp_path, "2")
    os.close(handle)
    assert caught.value.code == "in_use"
    with claimed(out):
        pass


KILLED = """
import os, sys
from pathlib import Path
from tests.train.data.making import NoPackages
from macaron.train.data.build import build
from macaron.train.data.recipe import load_recipe
count = int(sys.argv[3])
def watch(event, args):
    global count
    if event == "os.rename":
        count -= 1
        if count < 0:
            os.kill(os.getpid(), 9)
sys.addaudithook(watch)
build(load_recipe(Path(sys.argv[1])), Path(sys.argv[2]), NoPackages())
"""


@pytest.mark.parametrize("renames", range(4))
def test_a_build_killed_while_it_settles_leaves_nothing_that_loads_by_half(tmp_path: Path, renames: int) -> None:
    root = Path(__file__).parents[3]
    recipe_of(tmp_path, "", a=[sft("1")])
    command = [sys.executable, "-c", KILLED, str(tmp_path / "made.toml"), str(tmp_path / "out"), str(renames)]
    done = subprocess.run(command, cwd=root, env={"PYTHONPATH": str(root)}, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(ConfigError):
        load_manifest(tmp_path / "out")
    assert [row.id for row in open_data_set(made(tmp_path, "2")).rows("train")] == ["2"]


def test_a_build_killed_over_an_old_data_set_leaves_the_old_one_or_none(tmp_path: Path) -> None:
    out = made(tmp_path, "old")
    recipe_of(tmp_path, "", a=[sft("new")])
    root = Path(__file__).parents[3]
    for renames, expected in ((0, "old"), (3, None)):
        command = [sys.executable, "-c", KILLED, str(tmp_path / "made.toml"), str(out), str(renames)]
        subprocess.run(command, cwd=root, env={"PYTHONPATH": str(root)}, timeout=60, check=False)
        if expected:
            assert [row.id for row in open_data_set(out).rows("train")] == [expected]
        else:
            with pytest.raises(ConfigError, match="is not the file that the manifest names"):
                open_data_set(out)


def test_a_folder_without_a_manifest_is_no_data_set(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no data set: it has no manifest") as caught:
        load_manifest(tmp_path)
    assert caught.value.code == "no_data_set"


def test_a_manifest_that_is_none_is_an_error(tmp_path: Path) -> None:
    out = made(tmp_path, "1")
    manifest = out / "manifest.json"
    sound = manifest.read_bytes()
    manifest.write_bytes(sound[:100])
    with pytest.raises(ConfigError, match="is no manifest of a data set"):
        load_manifest(out)
    manifest.write_bytes(msgspec.json.encode(msgspec.json.decode(sound) | {"format": 2}))
    with pytest.raises(ConfigError, match="has format 2, this version reads 1; build it anew"):
        load_manifest(out)
    manifest.write_bytes(b" " * 16_777_217)
    with pytest.raises(ConfigError, match="over 16777216 bytes"):
        load_manifest(out)
    manifest.unlink()
    manifest.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_manifest(out)


@pytest.mark.parametrize("damage", ["longer", "changed", "missing"])
def test_a_data_set_with_a_wrong_file_is_not_opened(tmp_path: Path, damage: str) -> None:
    out = made(tmp_path, "1")
    path = out / "train.jsonl"
    raw = path.read_bytes()
    match damage:
        case "longer":
            path.write_bytes(raw + raw)
        case "changed":
            path.write_bytes(raw.replace(b"yes", b"noo"))
        case _:
            path.unlink()
    with pytest.raises(ConfigError, match="build it anew") as caught:
        open_data_set(out)
    assert caught.value.code == "damaged_data_set"
