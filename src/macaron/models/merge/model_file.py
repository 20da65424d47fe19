"""Merging into a GGUF file: the changed tensors are dequantised, added to and written again, the rest is copied."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

from macaron.errors import ConfigError
from macaron.models.files import sha256_of
from macaron.models.gguf import Dimensions, llama_dimensions
from macaron.models.gguf_table import GgufTable, GgufTensor, padded, read_whole_table
from macaron.models.merge.adapter import BLOCK_ELEMENTS, Adapter, Delta, read_adapter
from macaron.models.merge.output import Advance, Sink, appearing, unwatched
from macaron.models.merge.record import Merged
from macaron.models.progress import silent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GgufType = Literal["f16", "f32", "q8_0"]
GGUF_TYPES: tuple[GgufType, ...] = ("q8_0", "f16", "f32")
_KEPT = ("F32", "F16", "BF16", "Q8_0")
"""Types fine enough to be written again as what they were."""
_OTHER_BASE = (
    "merge into the base's folder of safetensors and convert the result with llama.cpp's convert_hf_to_gguf.py"
)


class _Target(NamedTuple):
    """A tensor that changes: by which module of the adapter, and the type it is written in."""

    module: str
    kind: Any


def merge_gguf(
    base: Path, adapter: Path, out: Path, dtype: GgufType | None = None, *, advance: Advance = unwatched
) -> Merged:
    """Write the model file `base`, with the adapter in the folder `adapter` merged in, to the file `out`.

    Metadata, tokenizer and every tensor that the adapter leaves alone keep their bytes.

    Args:
        dtype: of the changed tensors. If None, those in 8 bits or more keep their type and coarser ones become Q8_0:
            written again in 4 bits they would lose more than the adapter has changed.
        advance: is called with the bytes written so far and in all.

    Raises:
        ConfigError: something cannot be read or merged (it is named), a result is not finite, `out` is there, or the
            disk is full. Nothing is left behind.
    """
    found, model = read_adapter(adapter), read_whole_table(base)
    dimensions = llama_dimensions(base, "GGUF files are merged", _OTHER_BASE)
    tied = "output.weight" not in model.tensors
    found.check_untied(("lm_head", "model.embed_tokens") if tied else ())
    targets = _targets(found, model, dimensions, dtype)
    found.check_values()
    table, total = _laid_out(model, targets)
    with appearing(out, total) as part:
        with part.open("wb") as target, base.open("rb") as source, found.file.path.open("rb") as matrices:
            sink = Sink(target, lambda done: advance(done, total))
            sink.copy(source, 0, model.head_size)
            sink.write(table)
            for name, tensor in model.tensors.items():
                if (change := targets.get(name)) is None:
                    sink.copy(source, tensor.start, tensor.bytes)
                else:
                    delta = _in_engine_order(found.delta(matrices, change.module), name, dimensions)
                    _merge(model, tensor, change.kind, delta, source, sink)
                sink.write(bytes(padded(sink.position, model.alignment) - sink.position))
            sink.sync()
    return Merged(
        format="gguf",
        base_sha256=sha256_of(base, silent),
        rank=found.config.rank,
        scale=found.config.scale,
        dtypes=dict(Counter(change.kind.name for change in targets.values())),
        tensors=len(model.tensors),
        files={out.name: sink.sha256},
    )


def _targets(
    adapter: Adapter, model: GgufTable, dimensions: Dimensions, dtype: GgufType | None
) -> Mapping[str, _Target]:
    import gguf

    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, dimensions.layers)
    targets: dict[str, _Target] = {}
    for module, pair in adapter.pairs.items():
        name = f"{names.get_name(module)}.weight"
        if (tensor := model.tensors.get(name)) is None:
            reason = f"is for {module}, but the base has no such tensor; it was trained on another base"
            raise ConfigError(f"{adapter.file.path}: {pair.a} {reason}", param=module)
        if name in targets:
            raise ConfigError(f"{adapter.file.path}: {module} and {targets[name].module} are one tensor", param=module)
        adapter.check_shape(module, reversed(tensor.dimensions))
        targets[name] = _Target(module, _written_as(model, name, tensor, dtype))
    return targets


def _written_as(model: GgufTable, name: str, tensor: GgufTensor, dtype: GgufType | None) -> Any:
    import gguf
    import numpy as np

    kinds = gguf.GGMLQuantizationType
    kept = tensor.kind if tensor.dtype in _KEPT else kinds.Q8_0
    kind = kinds[dtype.upper()] if dtype is not None else kept
    block, _ = gguf.GGML_QUANT_SIZES[kind]
    if tensor.dimensions[0] % block:
        reason = f"has rows of {tensor.dimensions[0]} values, which {kind.name} cannot hold; give --dtype f16"
        raise ConfigError(f"{model.path}: {name} {reason}", param="dtype")
    try:
        per_block, size = gguf.GGML_QUANT_SIZES[tensor.kind]
        gguf.dequantize(np.zeros((1, tensor.dimensions[0] // per_block * size), np.uint8), tensor.kind)
    except NotImplementedError:
        reason = f"is of type {tensor.dtype}, which cannot be dequantised here; name the base in another type"
        raise ConfigError(f"{model.path}: {name} {reason}", param="base") from None
    return kind


def _laid_out(model: GgufTable, targets: Mapping[str, _Target]) -> tuple[bytes, int]:
    """The table with the padding after it, and the size of the whole file."""
    table, offset = bytearray(), 0
    for name, tensor in model.tensors.items():
        kind = targets[name].kind if name in targets else tensor.kind
        table += _encoded(name, tensor.dimensions, kind, offset)
        size = _size(tensor, kind) if name in targets else tensor.bytes
        offset = padded(offset + size, model.alignment)
    end = model.head_size + len(table)
    data = padded(end, model.alignment)
    return bytes(table) + bytes(data - end), data + offset


def _encoded(name: str, dimensions: Sequence[int], kind: Any, offset: int) -> bytes:
    """An entry of the table."""
    raw = name.encode("utf-8", "surrogateescape")
    form = f"<Q{len(raw)}sI{len(dimensions)}QIQ"
    return struct.pack(form, len(raw), raw, len(dimensions), *dimensions, int(kind), offset)


def _size(tensor: GgufTensor, kind: Any) -> int:
    import gguf

    block, size = gguf.GGML_QUANT_SIZES[kind]
    return int(tensor.values // block * size)


def _merge(model: GgufTable, tensor: GgufTensor, kind: Any, delta: Delta, source: IO[bytes], sink: Sink) -> None:
    import gguf
    import numpy as np

    columns, rows = tensor.dimensions
    width, step = tensor.bytes // rows, max(1, BLOCK_ELEMENTS // columns)
    for first in range(0, rows, step):
        last = min(first + step, rows)
        raw = model.read(source, tensor, first * width, (last - first) * width)
        stored = np.frombuffer(raw, np.uint8).reshape(last - first, width)
        values = gguf.dequantize(stored, tensor.kind).astype(np.float32) + delta.rows(first, last)
        with np.errstate(over="ignore"):
            written = gguf.quantize(values, kind)
        if not np.isfinite(values).all() or not np.isfinite(gguf.dequantize(written, kind)).all():
            reason = f"has values that are not finite in {kind.name}; train the adapter with a lower --lr"
            raise ConfigError(f"merged, {tensor.name} {reason}", param=tensor.name, code="broken_adapter")
        sink.write(written.tobytes())


def _in_engine_order(delta: Delta, name: str, base: Dimensions) -> Delta:
    """llama.cpp rotates pairs of neighbours where the original halves each head, so it keeps the rows of q and k in
    another order."""
    heads = {"attn_q": base.heads, "attn_k": base.kv_heads}.get(name.split(".")[-2])
    if heads is None:
        return delta
    left: NDArray[np.float32] = delta.left
    rows, rank = left.shape
    return Delta(left.reshape(heads, 2, rows // heads // 2, rank).swapaxes(1, 2).reshape(rows, rank), delta.right)
