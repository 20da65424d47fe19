"""Model files of any size, of which only the header is written: the tensors' bytes are a hole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import gguf
import numpy as np

Shapes = Mapping[str, tuple[int, ...]]

WIDTHS = {"F64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2, "U8": 1}
LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "dtype": "bfloat16",
}


def header_of(shapes: Shapes, dtype: str = "BF16") -> tuple[dict[str, Any], int]:
    """The header's table and the bytes of tensors that it describes."""
    table: dict[str, Any] = {}
    position = 0
    for name, shape in shapes.items():
        end = position + prod(shape) * WIDTHS[dtype]
        table[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [position, end]}
        position = end
    return table, position


def write_raw(path: Path, header: bytes, size: int) -> Path:
    """A header and a hole of `size` bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size)
    return path


def write_sparse(path: Path, shapes: Shapes, dtype: str = "BF16") -> Path:
    table, size = header_of(shapes, dtype)
    return write_raw(path, json.dumps({"__metadata__": {"format": "pt"}, **table}).encode(), size)


def write_shards(folder: Path, shards: Mapping[str, Shapes], **metadata: Any) -> Path:
    """A sharded model with its index and configuration."""
    for name, shapes in shards.items():
        write_sparse(folder / name, shapes)
    places = {tensor: name for name, shapes in shards.items() for tensor in shapes}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": metadata, "weight_map": places}))
    (folder / "config.json").write_text(json.dumps(LLAMA))
    return folder


def write_adapter(folder: Path, shapes: Shapes, rank: int = 16, dtype: str = "BF16") -> Path:
    """An adapter in PEFT's format."""
    write_sparse(folder / "adapter_model.safetensors", shapes, dtype)
    config = {"peft_type": "LORA", "r": rank, "base_model_name_or_path": "Base"}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


def write_gguf(path: Path, *, kind: str = "model", **shapes: tuple[int, ...]) -> Path:
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


def write_layout(root: Path) -> Path:
    """A base of 1,000 values in two shards, and four adapters of 60 values."""
    first, second = (f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    shards: dict[str, Shapes] = {first: {"a": (20, 30)}, second: {"b": (400,)}}
    write_shards(root / "base", shards, total_size=2000)
    for label in ("L0", "L1", "L2", "L3"):
        dtype = "F32" if label == "L2" else "BF16"
        write_adapter(root / "loras" / label, {"x.lora_A.weight": (2, 10), "x.lora_B.weight": (20, 2)}, 2, dtype)
    return root
