"""The files of one model, found by an index that a stranger wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.models import shards
from macaron.models.shards import INDEX_FILE, open_model
from tests.models.census_files import write_shards, write_sparse


def refusal(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        open_model(folder, folder)
    return caught.value.message


def test_a_model_is_found_in_one_file_or_by_its_index(tmp_path: Path) -> None:
    write_sparse(tmp_path / "one" / "model.safetensors", {"a": (4,), "b": (2,)})
    several = write_shards(tmp_path / "several", {"2.safetensors": {"b": (2,)}, "1.safetensors": {"a": (4,)}})
    one, two = open_model(tmp_path / "one", tmp_path), open_model(several, tmp_path)
    assert one.places.keys() == two.places.keys() == {"a", "b"}
    assert list(two.files) == ["1.safetensors", "2.safetensors"]


def test_what_an_index_does_not_name_is_told(tmp_path: Path) -> None:
    folder = write_shards(tmp_path, {"m.safetensors": {"a": (4,)}}, total_size=9)
    write_sparse(folder / "m.safetensors", {"a": (4,), "extra": (5,)})
    found = open_model(folder, folder)
    assert found.unnamed == {"extra"}
    assert found.stated_bytes == 9


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = write_shards(tmp_path, {"1.safetensors": {"a": (4,)}, "2.safetensors": {"b": (4,)}})
    (folder / "2.safetensors").unlink()
    assert "lacks 1 of 2 shards: 2.safetensors; fetch" in refusal(folder)


def test_a_tensor_that_its_shard_does_not_hold_is_named(tmp_path: Path) -> None:
    folder = write_shards(tmp_path, {"1.safetensors": {"a": (4,)}, "2.safetensors": {"b": (4,)}})
    write_sparse(folder / "2.safetensors", {"other": (4,)})
    assert "1 tensors that model.safetensors.index.json places in it are not, such as b" in refusal(folder)


def test_a_tensor_in_two_shards_is_named(tmp_path: Path) -> None:
    folder = write_shards(tmp_path, {"1.safetensors": {"a": (4,)}, "2.safetensors": {"b": (4,)}})
    write_sparse(folder / "2.safetensors", {"a": (4,), "b": (4,)})
    assert "2.safetensors is not a usable safetensors file: another shard holds a too" in refusal(folder)


def test_headers_of_all_shards_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_shards(tmp_path, {"1.safetensors": {"a": (4,)}, "2.safetensors": {"b": (4,)}})
    monkeypatch.setattr(shards, "MAX_HEADER_BYTES", 150)
    assert "the shards' headers have more than 150 bytes" in refusal(folder)


@pytest.mark.parametrize(
    "name",
    [
        "../x.safetensors", "/etc/passwd", "/etc/x.safetensors", "a/b.safetensors", "a\\b.safetensors", "model.bin",
        ".x.safetensors", "", "..", 1, [1], None,
    ],
)  # fmt: skip
def test_an_index_names_files_of_its_own_folder_only(name: object, tmp_path: Path) -> None:
    (tmp_path / INDEX_FILE).write_text(json.dumps({"weight_map": {"a": name}}))
    assert "which is not the name of a .safetensors file in the same folder" in refusal(tmp_path)


@pytest.mark.parametrize(
    "text", ["{}", '{"weight_map": {}}', '{"weight_map": 3}', "[" * 5000, "", "[]", '{"a":1,"a":2}']
)
def test_an_index_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / INDEX_FILE).write_text(text)
    assert "model.safetensors.index.json" in refusal(tmp_path)


def test_a_folder_without_weights_says_so_and_opens_no_pickle(tmp_path: Path) -> None:
    assert "has neither model.safetensors nor model.safetensors.index.json" in refusal(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    assert "pytorch_model.bin may be a pickle and is never opened" in refusal(tmp_path)


@pytest.mark.parametrize("name", [INDEX_FILE, "1.safetensors"])
def test_a_link_out_of_the_folder_is_refused(name: str, tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "model", {"1.safetensors": {"a": (4,)}})
    (folder / name).rename(tmp_path / "outside")
    (folder / name).symlink_to(tmp_path / "outside")
    assert "is a link out of" in refusal(folder)
