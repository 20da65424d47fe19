"""What is resident, counted from headers alone."""

from __future__ import annotations

import json
import os
import struct
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.errors import ConfigError
from macaron.models.census import Census, Count, KvCache, Part, inspect_path
from macaron.models.census.count import tally
from macaron.models.census.gguf import read_table
from macaron.models.census.safetensors import read_header
from tests.models.census_files import (
    header_of,
    write_adapter,
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


def write_model(path: Path, *, kind: str = "model", **shapes: tuple[int, ...]) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_type(kind)
    writer.add_name("Tiny")
    for name, shape in shapes.items():
        writer.add_tensor(name, np.zeros(shape, dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


# Counting


@given(
    shapes=st.dictionaries(st.text(min_size=1, max_size=8), st.lists(st.integers(0, 40), max_size=4).map(tuple)),
    dtype=st.sampled_from(["F64", "F32", "BF16", "F16", "U8"]),
)
def test_the_values_are_the_sum_of_the_products_of_the_shapes(
    tmp_path_factory: pytest.TempPathFactory, shapes: dict[str, tuple[int, ...]], dtype: str
) -> None:
    shapes.pop("__metadata__", None)
    path = write_sparse(tmp_path_factory.mktemp("law") / "m.safetensors", shapes, dtype)
    weights = tally(read_header(path, path.parent).values())
    assert weights.values == sum(prod(shape) for shape in shapes.values())
    assert weights.bytes == header_of(shapes, dtype)[1]
    assert weights.tensors == len(shapes)


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
    path = write_model(tmp_path / "m.gguf", a=(2048, 1024))
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
    path = write_model(tmp_path / "L3.gguf", kind="adapter", **{"a.lora_a": (4, 8), "a.lora_b": (6, 4)})
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


def entry(begin: int, end: int, *shape: int, dtype: str = "U8") -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("table", "size", "reason"),
    [
        ({"a": entry(0, 4, 4), "b": entry(2, 6, 4)}, 6, "overlaps"),
        ({"a": entry(0, 4, 4), "b": entry(5, 9, 4)}, 9, "hole"),
        ({"a": entry(4, 0, 4)}, 4, "hole"),
        ({"a": entry(0, 4, 4)}, 3, "describes 4 bytes of tensors, the file has 3"),
        ({"a": entry(0, 4, 4)}, 5, "describes 4 bytes of tensors, the file has 5"),
        ({"a": entry(0, 4, 5)}, 4, "5 values of 8 bits in 4 bytes"),
        ({"a": entry(0, 4, 4, dtype="F7\x1b[2J")}, 4, r"type 'F7\?\[2J', which is not known"),
        ({"a": entry(0, -1)}, 0, "not usable"),
        ({"a": entry(0, 4, *[1] * 33)}, 4, "not usable"),
        ({"a": entry(0, 4, 2**63)}, 4, "not usable"),
        ({"a": {**entry(0, 4, 4), "more": 1}}, 4, "not usable"),
        ([], 0, "no JSON object"),
    ],
)
def test_a_header_that_does_not_describe_its_file_is_refused(
    tmp_path: Path, table: object, size: int, reason: str
) -> None:
    path = write_raw(tmp_path / "model.safetensors", json.dumps(table).encode(), size)
    with pytest.raises(ConfigError, match=reason) as error:
        inspect_path(tmp_path)
    assert str(path) in error.value.message
    assert "\x1b" not in error.value.message


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not usable"),
        ((100_000_001).to_bytes(8, "little") + b"{}", "the format allows 100000000"),
        (b"\xff" * 8, "the format allows"),
        ((99_000_000).to_bytes(8, "little") + b"{}", "ends within its header"),
        ((200_004).to_bytes(8, "little") + b'{"a":' + b"[" * 199_999, "nested too deeply"),
        ((6).to_bytes(8, "little") + b'{"\xff":', "not usable"),
    ],
)
def test_a_header_that_cannot_be_read_is_refused(tmp_path: Path, raw: bytes, reason: str) -> None:
    (tmp_path / "model.safetensors").write_bytes(raw)
    with pytest.raises(ConfigError, match=reason):
        inspect_path(tmp_path)


@given(cut=st.integers(0, 60), position=st.integers(0, 300), byte=st.integers(0, 255))
def test_a_damaged_file_is_read_or_refused_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, cut: int, position: int, byte: int
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    path = write_sparse(folder / "model.safetensors", {"a": (3, 4), "b": (5,)})
    raw = bytearray(path.read_bytes())
    raw[position % len(raw)] = byte
    path.write_bytes(raw[: len(raw) - cut])
    with suppress(ConfigError):
        inspect_path(folder)


@given(cut=st.integers(0, 200), position=st.integers(0, 400), byte=st.integers(0, 255))
def test_a_damaged_gguf_file_is_read_or_refused_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, cut: int, position: int, byte: int
) -> None:
    path = write_model(tmp_path_factory.mktemp("damaged") / "m.gguf", a=(4, 4), b=(6,))
    raw = bytearray(path.read_bytes())
    raw[position % len(raw)] = byte
    path.write_bytes(raw[: len(raw) - cut])
    with suppress(ConfigError):
        read_table(path)


