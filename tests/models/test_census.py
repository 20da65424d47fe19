"""What is resident, counted from headers alone."""

from __future__ import annotations

import os
from pathlib import Path

import gguf
import pytest

from macaron.errors import ConfigError
from macaron.models.census import Census, Count, KvCache, Part, inspect_path
from tests.models.census_files import (
    write_adapter,
    write_gguf,
    write_layout,
    write_raw,
    write_shards,
    write_sparse,
)
from tests.models.peft_folder import tensors, write_folder

INDEX = "model.safetensors.index.json"


def bytes_read() -> int:
    """What this process has asked the system to read so far."""
    line = Path("/proc/self/io").read_text().splitlines()[0]
    return int(line.removeprefix("rchar: "))


# Counting


def test_what_the_reference_library_writes_is_counted(tmp_path: Path) -> None:
    held = tensors()
    part = inspect_path(write_folder(tmp_path / "L2", held)).adapters[0]
    assert (part.label, part.rank, part.values) == ("L2", 2, sum(value.size for value in held.values()))
    assert part.dtypes == {"F32": Count(part.values or 0, part.bytes or 0)}


def test_no_tensor_of_a_model_larger_than_the_disk_is_read(tmp_path: Path) -> None:
    write_shards(tmp_path / "base", {f"m{part}.safetensors": {f"w{part}": (1 << 19, 1 << 18)} for part in range(4)})
    before = bytes_read()
    census = inspect_path(tmp_path)
    assert bytes_read() - before < 65_536
    assert (census.base.values, census.base.bytes) == (4 << 37, 8 << 37)


def test_no_tensor_of_a_gguf_file_is_read(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", a=(2048, 1024))
    before = bytes_read()
    assert inspect_path(path).base.values == 2048 * 1024
    assert bytes_read() - before < 1_048_576 < path.stat().st_size


def test_a_layout_adds_up(tmp_path: Path) -> None:
    census = inspect_path(write_layout(tmp_path))
    assert [part.label for part in census.adapters] == ["L0", "L1", "L2", "L3"]
    assert (census.resident.values, census.resident.bytes) == (1000 + 4 * 60, 2000 + 3 * 120 + 240)
    assert (census.copies, census.merged.values, census.merged.bytes) == (4, 4000, 8000)
    assert census.adapters[2].dtypes == {"F32": Count(60, 240)}
    assert census.notes == ()


def test_the_published_numbers_add_up_to_those_that_are_published() -> None:
    adapters = tuple(Part(f"L{number}", "", 7_688_042_496) for number in range(4))
    census = Census("", Part("base", "", 744_000_000_000), adapters, KvCache())
    assert census.resident.values == 774_752_169_984
    assert census.merged.values == 2_976_000_000_000
    assert census.resident.unknown == "bytes of base, L0, L1, L2, L3"


def test_specialists_that_are_prompts_share_one_copy_of_the_bare_base() -> None:
    prompts = tuple(Part(label, "", 0, 0, prompt_only=True) for label in ("L1", "L2"))
    census = Census("", Part("base", "", 10, 20), (Part("L0", "", 1, 2), *prompts), KvCache())
    assert (census.resident.values, census.copies, census.merged.values) == (11, 2, 20)


def test_an_adapter_alone_has_no_total_and_says_why(tmp_path: Path) -> None:
    census = inspect_path(write_adapter(tmp_path / "L1", {"x": (3, 5)}))
    assert (census.adapters[0].values, census.resident.values) == (15, None)
    assert "its base, Base, is not in this folder" in census.base.unknown


def test_a_run_is_its_adapter(tmp_path: Path) -> None:
    write_adapter(tmp_path / "adapter", {"x": (3, 5)}, rank=3)
    assert [(part.values, part.rank) for part in inspect_path(tmp_path).adapters] == [(15, 3)]


def test_a_lora_in_gguf_has_the_rank_of_its_matrices(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "L3.gguf", kind="adapter", **{"a.lora_a": (4, 8), "a.lora_b": (6, 4)})
    part = inspect_path(path).adapters[0]
    assert (part.label, part.values, part.rank) == ("L3", 4 * 8 + 6 * 4, 4)


def test_values_that_pack_several_parameters_are_said_to(tmp_path: Path) -> None:
    write_sparse(tmp_path / "model.safetensors", {"qweight": (8, 8)}, "I32")
    assert "may hold several quantised parameters" in inspect_path(tmp_path).notes[0]


def test_an_index_that_disagrees_with_its_shards_is_noted(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "base", {"m.safetensors": {"a": (4,)}}, total_size=9)
    write_sparse(folder / "m.safetensors", {"a": (4,), "extra": (5,)})
    census = inspect_path(tmp_path)
    assert census.base.values == 4
    assert "total_size 9" in census.notes[0]
    assert "1 more tensors" in census.notes[1]


# Hostile and broken files


def test_a_file_that_does_not_describe_itself_is_refused(tmp_path: Path) -> None:
    write_raw(tmp_path / "model.safetensors", b"[]", 0)
    with pytest.raises(ConfigError, match="is not a usable safetensors file"):
        inspect_path(tmp_path)


def test_a_gguf_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", a=(64, 64))
    os.truncate(path, path.stat().st_size - 100)
    with pytest.raises(ConfigError, match=r"cut off: its tensors need 8192 bytes, 8\d\d\d are there"):
        inspect_path(path)


def test_one_part_of_a_gguf_file_is_no_model(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_uint16("split.count", 3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ConfigError, match=r"one part of 3; join them with .* --merge"):
        inspect_path(tmp_path / "m.gguf")


@pytest.mark.parametrize("part", ["base", "base/model-00001-of-00002.safetensors", "base/config.json", "loras/L1"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, part: str) -> None:
    root = write_layout(tmp_path / "model")
    (root / part).rename(tmp_path / "outside")
    (root / part).symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigError, match=r"is a link out of .*; put the file itself there"):
        inspect_path(root)


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    write_adapter(tmp_path, {"x": (1,)})
    (tmp_path / "adapter_model.safetensors").rename(tmp_path / "adapter_model.bin")
    with pytest.raises(ConfigError, match=r"is a pickle, .* safe_serialization=True"):
        inspect_path(tmp_path)


def test_a_folder_of_an_adapter_that_is_no_label_is_refused(tmp_path: Path) -> None:
    root = write_layout(tmp_path)
    write_adapter(root / "loras" / "l4", {"x": (1,)})
    with pytest.raises(ConfigError, match="'l4', which is no label: a capital letter"):
        inspect_path(root)


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "a")
    with pytest.raises(ConfigError, match="cannot be read"):
        inspect_path(tmp_path / "a")


def test_what_is_none_of_the_kinds_is_told_which_there_are(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    with pytest.raises(ConfigError, match="is none of what can be inspected: a GGUF file"):
        inspect_path(tmp_path / "text")
    with pytest.raises(ConfigError, match="is none of what can be inspected: a GGUF file"):
        inspect_path(tmp_path)
    with pytest.raises(ConfigError, match="No such file"):
        inspect_path(tmp_path / "none")
