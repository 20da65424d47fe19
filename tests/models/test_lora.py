"""An adapter as PEFT writes it becomes what the engine reads, or is refused by name."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from macaron.errors import ConfigError
from macaron.models import Dimensions, read_gguf
from macaron.models.lora import write_gguf
from tests.models.peft_folder import BLOCK, RANK, TINY, tensors, write_base, write_folder

FIRST = f"{BLOCK}.0.self_attn.q_proj.lora_B.weight"


def converted(source: Path) -> dict[str, NDArray[Any]]:
    """The tensors of the result, as rows and columns."""
    target = source.with_suffix(".gguf")
    write_gguf(source, target, TINY)
    return {tensor.name: np.array(tensor.data) for tensor in gguf.GGUFReader(target).tensors}


def alpha(source: Path) -> float:
    target = source.with_suffix(".gguf")
    write_gguf(source, target, TINY)
    return float(gguf.GGUFReader(target).fields["adapter.lora.alpha"].contents())


def refusal(source: Path) -> str:
    target = source.with_suffix(".gguf")
    with pytest.raises(ConfigError) as caught:
        write_gguf(source, target, TINY)
    assert not target.exists()
    return caught.value.message


def test_every_matrix_is_there_with_its_values_in_16_bits(tmp_path: Path) -> None:
    weights = tensors()
    result = converted(write_folder(tmp_path / "a", weights))
    assert len(result) == len(weights) == 2 * 7 * TINY.layers
    for layer, (ours, theirs) in enumerate([("mlp.down_proj", "ffn_down"), ("self_attn.v_proj", "attn_v")]):
        for side in "AB":
            given = weights[f"{BLOCK}.{layer}.{ours}.lora_{side}.weight"]
            np.testing.assert_array_equal(
                result[f"blk.{layer}.{theirs}.weight.lora_{side.lower()}"], given.astype("f2")
            )


@pytest.mark.parametrize(("projection", "name", "heads"), [("q_proj", "attn_q", 4), ("k_proj", "attn_k", 2)])
def test_outputs_of_q_and_k_are_paired_within_each_head(projection: str, name: str, heads: int, tmp_path: Path) -> None:
    weights = tensors()
    result = converted(write_folder(tmp_path / "a", weights))[f"blk.1.{name}.weight.lora_b"]
    given = weights[f"{BLOCK}.1.self_attn.{projection}.lora_B.weight"].astype("f2")
    half = TINY.head_width // 2
    for head in range(heads):
        for place in range(half):
            first = head * TINY.head_width + place
            np.testing.assert_array_equal(result[head * TINY.head_width + 2 * place], given[first])
            np.testing.assert_array_equal(result[head * TINY.head_width + 2 * place + 1], given[first + half])


def test_the_result_says_that_it_is_a_lora_for_llama(tmp_path: Path) -> None:
    target = tmp_path / "a.gguf"
    write_gguf(write_folder(tmp_path / "a"), target, TINY)
    fields = gguf.GGUFReader(target).fields
    said = [fields[key].contents() for key in ("general.architecture", "general.type", "adapter.type")]
    assert said == ["llama", "adapter", "lora"]
    assert alpha(tmp_path / "a") == 2 * RANK


def test_a_rank_stabilised_adapter_keeps_its_scale(tmp_path: Path) -> None:
    # The engine divides by the rank where rslora divides by its root.
    assert alpha(write_folder(tmp_path / "a", use_rslora=True)) == pytest.approx(2 * RANK * math.sqrt(RANK))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("use_dora", True), ("bias", "all"), ("bias", "lora_only"), ("lora_bias", True), ("fan_in_fan_out", True),
        ("modules_to_save", ["lm_head"]), ("layer_replication", [[0, 1]]), ("trainable_token_indices", [5]),
        ("target_parameters", ["experts"]),
        ("rank_pattern", {"q_proj": 4}), ("alpha_pattern", {"q_proj": 4}), ("init_lora_weights", "pissa"),
        ("peft_type", "IA3"), ("r", 0), ("r", True), ("r", 10**9), ("lora_alpha", "8"), ("lora_alpha", -1),
        ("use_rslora", "yes"), ("an_option_of_tomorrow", {"on": True}),
    ],
)  # fmt: skip
def test_an_option_that_the_engine_cannot_apply_is_refused_by_name(option: str, value: Any, tmp_path: Path) -> None:
    source = write_folder(tmp_path / "a", **{option: value})
    assert f"adapter_config.json: {option} is {str(value)[:80]!r}" in refusal(source)


@pytest.mark.parametrize(
    "key",
    [
        "base_model.model.lm_head.lora_A.weight",
        "base_model.model.model.embed_tokens.lora_embedding_A",
        "model.layers.0.self_attn.q_proj.lora_A.weight",
        f"{BLOCK}.0.self_attn.q_proj.lora_magnitude_vector",
        f"{BLOCK}.0.self_attn.qkv_proj.lora_A.weight",
        f"{BLOCK}.0.self_attn.q_proj.base_layer.bias",
    ],
)
def test_a_tensor_without_a_place_in_the_base_is_refused_by_name(key: str, tmp_path: Path) -> None:
    weights = {**tensors(), key: np.zeros((RANK, TINY.hidden), np.float32)}
    assert f"{key} is no LoRA matrix" in refusal(write_folder(tmp_path / "a", weights))


@pytest.mark.parametrize("shape", [(16,), (2, 16), (16, 3), (16, 2, 1), (0, 2)])
def test_a_tensor_of_another_shape_than_the_base_asks_for_is_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    weights = {**tensors(), FIRST: np.zeros(shape, np.float32)}
    said = refusal(write_folder(tmp_path / "a", weights))
    assert f"{FIRST} has the shape {list(shape)}" in said
    assert "[16, 2]" in said


def test_a_layer_beyond_the_bases_is_refused(tmp_path: Path) -> None:
    weights = {**tensors(), FIRST.replace(".0.", ".2."): np.zeros((16, 2), np.float32)}
    assert "is for layer 2, the base has 2 layers" in refusal(write_folder(tmp_path / "a", weights))


def test_half_a_pair_is_refused(tmp_path: Path) -> None:
    weights = tensors()
    del weights[FIRST.replace("_B", "_A")]
    assert f"{FIRST} stands alone, without its lora_A" in refusal(write_folder(tmp_path / "a", weights))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 70_000.0])
def test_a_value_that_is_not_finite_in_16_bits_is_refused(value: float, tmp_path: Path) -> None:
    weights = tensors()
    weights[FIRST][3, 1] = value
    assert f"{FIRST} holds NaN, infinite" in refusal(write_folder(tmp_path / "a", weights))


def test_an_adapter_without_tensors_is_refused(tmp_path: Path) -> None:
    assert "holds no tensors" in refusal(write_folder(tmp_path / "a", {}))


def packed(header: dict[str, Any], body: bytes = b"") -> bytes:
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + body


@pytest.mark.parametrize("raw", [b"", b"\x80\x04\x95pickle" * 9, packed({}, bytes(64))])
def test_a_file_that_lies_about_itself_is_refused(raw: bytes, tmp_path: Path) -> None:
    source = write_folder(tmp_path / "a")
    (source / "adapter_model.safetensors").write_bytes(raw)
    assert "is not a usable safetensors file" in refusal(source)


def test_a_link_out_of_the_adapters_folder_is_not_followed(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "a")
    (source / "adapter_model.safetensors").rename(tmp_path / "elsewhere")
    (source / "adapter_model.safetensors").symlink_to(tmp_path / "elsewhere")
    assert "is a link out of" in refusal(source)


def test_whole_numbers_are_no_weights(tmp_path: Path) -> None:
    weights = {**tensors(), FIRST: np.zeros((16, 2), np.int64)}
    assert f"{FIRST} is of type I64" in refusal(write_folder(tmp_path / "a", weights))


def test_brain_floats_are_read(tmp_path: Path) -> None:
    key = FIRST.replace("q_proj", "v_proj")
    other = key.replace("_B", "_A")
    body = struct.pack("<16H", *[0x3FC0] * 16) + struct.pack("<32H", *[0xC000] * 32)
    header = {
        key: {"dtype": "BF16", "shape": [8, 2], "data_offsets": [0, 32]},
        other: {"dtype": "BF16", "shape": [2, 16], "data_offsets": [32, 96]},
    }
    source = write_folder(tmp_path / "a")
    (source / "adapter_model.safetensors").write_bytes(packed(header, body))
    result = converted(source)
    assert result["blk.0.attn_v.weight.lora_b"].tolist() == [[1.5, 1.5]] * 8
    assert result["blk.0.attn_v.weight.lora_a"].tolist() == [[-2.0] * 16] * 2


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "a")
    (source / "adapter_model.safetensors").rename(source / "adapter_model.bin")
    assert "is a pickle, which can run code when it is read" in refusal(source)


def test_a_configuration_that_is_none_is_refused(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "a")
    (source / "adapter_config.json").write_text("[]")
    assert "adapter_config.json" in refusal(source)


def test_a_base_tells_its_dimensions(tmp_path: Path, weights: Path) -> None:
    assert read_gguf(write_base(tmp_path / "base.gguf")).dimensions == TINY
    assert read_gguf(weights).dimensions == Dimensions(30, 576, 1536, 9, 3, 64)


def test_a_base_with_other_heads_in_every_block_has_no_dimensions(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "base.gguf", "llama")
    writer.add_block_count(2)
    writer.add_embedding_length(16)
    writer.add_feed_forward_length(24)
    writer.add_head_count([4, 2])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert read_gguf(tmp_path / "base.gguf").dimensions is None