def test_a_gguf_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.gguf", a=(64, 64))
    os.truncate(path, path.stat().st_size - 100)
    with pytest.raises(ConfigError, match=r"cut off: its tensors need 8192 bytes, 8\d\d\d are there"):
        inspect_path(path)


def raw_gguf(path: Path, *rows: tuple[int, tuple[int, ...], int, int], alignment: int = 32) -> Path:
    """A GGUF file of tensors given as number of dimensions, shape, type and offset, with a hole of 4 KiB for them."""
    key = b"general.alignment"
    raw = b"GGUF" + struct.pack("<IQQ", 3, len(rows), 1)
    raw += struct.pack("<Q", len(key)) + key + struct.pack("<II", 4, alignment)
    for dimensions, shape, kind, offset in rows:
        raw += struct.pack("<Qc", 1, b"t") + struct.pack(f"<I{len(shape)}Q", dimensions, *shape)
        raw += struct.pack("<IQ", kind, offset)
    path.write_bytes(raw + bytes(4096))
    return path


@pytest.mark.parametrize(
    ("rows", "alignment", "reason"),
    [
        ([(1, (8,), 0, 0), (1, (8,), 0, 16)], 32, "two of its tensors overlap"),
        ([(5, (1, 1, 1, 1, 1), 0, 0)], 32, "has 5 dimensions"),
        ([(1, (8,), 9999, 0)], 32, "has type 9999"),
        ([(1, (8,), 2, 0)], 32, "rows of 8 values, Q4_0 has blocks of 32"),
        ([(4, (2**63, 2**63, 2**63, 2**63), 0, 0)], 32, "cut off: its tensors need"),
        ([(1, (8,), 0, 2**63)], 32, "cut off: its tensors need"),
        ([(1, (8,), 0, 0)], 0, "alignment is no number of bytes"),
    ],
)
def test_a_gguf_table_that_does_not_describe_its_file_is_refused(
    tmp_path: Path, rows: list[tuple[int, tuple[int, ...], int, int]], alignment: int, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        inspect_path(raw_gguf(tmp_path / "m.gguf", *rows, alignment=alignment))


def test_more_tensors_than_can_be_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0) + bytes(64))
    with pytest.raises(ConfigError, match="tensors are more than can be"):
        inspect_path(path)


def test_one_part_of_a_gguf_file_is_no_model(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_uint16("split.count", 3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ConfigError, match=r"one part of 3; join them with .* --merge"):
        inspect_path(tmp_path / "m.gguf")


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = write_layout(tmp_path) / "base"
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"lacks 1 of 2 shards: model-00002-of-00002\.safetensors; fetch"):
        inspect_path(tmp_path)


def test_a_tensor_that_its_shard_does_not_hold_is_named(tmp_path: Path) -> None:
    folder = write_layout(tmp_path) / "base"
    write_sparse(folder / "model-00002-of-00002.safetensors", {"other": (4,)})
    with pytest.raises(ConfigError, match=r"1 tensors .* such as b"):
        inspect_path(tmp_path)


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "a/b.safetensors", "model.bin", ""])
def test_an_index_names_files_of_its_own_folder_only(tmp_path: Path, name: str) -> None:
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(ConfigError, match=r"is not the name of a \.safetensors file in the same folder"):
        inspect_path(tmp_path)


def test_an_index_without_tensors_is_refused(tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text('{"weight_map": {}}')
    with pytest.raises(ConfigError, match="names no tensor"):
        inspect_path(tmp_path)


@pytest.mark.parametrize("part", ["base", "base/model-00001-of-00002.safetensors", "base/config.json", "loras/L1"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, part: str) -> None:
    root = write_layout(tmp_path / "model")
    (root / part).rename(tmp_path / "outside")
    (root / part).symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigError, match=r"is a link out of .*; put the file itself there"):
        inspect_path(root)


def test_a_link_within_the_folder_is_followed(tmp_path: Path) -> None:
    root = write_layout(tmp_path / "model")
    (root / "base" / "config.json").rename(root / "shared.json")
    (root / "base" / "config.json").symlink_to(root / "shared.json")
    assert inspect_path(root).cache.form == "GQA"


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(ConfigError, match="not a regular file"):
        inspect_path(tmp_path)


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


@pytest.mark.parametrize("content", ["[1]", "{", '{"r":' + "[" * 200_000])
def test_a_configuration_that_is_no_object_is_refused(tmp_path: Path, content: str) -> None:
    write_adapter(tmp_path, {"x": (1,)})
    (tmp_path / "adapter_config.json").write_text(content)
    with pytest.raises(ConfigError, match=r"adapter_config\.json is n"):
        inspect_path(tmp_path)


def test_a_configuration_of_any_size_is_not_read(tmp_path: Path) -> None:
    write_adapter(tmp_path, {"x": (1,)})
    os.truncate(tmp_path / "adapter_config.json", 1 << 33)
    with pytest.raises(ConfigError, match="more than the 4194304"):
        inspect_path(tmp_path)


def test_a_base_of_pickles_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"pytorch_model\.bin may be a pickle and is never opened"):
        inspect_path(tmp_path)


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
