"""What is read of a stranger's folder: real files in it, and JSON that every reader reads alike."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.models.source import opened, printable, read_object, root_of


def test_a_snapshot_of_a_hubs_cache_may_link_to_the_blobs_beside_it(tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "models--x" / "snapshots" / "1a2b", tmp_path / "models--x" / "blobs"
    for folder in (snapshot, blobs):
        folder.mkdir(parents=True)
    (blobs / "0f").write_text('{"r": 1}')
    (snapshot / "config.json").symlink_to("../../blobs/0f")
    assert read_object(snapshot / "config.json", root_of(snapshot)) == {"r": 1}
    (tmp_path / "outside").write_text("{}")
    (snapshot / "other.json").symlink_to("../../../outside")
    with pytest.raises(ConfigError, match="is a link out of"):
        read_object(snapshot / "other.json", root_of(snapshot))


def test_a_link_is_followed_within_the_folder_only(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "x").write_bytes(b"1234")
    (folder / "y").symlink_to("x")
    with opened(folder / "y", root_of(folder)) as (file, size):
        assert (file.read(), size) == (b"1234", 4)
    (folder / "x").rename(tmp_path / "x")
    (folder / "x").symlink_to(tmp_path / "x")
    with pytest.raises(ConfigError, match="is a link out of"), opened(folder / "y", root_of(folder)):
        pass


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "a")
    with pytest.raises(ConfigError, match="cannot be read"):
        root_of(tmp_path / "a")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1]", "it is a list"),
        ('{"r": ', "Expecting value"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": {"r": 1, "r": 2}}', "the key 'r' is there twice"),
        ('{"a": Infinity}', "Infinity is no JSON number"),
        ('{"a": ' + "9" * 5000 + "}", "is no usable JSON object"),
        ("\udcff", "is no usable JSON object"),
    ],
)
def test_what_is_no_object_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match=rf"x\.json is no usable JSON object: .*{reason}|{reason}"):
        read_object(tmp_path / "x.json")


def test_a_file_of_any_size_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").touch()
    os.truncate(tmp_path / "x.json", 1 << 33)
    with pytest.raises(ConfigError, match="has 8589934592 bytes, more than the 4194304"):
        read_object(tmp_path / "x.json")


def test_what_a_file_names_is_safe_to_print() -> None:
    assert printable("a\x1b[2J\nb") == "a?[2J?b"
    assert printable("x" * 100) == "x" * 79 + "…"
