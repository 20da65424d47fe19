"""The size of the KV cache a token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from macaron.models.census import inspect_path
from macaron.models.census.cache import cache_of_config, cache_of_gguf
from tests.models.census_files import LLAMA
from tests.models.peft_folder import write_base

DEEPSEEK = {**LLAMA, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
HYBRID = ["linear_attention", "linear_attention", "linear_attention", "full_attention"]


@pytest.mark.parametrize(
    ("config", "values", "form"),
    [
        (LLAMA, 4 * 2 * (8 + 8), "GQA"),
        ({**LLAMA, "num_key_value_heads": None}, 4 * 8 * (8 + 8), "MHA"),
        ({**LLAMA, "num_key_value_heads": 1, "head_dim": 32, "v_head_dim": 16}, 4 * (32 + 16), "MQA"),
        (DEEPSEEK, 4 * (512 + 64), "MLA"),
        ({**LLAMA, "layer_types": HYBRID}, 2 * (8 + 8), "GQA"),
        ({**LLAMA, "full_attention_interval": 2}, 2 * 2 * (8 + 8), "GQA"),
        ({"text_config": LLAMA, "dtype": "bfloat16"}, 4 * 2 * (8 + 8), "GQA"),
    ],
)
def test_the_cache_a_token_follows_the_attention(config: dict[str, Any], values: int, form: str) -> None:
    cache = cache_of_config(config)
    assert (cache.values, cache.bytes, cache.dtype, cache.form) == (values, values * 2, "bfloat16", form)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"num_hidden_layers": None}, "num_hidden_layers is missing"),
        ({"num_hidden_layers": 10**30}, "no number from 1 to"),
        ({"num_attention_heads": True}, "no number from 1 to"),
        ({"hidden_size": 65}, "no multiple of the 8 heads"),
        ({"layer_types": ["mamba"] * 4}, "layers of type 'mamba'"),
        ({"layer_types": ["full_attention"]}, "no list of its 4 layers"),
        ({"hybrid_override_pattern": "M*"}, "has hybrid_override_pattern"),
    ],
)
def test_a_cache_that_cannot_be_told_is_unknown_with_the_reason(change: dict[str, Any], reason: str) -> None:
    cache = cache_of_config({**LLAMA, **change})
    assert (cache.values, cache.bytes) == (None, None)
    assert reason in cache.unknown


@pytest.mark.parametrize(
    "change", [{"dtype": None}, {"dtype": "float8"}, {"quantization_config": {"kv_cache_scheme": {"num_bits": 8}}}]
)
def test_without_a_type_the_values_are_known_and_the_bytes_are_not(change: dict[str, Any]) -> None:
    cache = cache_of_config({**LLAMA, **change})
    assert (cache.values, cache.bytes) == (128, None)
    assert cache.unknown


def test_layers_that_forget_are_noted() -> None:
    kinds = ["sliding_attention", "full_attention"] * 2
    cache = cache_of_config({**LLAMA, "layer_types": kinds, "sliding_window": 512})
    assert cache.values == 128
    assert "512 tokens" in cache.notes[0]


def test_the_keys_of_an_index_are_said_not_to_be_counted() -> None:
    assert "index keys" in cache_of_config({**DEEPSEEK, "index_head_dim": 128}).notes[0]


def test_the_cache_of_a_gguf_file_is_that_of_its_dimensions(tmp_path: Path) -> None:
    cache = inspect_path(write_base(tmp_path / "m.gguf")).cache
    assert (cache.values, cache.bytes, cache.dtype, cache.form) == (2 * 2 * (4 + 4), 64, "F16", "GQA")


GGUF_LLAMA = {"block_count": 4, "embedding_length": 64, "attention.head_count": 8, "attention.head_count_kv": 2}


@pytest.mark.parametrize(
    ("change", "values"),
    [
        ({"attention.key_length": 16, "attention.value_length": 8}, 4 * 2 * (16 + 8)),
        ({"attention.head_count_kv": [2, 0, 1, 0]}, 3 * (8 + 8)),
        ({"attention.kv_lora_rank": 32, "rope.dimension_count": 8}, 4 * (32 + 8)),
        ({"nextn_predict_layers": 1}, 3 * 2 * (8 + 8)),
        ({"ssm.state_size": 16, "full_attention_interval": 4}, 2 * (8 + 8)),
        ({"ssm.state_size": 16}, None),
        ({"attention.shared_kv_layers": 2}, None),
        ({"attention.head_count_kv": [2]}, None),
        ({"nextn_predict_layers": "x"}, None),
        ({"block_count": None}, None),
    ],
)
def test_the_cache_of_gguf_metadata(change: dict[str, Any], values: int | None) -> None:
    own = {f"llama.{name}": value for name, value in {**GGUF_LLAMA, **change}.items()}
    cache = cache_of_gguf({"general.architecture": "llama", **own})
    assert cache.values == values
    assert bool(cache.unknown) == (values is None)
