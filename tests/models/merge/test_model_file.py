"""Merging into GGUF: the numbers, what keeps its bytes, and what is refused."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from macaron.errors import ConfigError
from macaron.models import read_gguf
from macaron.models.gguf_table import read_table
from macaron.models.merge import GgufType, Merged, merge_gguf
from tests.models import peft_folder
from tests.models.merge.made import (
    RANK,
    SMALL,
    VOCABULARY,
    Weights,
    adapter_tensors,
    base_weights,
    expected,
    in_gguf,
    write_gguf_base,
)

Q = "base_model.model.model.layers.0.self_attn.q_proj"


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    return peft_folder.write_folder(tmp_path / "adapter", adapter_tensors())


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_gguf_base(tmp_path / "base.gguf", base_weights())


def values(path: Path) -> Weights:
    return {
        item.name: np.asarray(gguf.dequantize(item.data, item.tensor_type)) for item in gguf.GGUFReader(path).tensors
    }


def kinds(path: Path) -> dict[str, str]:
    return {item.name: item.tensor_type.name for item in gguf.GGUFReader(path).tensors}


def merge(base: Path, adapter: Path, dtype: GgufType | None = None) -> tuple[Path, Merged]:
    out = base.with_name("out.gguf")
    return out, merge_gguf(base, adapter, out, dtype)


def refusal(base: Path, adapter: Path, dtype: GgufType | None = None) -> str:
    before = sorted(base.parent.rglob("*"))
    with pytest.raises(ConfigError) as caught:
        merge(base, adapter, dtype)
    assert sorted(base.parent.rglob("*")) == before
    return caught.value.message


def test_every_adapted_weight_is_the_base_plus_the_product_in_the_engines_order(base: Path, adapter: Path) -> None:
    out, done = merge(base, adapter)
    result = values(out)
    assert done.dtypes == {"F32": 14}
    for name, value in in_gguf(expected(base_weights(), adapter_tensors())).items():
        np.testing.assert_allclose(result[name], value, atol=1e-6)


def test_rows_are_merged_in_blocks_of_bounded_size(base: Path, adapter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = merge(base, adapter)
    there = values(whole)
    whole.unlink()
    monkeypatch.setattr("macaron.models.merge.model_file.BLOCK_ELEMENTS", 5 * SMALL.hidden)
    for name, value in values(merge(base, adapter)[0]).items():
        np.testing.assert_allclose(value, there[name], atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "dtype", "written"),
    [
        ("Q4_1", None, "Q8_0"), ("Q4_0", None, "Q8_0"), ("Q8_0", None, "Q8_0"), ("F16", None, "F16"),
        ("BF16", None, "BF16"), ("Q4_1", "f16", "F16"), ("Q4_1", "f32", "F32"), ("F32", "q8_0", "Q8_0"),
    ],
)  # fmt: skip
def test_a_changed_tensor_is_written_as_finely_as_it_was_or_finer(
    kind: str, dtype: GgufType | None, written: str, tmp_path: Path, adapter: Path
) -> None:
    base = write_gguf_base(tmp_path / "base.gguf", base_weights(), kind)
    out, done = merge(base, adapter, dtype)
    assert done.dtypes == {written: 14}
    before, after, result = values(base), kinds(out), values(out)
    zeros = {name: np.zeros_like(value) for name, value in base_weights().items()}
    product = in_gguf(expected(zeros, adapter_tensors()))
    for name in before:
        if name == "token_embd.weight" or before[name].ndim == 1:
            assert after[name] == kinds(base)[name]
            np.testing.assert_array_equal(result[name], before[name])
            continue
        assert after[name] == written
        wanted = before[name] + product[name]
        # Half a step of 8 bits, whose scale is itself rounded to 16.
        step = {"F32": 1e-6, "F16": 2**-11, "BF16": 2**-8, "Q8_0": 0.5 / 127 + 2**-11}[written]
        assert np.abs(result[name] - wanted).max() <= step * np.abs(wanted).max() + 1e-6


def test_metadata_and_untouched_tensors_keep_their_bytes(tmp_path: Path) -> None:
    base = write_gguf_base(tmp_path / "base.gguf", base_weights(), "Q4_1")
    weights = {name: value for name, value in adapter_tensors().items() if name.startswith(Q)}
    out, done = merge(base, peft_folder.write_folder(tmp_path / "adapter", weights))
    one, other = gguf.GGUFReader(base), gguf.GGUFReader(out)
    assert done.dtypes == {"Q8_0": 1}
    head = read_table(base).head_size
    assert base.read_bytes()[:head] == out.read_bytes()[:head]
    assert read_gguf(out) == read_gguf(base)
    for before, after in zip(one.tensors, other.tensors, strict=True):
        assert before.name == after.name
        assert after.data_offset % 32 == 0
        if before.name != "blk.0.attn_q.weight":
            assert (before.tensor_type, before.data.tobytes()) == (after.tensor_type, after.data.tobytes())


def test_another_alignment_is_kept(tmp_path: Path, adapter: Path) -> None:
    plain = write_gguf_base(tmp_path / "plain.gguf", base_weights(), "Q4_1")
    base = tmp_path / "base.gguf"
    writer = gguf.GGUFWriter(base, "llama")
    writer.add_custom_alignment(256)
    for key, field in gguf.GGUFReader(plain).fields.items():
        if not key.startswith("GGUF.") and key != "general.architecture":
            kind = field.types[0]
            writer.add_key_value(
                key, field.contents(), kind, sub_type=field.types[-1] if len(field.types) > 1 else None
            )
    for tensor in gguf.GGUFReader(plain).tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    there = values(merge(plain, adapter)[0])
    (tmp_path / "out.gguf").unlink()
    out = merge(base, adapter)[0]
    assert all(tensor.data_offset % 256 == 0 for tensor in gguf.GGUFReader(out).tensors)
    for name, value in values(out).items():
        np.testing.assert_array_equal(value, there[name])


@pytest.mark.parametrize("tied", [True, False])
def test_the_output_is_merged_unless_it_is_the_embedding_too(tied: bool, tmp_path: Path) -> None:
    weights = base_weights(tied=tied)
    base = write_gguf_base(tmp_path / "base.gguf", weights)
    random = np.random.default_rng(5)
    a, b = (random.normal(size=size).astype(np.float32) for size in ((RANK, SMALL.hidden), (VOCABULARY, RANK)))
    name = "base_model.model.lm_head.lora_{}.weight"
    adapter = peft_folder.write_folder(tmp_path / "adapter", {name.format("A"): a, name.format("B"): b})
    if tied:
        assert "one tensor for its embeddings and its output" in refusal(base, adapter)
    else:
        wanted = weights["lm_head.weight"] + 2 * b @ a
        np.testing.assert_allclose(values(merge(base, adapter)[0])["output.weight"], wanted, atol=1e-5)


def test_another_architecture_is_refused_with_a_way_out(tmp_path: Path, adapter: Path) -> None:
    base = write_gguf_base(tmp_path / "base.gguf", base_weights(), architecture="qwen2")
    assert "convert_hf_to_gguf.py" in refusal(base, adapter)


def test_one_part_of_a_split_model_is_refused(tmp_path: Path, adapter: Path) -> None:
    base = write_gguf_base(tmp_path / "base.gguf", base_weights(), split__count=3)
    assert "is one part of 3" in refusal(base, adapter)


def test_an_adapter_in_gguf_is_refused(base: Path, tmp_path: Path) -> None:
    shutil.copyfile(base, tmp_path / "lora.gguf")
    assert "name the folder in PEFT's format that it was made from" in refusal(base, tmp_path / "lora.gguf")


@pytest.mark.parametrize("place", ["model.layers.0.self_attn.qkv_proj", "model.layers.7.mlp.up_proj", "model.norm"])
def test_a_module_that_the_base_does_not_have_is_refused(place: str, base: Path, tmp_path: Path) -> None:
    name = f"base_model.model.{place}.lora_"
    matrices = {f"{name}A.weight": np.ones((RANK, 32), np.float32), f"{name}B.weight": np.ones((32, RANK), np.float32)}
    said = refusal(base, peft_folder.write_folder(tmp_path / "adapter", matrices))
    assert place in said
    assert "trained on another base" in said


def test_a_matrix_for_another_width_is_refused(base: Path, tmp_path: Path) -> None:
    weights = {**adapter_tensors(), f"{Q}.lora_B.weight": np.ones((16, RANK), np.float32)}
    said = refusal(base, peft_folder.write_folder(tmp_path / "adapter", weights))
    assert "is for a weight of the shape [16, 32], the base's has [32, 32]" in said


def test_a_result_that_is_not_finite_is_refused(tmp_path: Path, base: Path) -> None:
    weights = {**adapter_tensors(), f"{Q}.lora_B.weight": np.full((32, RANK), 1e6, np.float32)}
    adapter = peft_folder.write_folder(tmp_path / "adapter", weights)
    assert "blk.0.attn_q.weight has values that are not finite in F16" in refusal(base, adapter, "f16")


def test_a_type_that_nothing_here_can_read_is_refused_by_name(tmp_path: Path, base: Path, adapter: Path) -> None:
    raw = bytearray(base.read_bytes())
    # A type of the engine's that has no decoder in Python; F32 and it are not of one size, so the row is longer.
    name = b"blk.0.attn_q.weight"
    at = raw.index(name) + len(name)
    struct.pack_into("<I", raw, at + 4 + 16, int(gguf.GGMLQuantizationType.I32))
    base.write_bytes(raw)
    assert "blk.0.attn_q.weight is of type I32, which cannot be dequantised here" in refusal(base, adapter)


def test_a_file_that_is_cut_off_is_refused(base: Path, adapter: Path) -> None:
    os.truncate(base, base.stat().st_size - 64)
    assert "is not a usable GGUF file" in refusal(base, adapter)


def test_nothing_is_overwritten(base: Path, adapter: Path) -> None:
    base.with_name("out.gguf").write_bytes(b"mine")
    assert "is there already" in refusal(base, adapter)


def test_the_result_is_the_same_each_time(base: Path, adapter: Path) -> None:
    out, done = merge(base, adapter)
    os.rename(out, out.with_name("first.gguf"))
    assert merge(base, adapter)[1] == done


def test_the_fixtures_order_is_the_converters() -> None:
    matrix: NDArray[Any] = np.arange(32.0)[:, None]
    kept = in_gguf({"model.layers.0.self_attn.q_proj.weight": matrix.astype(np.float32)})["blk.0.attn_q.weight"]
    assert kept[:4, 0].tolist() == [0, 4, 1, 5]
