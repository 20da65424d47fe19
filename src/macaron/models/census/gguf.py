"""The metadata and the table of tensors of a GGUF file. No tensor is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from macaron.errors import ConfigError
from macaron.models.census.count import Tensor, Weights, tally
from macaron.models.gguf import GgufReader, MalformedError, walk_gguf

MAX_TENSORS = 1_000_000
_MAX_DIMENSIONS = 4
_ALIGNMENT = 32


class GgufTable(NamedTuple):
    """Metadata, weights, and the one rank of a LoRA, None where it is no LoRA or has several."""

    pairs: Mapping[str, Any]
    weights: Weights
    rank: int | None


class _Row(NamedTuple):
    offset: int
    name: str
    shape: tuple[int, ...]
    tensor: Tensor


def read_table(path: Path) -> GgufTable:
    """What a GGUF file holds, a model's or an adapter's.

    Raises:
        ConfigError: it cannot be read, its table does not fit its bytes, or it is one part of several.
    """
    if not path.is_file():
        raise ConfigError(f"{path} is not a file")
    pairs, rows = walk_gguf(path, _walk)
    parts = pairs.get("split.count", 1)
    if isinstance(parts, int) and parts > 1:
        remedy = "join them with llama.cpp's llama-gguf-split --merge and name the result"
        raise ConfigError(f"{path} is one part of {parts}; {remedy}")
    ranks = {row.shape[1] for row in rows if row.name.endswith(".lora_a") and len(row.shape) > 1}
    rank = ranks.pop() if len(ranks) == 1 else None
    return GgufTable(pairs, tally(row.tensor for row in rows), rank)


def _walk(reader: GgufReader) -> tuple[Mapping[str, Any], list[_Row]]:
    from gguf import GGML_QUANT_SIZES

    pairs = reader.pairs()
    if reader.tensor_count > MAX_TENSORS:
        raise MalformedError(f"{reader.tensor_count} tensors are more than can be")
    sizes = {int(kind): (kind.name, *blocks) for kind, blocks in GGML_QUANT_SIZES.items()}
    rows = [_row(reader, sizes) for _ in range(reader.tensor_count)]
    _check_offsets(rows, reader, pairs.get("general.alignment", _ALIGNMENT))
    return pairs, rows


def _row(reader: GgufReader, sizes: Mapping[int, tuple[str, int, int]]) -> _Row:
    name = reader.string()
    count = reader.number("<I")
    if count > _MAX_DIMENSIONS:
        raise MalformedError(f"a tensor has {count} dimensions, more than {_MAX_DIMENSIONS}")
    shape = tuple(reader.number("<Q") for _ in range(count))
    kind = reader.number("<I")
    if kind not in sizes:
        raise MalformedError(f"a tensor has type {kind}, which is not known here")
    dtype, block, size = sizes[kind]
    # Rows, the first dimension, are made of whole blocks.
    if shape and shape[0] % block:
        raise MalformedError(f"a tensor has rows of {shape[0]} values, {dtype} has blocks of {block}")
    values = math.prod(shape)
    return _Row(reader.number("<Q"), name, shape, Tensor(dtype, values, values // block * size))


def _check_offsets(rows: list[_Row], reader: GgufReader, alignment: Any) -> None:
    if isinstance(alignment, bool) or not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
        raise MalformedError("its alignment is no number of bytes")
    room = max(reader.size - -(-reader.position // alignment) * alignment, 0)
    position = 0
    for row in sorted(rows):
        if row.offset < position:
            raise MalformedError("two of its tensors overlap")
        position = row.offset + row.tensor.bytes
    if position > room:
        raise MalformedError(f"it is cut off: its tensors need {position} bytes, {room} are there")
