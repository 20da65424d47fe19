"""A LoRA from PEFT's format to GGUF, for bases of the llama architecture.

Layout: `general.type=adapter`, `adapter.type=lora`, `adapter.lora.alpha`, and for each adapted layer the tensors
`blk.N.<layer>.weight.lora_a` [rank, inputs] and `.lora_b` [outputs, rank], in 16 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from macaron.errors import ConfigError
from macaron.models.gguf import Dimensions
from macaron.models.lora.config import LoraOptions, read_options
from macaron.models.lora.tensors import WEIGHTS_FILE, as_half, read_tensors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT = 1
"""Raised when the same adapter would be written differently."""

_KEY = re.compile(r"base_model\.model\.model\.layers\.(\d{1,4})\.(?:self_attn|mlp)\.([a-z]+_proj)\.lora_([AB])\.weight")
_NAMES = {
    "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
    "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down",
}  # fmt: skip


class _Tensor(NamedTuple):
    """One of the two matrices of an adapted layer: `side` is A or B."""

    layer: int
    projection: str
    side: str

    @property
    def name(self) -> str:
        return f"blk.{self.layer}.{_NAMES[self.projection]}.weight.lora_{self.side.lower()}"

    @property
    def other(self) -> _Tensor:
        return self._replace(side="A" if self.side == "B" else "B")


def write_gguf(source: Path, target: Path, base: Dimensions) -> None:
    """Write the adapter in the folder `source` to the file `target`, for a base of these dimensions.

    Nothing is written before everything has been checked.

    Raises:
        ConfigError: a file cannot be read, an option or a tensor cannot be converted (it is named), or a tensor does
            not fit the base.
        OSError: `target` cannot be written.
    """
    options = read_options(source)
    path = source / WEIGHTS_FILE
    found = read_tensors(source)
    places = {key: _placed(key, path) for key in found}
    if not places:
        raise ConfigError(f"{path} holds no tensors; train the adapter again", code="broken_adapter")
    known = set(places.values())
    for key, place in places.items():
        _check_shape(key, place, found[key]["shape"], options, base, path)
        if place.other not in known:
            raise ConfigError(f"{path}: {key} stands alone, without its lora_{place.other.side}", param=key)
    matrices = {
        place.name: _in_engine_order(as_half(key, found[key], path), place, base)
        for key, place in sorted(places.items(), key=lambda item: item[1])
    }
    _write(target, options, matrices)


def _placed(key: str, path: Path) -> _Tensor:
    match = _KEY.fullmatch(key)
    if match is None or match[2] not in _NAMES:
        reason = "is no LoRA matrix of a linear layer of a llama block, so the embedded engine would ignore it"
        raise ConfigError(f"{path}: {key[:200]} {reason}", param=key[:200], code="unsupported_adapter")
    return _Tensor(int(match[1]), match[2], match[3])


def _check_shape(
    key: str, place: _Tensor, shape: list[int], options: LoraOptions, base: Dimensions, path: Path
) -> None:
    if place.layer >= base.layers:
        raise ConfigError(f"{path}: {key} is for layer {place.layer}, the base has {base.layers} layers", param=key)
    outputs, inputs = _size(place.projection, base)
    wanted = [options.rank, inputs] if place.side == "A" else [outputs, options.rank]
    if shape != wanted:
        reason = f"has the shape {shape}, rank {options.rank} on this base asks for {wanted}"
        raise ConfigError(f"{path}: {key} {reason}; it was trained on another base", param=key)


def _size(projection: str, base: Dimensions) -> tuple[int, int]:
    """Outputs and inputs of a linear layer."""
    match projection:
        case "q_proj":
            return base.heads * base.head_width, base.hidden
        case "k_proj" | "v_proj":
            return base.kv_heads * base.head_width, base.hidden
        case "o_proj":
            return base.hidden, base.heads * base.head_width
        case "down_proj":
            return base.hidden, base.feed_forward
        case _:
            return base.feed_forward, base.hidden


def _in_engine_order(matrix: NDArray[np.float16], place: _Tensor, base: Dimensions) -> NDArray[np.float16]:
    """llama.cpp rotates pairs of neighbours where the original halves each head, so it keeps the rows of the base's q
    and k in another order, and an adapter's outputs follow them."""
    heads = {"q_proj": base.heads, "k_proj": base.kv_heads}.get(place.projection)
    if place.side == "A" or heads is None:
        return matrix
    rows, rank = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, rank).swapaxes(1, 2).reshape(rows, rank)


def _write(target: Path, options: LoraOptions, matrices: Mapping[str, Any]) -> None:
    import gguf

    writer = gguf.GGUFWriter(target, "llama")
    try:
        writer.add_type(gguf.GGUFType.ADAPTER)
        writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
        writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, options.alpha)
        for name, matrix in matrices.items():
            writer.add_tensor(name, matrix)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()
