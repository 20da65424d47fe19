"""A LoRA from PEFT's format to GGUF, for bases of the llama architecture.

Layout: `general.type=adapter`, `adapter.type=lora`, `adapter.lora.alpha`, and for each adapted layer the tensors
`blk.N.<layer>.weight.lora_a` [rank, inputs] and `.lora_b` [outputs, rank], in 16 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from macaron.errors import ConfigError
from macaron.models.gguf import Dimensions
from macaron.models.peft import AdapterConfig, open_lora
from macaron.models.safetensors import TensorFile, as_floats
from macaron.models.source import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT = 1
"""Raised when the same adapter would be written differently."""

MAX_BYTES = 4_294_967_296
MAX_RANGE = 65_504.0
"""The largest number of 16 bits."""

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
    config, file = open_lora(source)
    if file.size > MAX_BYTES:
        raise ConfigError(f"{file.path} has {file.size} bytes, more than the {MAX_BYTES} of any adapter here")
    places = {key: _placed(key, file.path) for key in file.tensors}
    known = set(places.values())
    for key, place in places.items():
        _check_shape(key, place, file, config.rank, base)
        if place.other not in known:
            raise ConfigError(f"{file.path}: {key} stands alone, without its lora_{place.other.side}", param=key)
    with file.path.open("rb") as opened:
        matrices = {
            place.name: _in_engine_order(_as_half(file, opened, key), place, base)
            for key, place in sorted(places.items(), key=lambda item: item[1])
        }
    _write(target, config, matrices)


def _placed(key: str, path: Path) -> _Tensor:
    match = _KEY.fullmatch(key)
    if match is None or match[2] not in _NAMES:
        reason = "is no LoRA matrix of a linear layer of a llama block, so the embedded engine would ignore it"
        shown = printable(key[:200], 200)
        raise ConfigError(f"{path}: {shown} {reason}", param=key[:200], code="unsupported_adapter")
    return _Tensor(int(match[1]), match[2], match[3])


def _check_shape(key: str, place: _Tensor, file: TensorFile, rank: int, base: Dimensions) -> None:
    if place.layer >= base.layers:
        reason = f"is for layer {place.layer}, the base has {base.layers} layers"
        raise ConfigError(f"{file.path}: {key} {reason}", param=key)
    outputs, inputs = _size(place.projection, base)
    wanted = (rank, inputs) if place.side == "A" else (outputs, rank)
    if (shape := file.tensors[key].shape) != wanted:
        reason = f"has the shape {list(shape)}, rank {rank} on this base asks for {list(wanted)}"
        raise ConfigError(f"{file.path}: {key} {reason}; it was trained on another base", param=key)


def _as_half(file: TensorFile, source: IO[bytes], key: str) -> NDArray[np.float16]:
    """A tensor as 16-bit numbers, in its own shape."""
    import numpy as np

    tensor = file.tensors[key]
    values = as_floats(file.read(source, key), tensor.dtype)
    # Also false for what is not a number.
    if values.size and not np.abs(values).max() <= MAX_RANGE:
        reason = f"holds NaN, infinite or larger values than {MAX_RANGE:g}; the training went wrong, train it again"
        raise ConfigError(f"{file.path}: {key} {reason}", param=key, code="broken_adapter")
    return values.astype(np.float16).reshape(tensor.shape)


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


def _write(target: Path, config: AdapterConfig, matrices: Mapping[str, Any]) -> None:
    import gguf

    writer = gguf.GGUFWriter(target, "llama")
    try:
        writer.add_type(gguf.GGUFType.ADAPTER)
        writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
        writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, config.plain_alpha)
        for name, matrix in matrices.items():
            writer.add_tensor(name, matrix)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()
