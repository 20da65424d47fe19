"""A base that the embedded engine starts with in no time: two random layers under the tokenizer of the real one."""

from __future__ import annotations

import re
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from macaron.models import Dimensions
from tests.models.peft_folder import tensors, write_folder

SMALL = Dimensions(layers=2, hidden=64, feed_forward=128, heads=4, kv_heads=2, head_width=16)
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
_SIZES = {
    "llama.block_count": SMALL.layers, "llama.embedding_length": SMALL.hidden,
    "llama.feed_forward_length": SMALL.feed_forward, "llama.attention.head_count": SMALL.heads,
    "llama.attention.head_count_kv": SMALL.kv_heads, "llama.rope.dimension_count": SMALL.head_width,
}  # fmt: skip


def write_small_base(path: Path, weights: Path) -> Path:
    """The base, with the metadata of the real weights but for its sizes."""
    reader = gguf.GGUFReader(weights)
    writer = gguf.GGUFWriter(path, "llama")
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name not in ("general.architecture", "general.file_type"):
            kind = field.types[0]
            inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, _SIZES.get(name, field.contents()), kind, sub_type=inner)
    vocabulary = len(reader.fields["tokenizer.ggml.tokens"].data)
    for name, shape in _tensors(vocabulary).items():
        writer.add_tensor(name, _values(name, shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _tensors(vocabulary: int) -> dict[str, tuple[int, ...]]:
    hidden, wide, key = SMALL.hidden, SMALL.feed_forward, SMALL.kv_heads * SMALL.head_width
    found: dict[str, tuple[int, ...]] = {"token_embd.weight": (vocabulary, hidden), "output_norm.weight": (hidden,)}
    layer = {
        "attn_norm": (hidden,), "attn_q": (hidden, hidden), "attn_k": (key, hidden), "attn_v": (key, hidden),
        "attn_output": (hidden, hidden), "ffn_norm": (hidden,), "ffn_gate": (wide, hidden), "ffn_up": (wide, hidden),
        "ffn_down": (hidden, wide),
    }  # fmt: skip
    for number in range(SMALL.layers):
        found |= {f"blk.{number}.{name}.weight": shape for name, shape in layer.items()}
    return found


def _values(name: str, shape: tuple[int, ...]) -> Any:
    if "norm" in name:
        return np.ones(shape, np.float32)
    random = np.random.default_rng(len(name) * 1000 + shape[0])
    # The embedding's rows, which are the output's too, are large enough that some tokens are likelier than others.
    spread = 1.0 if name.startswith("token_embd") else shape[1] ** -0.5
    return random.normal(0, spread, shape).astype(np.float16)


def small_adapter(folder: Path, seed: int) -> Path:
    """An adapter for it, strong enough that its answers are its own."""
    weights = tensors(SMALL, 2, seed=seed, spread=1.0)
    return write_folder(folder, weights, target_modules=TARGETS, base_model_name_or_path="SmolLM2-135M-Instruct")


def write_small_profile(demi: Path, folder: Path, weights: Path, *, engine: str = "") -> Path:
    """A copy of a profile on the small base, without adapters; `engine` adds lines to `[engine]`."""
    shutil.copytree(demi, folder)
    base = write_small_base(folder / "small.gguf", weights)
    digest = sha256(base.read_bytes()).hexdigest()
    document = folder / "profile.toml"
    text, _, _ = document.read_text().partition("[engine.weights]")
    text = re.sub(r"(?m)^source = .*\n", "", text)
    text = re.sub(r"(?m)^base_fingerprint = .*$", f'base_fingerprint = "sha256:{digest}"', text)
    text = text.replace('kind = "llamacpp"\n', f'kind = "llamacpp"\n{engine}\n')
    text = text.replace("slot_context = 8192", "slot_context = 1024\nthreads = 1")
    section = f'[engine.weights]\nfile = "small.gguf"\npath = "small.gguf"\nsha256 = "{digest}"\n'
    document.write_text(f"{text}{section}")
    return document
