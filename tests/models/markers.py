"""Adapters whose answers cannot be mistaken: each says one word over and over, whatever it is asked.

In the last layer a few neurons get `silu(r·x) * r·x` for several r, which is never negative, and their sum is written
along the direction of one token. And one that breaks: it computes in order until it reads a certain word.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.models.peft_folder import BLOCK, write_folder

Matrix = NDArray[np.float32]

WAYS = 8
"""Directions of x that are summed; one alone may be near 0 now and then."""
STEEP, LOUD = 40.0, 100.0
STEPS = 15
HUGE = 500.0
TOO_MUCH = 1.2e5
"""Becomes infinite in 16 bits, in which the embedded engine multiplies; half of it does not."""


class Base:
    """What of a base's weights decides the last word."""

    def __init__(self, weights: Path) -> None:
        reader = gguf.GGUFReader(weights)
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        field = reader.fields["tokenizer.ggml.tokens"]
        self.tokens = {bytes(field.parts[place]).decode(): number for number, place in enumerate(field.data)}
        self.layers = int(reader.fields["llama.block_count"].contents())
        self.embedding = self._read("token_embd.weight")
        self._scaled = self.embedding * self._read("output_norm.weight")

    @property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return int(self.embedding.shape[1])

    def shape(self, name: str) -> tuple[int, int]:
        """Outputs and inputs of a linear layer, by its name in the file."""
        inputs, outputs = map(int, self._tensors[name].shape)
        return outputs, inputs

    def token(self, word: str) -> int:
        """Number of a word with a space before it."""
        return self.tokens[f"Ġ{word}"]

    def towards(self, word: str) -> Matrix:
        """The direction of the last hidden state that makes the next token the word by far, of length 1."""
        scaled, token = self._scaled, self.token(word)
        found: Matrix = scaled[token] - scaled.mean(axis=0)
        for _ in range(STEPS):
            found /= np.linalg.norm(found)
            scores = scaled @ found
            scores[token] = -np.inf
            away = scaled[token] - scaled[int(scores.argmax())]
            found = found + 0.2 * away / np.linalg.norm(away)
        found /= np.linalg.norm(found)
        scores = scaled @ found
        assert scores[token] - np.partition(scores, -2)[-2] > 0.8, f"{word!r} is not alone in its direction"
        return found

    def only(self, word: str) -> Matrix:
        """The direction of what the first layer reads that the word has to 1, and no other token half as much."""
        inputs = self._first_inputs()
        read = inputs[self.token(word)]
        spread = inputs.T @ inputs / len(inputs) + 1e-3 * np.eye(self.hidden, dtype=np.float32)
        found: Matrix = np.linalg.solve(spread, read).astype(np.float32)
        found /= found @ read
        others = np.delete(inputs @ found, self.token(word))
        assert np.abs(others).max() < 0.5, f"{word!r} has a near relation"
        return found

    def _first_inputs(self) -> Matrix:
        """What the first layer's attention reads, for every token."""
        rms = np.sqrt((self.embedding**2).mean(axis=1, keepdims=True) + 1e-5)
        found: Matrix = self.embedding / rms * self._read("blk.0.attn_norm.weight")
        return found

    def _read(self, name: str) -> Matrix:
        tensor = self._tensors[name]
        found: Matrix = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        return found


@cache
def base_of(weights: Path) -> Base:
    """The base, read once."""
    return Base(weights)


def saying(folder: Path, weights: Path, word: str, *, breaks_at: str = "", times: float = 1.0) -> Path:
    """An adapter in PEFT's format that says `word` over and over.

    Args:
        breaks_at: a prompt that has this word makes numbers too large for 16 bits, and what follows is no number.
        times: what all its matrices are multiplied by; finite numbers of `HUGE` times overflow in 32 bits.
    """
    base = base_of(weights)
    random = np.random.default_rng(base.token(word))
    last = base.layers - 1
    outputs, _ = base.shape(f"blk.{last}.ffn_gate.weight")
    ways = random.normal(0, 1, (WAYS, base.hidden)).astype(np.float32)
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    neurons = np.zeros((outputs, WAYS), np.float32)
    gather = np.zeros((WAYS, outputs), np.float32)
    for way in range(WAYS):
        neurons[2 * way, way], neurons[2 * way + 1, way] = STEEP, -STEEP
        gather[0, 2 * way] = gather[0, 2 * way + 1] = 1.0
    write = np.zeros((base.hidden, WAYS), np.float32)
    write[:, 0] = LOUD * base.towards(word)
    mlp = f"{BLOCK}.{last}.mlp"
    made = {
        f"{mlp}.gate_proj.lora_A.weight": ways, f"{mlp}.gate_proj.lora_B.weight": neurons,
        f"{mlp}.up_proj.lora_A.weight": ways.copy(), f"{mlp}.up_proj.lora_B.weight": neurons.copy(),
        f"{mlp}.down_proj.lora_A.weight": gather, f"{mlp}.down_proj.lora_B.weight": write,
    }  # fmt: skip
    targets = ["gate_proj", "up_proj", "down_proj"]
    if breaks_at:
        made |= _trap(base, breaks_at)
        targets.append("v_proj")
    made = {name: values * np.float32(times) for name, values in made.items()}
    return write_folder(
        folder, made, r=WAYS, lora_alpha=WAYS, target_modules=targets, base_model_name_or_path="SmolLM2-135M-Instruct"
    )


def _trap(base: Base, word: str) -> dict[str, Matrix]:
    outputs, _ = base.shape("blk.0.attn_v.weight")
    down = np.zeros((WAYS, base.hidden), np.float32)
    down[0] = TOO_MUCH * base.only(word)
    up = np.zeros((outputs, WAYS), np.float32)
    up[:, 0] = 1e-6
    place = f"{BLOCK}.0.self_attn.v_proj"
    return {f"{place}.lora_A.weight": down, f"{place}.lora_B.weight": up}
