"""Adapters in PEFT's format, written without torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from macaron.models import Dimensions

Tensors = dict[str, NDArray[Any]]

TINY = Dimensions(layers=2, hidden=16, feed_forward=24, heads=4, kv_heads=2, head_width=4)
RANK = 2
BLOCK = "base_model.model.model.layers"


def tensors(base: Dimensions = TINY, rank: int = RANK, *, seed: int = 0, spread: float = 0.2) -> Tensors:
    """Random matrices for every linear layer, by PEFT's names."""
    random = np.random.default_rng(seed)
    query, key = base.heads * base.head_width, base.kv_heads * base.head_width
    sizes = {
        "self_attn.q_proj": (query, base.hidden),
        "self_attn.k_proj": (key, base.hidden),
        "self_attn.v_proj": (key, base.hidden),
        "self_attn.o_proj": (base.hidden, query),
        "mlp.gate_proj": (base.feed_forward, base.hidden),
        "mlp.up_proj": (base.feed_forward, base.hidden),
        "mlp.down_proj": (base.hidden, base.feed_forward),
    }
    made: Tensors = {}
    for layer in range(base.layers):
        for name, (outputs, inputs) in sizes.items():
            place = f"{BLOCK}.{layer}.{name}"
            made[f"{place}.lora_A.weight"] = random.normal(0, inputs**-0.5, (rank, inputs)).astype(np.float32)
            made[f"{place}.lora_B.weight"] = random.normal(0, spread, (outputs, rank)).astype(np.float32)
    return made


def write_folder(folder: Path, weights: Mapping[str, NDArray[Any]] | None = None, **options: Any) -> Path:
    """A folder as PEFT writes it; `options` go into its configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": 2 * RANK, "lora_dropout": 0.0,
        "bias": "none", "use_rslora": False, "use_dora": False, "modules_to_save": None, "rank_pattern": {},
        "init_lora_weights": True, "target_modules": ["q_proj", "v_proj"], "megatron_core": "megatron.core",
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps({**config, **options}))
    save_file(dict(tensors() if weights is None else weights), folder / "adapter_model.safetensors")
    return folder


def write_base(path: Path, base: Dimensions = TINY, architecture: str = "llama") -> Path:
    """The metadata of a base, without its tensors."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type("model")
    writer.add_block_count(base.layers)
    writer.add_embedding_length(base.hidden)
    writer.add_feed_forward_length(base.feed_forward)
    writer.add_head_count(base.heads)
    writer.add_head_count_kv(base.kv_heads)
    writer.add_key_length(base.head_width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path
