"""Bases that are small enough to look at, in both formats, from one set of weights."""

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
from tests.models.peft_folder import tensors

SMALL = Dimensions(layers=2, hidden=32, feed_forward=64, heads=4, kv_heads=2, head_width=8)
VOCABULARY = 48
RANK = 2
SCALE = 2.0

Weights = dict[str, NDArray[np.float32]]


def adapter_tensors(*, seed: int = 1) -> dict[str, NDArray[Any]]:
    """An adapter for every linear layer."""
    return tensors(SMALL, RANK, seed=seed)


def base_weights(*, tied: bool = True) -> Weights:
    """By the names of `transformers`."""
    random = np.random.default_rng(7)
    shapes = {
        name.removeprefix("base_model.model.").replace(".lora_B", ""): (value.shape[0], 0)
        for name, value in adapter_tensors().items()
        if ".lora_B" in name
    }
    for name, value in adapter_tensors().items():
        if ".lora_A" in name:
            place = name.removeprefix("base_model.model.").replace(".lora_A", "")
            shapes[place] = (shapes[place][0], value.shape[1])
    tables = ["model.embed_tokens.weight"] if tied else ["model.embed_tokens.weight", "lm_head.weight"]
    shapes |= dict.fromkeys(tables, (VOCABULARY, SMALL.hidden))
    made = {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    norms = ("model.norm", *(f"model.layers.{layer}.input_layernorm" for layer in range(SMALL.layers)))
    return made | {f"{name}.weight": np.ones(SMALL.hidden, np.float32) for name in norms}


def expected(weights: Weights, adapter: Mapping[str, NDArray[Any]], scale: float = SCALE) -> Weights:
    """What merging must give, the plain way."""
    merged = dict(weights)
    for name, b in adapter.items():
        if ".lora_B." in name:
            a = adapter[name.replace(".lora_B.", ".lora_A.")]
            place = name.removeprefix("base_model.model.").replace(".lora_B", "")
            merged[place] = (weights[place] + scale * (b.astype(np.float64) @ a.astype(np.float64))).astype(np.float32)
    return merged


def write_folder(folder: Path, weights: Mapping[str, NDArray[Any]], *, shards: int = 1, **config: Any) -> Path:
    """A base as `transformers` keeps it."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "tie_word_embeddings": True, **config}))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"never copied")
    if shards == 1:
        save_file(dict(weights), folder / "model.safetensors", metadata={"format": "pt"})
        return folder
    files = {name: f"model-{at % shards + 1:05}-of-{shards:05}.safetensors" for at, name in enumerate(sorted(weights))}
    for file in set(files.values()):
        save_file({name: weights[name] for name in weights if files[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    return folder


def engine_order(name: str, matrix: NDArray[Any]) -> NDArray[Any]:
    """Rows of q and k as llama.cpp keeps them, one by one."""
    heads = {"q_proj": SMALL.heads, "k_proj": SMALL.kv_heads}.get(name.split(".")[-2])
    if heads is None:
        return matrix
    half = SMALL.head_width // 2
    order = [
        head * SMALL.head_width + place + side * half
        for head in range(heads)
        for place in range(half)
        for side in (0, 1)
    ]
    return matrix[order]


def in_gguf(weights: Weights) -> Weights:
    """The same weights by llama.cpp's names, in its order."""
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, SMALL.layers)
    return {
        f"{names.get_name(name.removesuffix('.weight'))}.weight": engine_order(name, value)
        for name, value in weights.items()
    }


def write_gguf_base(path: Path, weights: Weights, kind: str = "F32", architecture: str = "llama", **extra: int) -> Path:
    """A base whose matrices are of one type."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type("model")
    writer.add_string("general.license", "apache-2.0")
    writer.add_context_length(2048)
    writer.add_block_count(SMALL.layers)
    writer.add_embedding_length(SMALL.hidden)
    writer.add_feed_forward_length(SMALL.feed_forward)
    writer.add_head_count(SMALL.heads)
    writer.add_head_count_kv(SMALL.kv_heads)
    writer.add_key_length(SMALL.head_width)
    writer.add_token_list(["a", "<|im_end|>"])
    for key, number in extra.items():
        writer.add_uint32(key.replace("__", "."), number)
    quantised = gguf.GGMLQuantizationType[kind]
    for name, value in in_gguf(weights).items():
        if value.ndim == 1:
            writer.add_tensor(name, value)
        else:
            writer.add_tensor(name, gguf.quantize(value, quantised), raw_dtype=quantised)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
