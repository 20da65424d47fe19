"""Real LoRA adapters with random weights, for tests: small to write, strong enough to change every answer."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import gguf
import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


class BaseShape(NamedTuple):
    """Dimensions of a base of the llama architecture; the defaults are SmolLM2-135M's."""

    layers: int = 30
    hidden: int = 576
    feed_forward: int = 1536
    heads: int = 9
    kv_heads: int = 3

    @property
    def kv_width(self) -> int:
        return self.hidden // self.heads * self.kv_heads

    def targets(self) -> dict[str, tuple[int, int]]:
        """Rows (outputs) and columns (inputs) of each linear layer of a block."""
        return {
            "attn_q": (self.hidden, self.hidden),
            "attn_k": (self.kv_width, self.hidden),
            "attn_v": (self.kv_width, self.hidden),
            "attn_output": (self.hidden, self.hidden),
            "ffn_gate": (self.feed_forward, self.hidden),
            "ffn_up": (self.feed_forward, self.hidden),
            "ffn_down": (self.hidden, self.feed_forward),
        }


def permute_rows(matrix: Matrix, heads: int) -> Matrix:
    """Put the rows of a q or k projection in llama.cpp's order: it rotates pairs that lie side by side, where the
    original halves each head. A trained adapter's `lora_b` of q and k needs it just as the base's rows did; for random
    rows it changes nothing that matters, but a fixture that skips it would teach the wrong format."""
    rows = matrix.shape[0]
    return matrix.reshape(heads, 2, rows // heads // 2, *matrix.shape[1:]).swapaxes(1, 2).reshape(matrix.shape)


def write_lora(path: Path, seed: int, *, rank: int = 8, spread: float = 0.2, shape: BaseShape | None = None) -> Path:
    """Write an adapter as GGUF. The same seed gives the same bytes; `spread` is the standard deviation of B."""
    shape = shape or BaseShape()
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, float(rank))
    heads = {"attn_q": shape.heads, "attn_k": shape.kv_heads}
    for layer in range(shape.layers):
        for target, (rows, columns) in shape.targets().items():
            a = random.normal(0.0, columns**-0.5, (rank, columns)).astype(np.float32)
            b = random.normal(0.0, spread, (rows, rank)).astype(np.float32)
            if target in heads:
                b = permute_rows(b, heads[target])
            writer.add_tensor(f"blk.{layer}.{target}.weight.lora_a", a.astype(np.float16))
            writer.add_tensor(f"blk.{layer}.{target}.weight.lora_b", b.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
