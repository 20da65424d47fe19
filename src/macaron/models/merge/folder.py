"""Merging into a base of safetensors: a folder with `config.json`, a tokenizer, and one file or several shards."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from macaron.errors import ConfigError
from macaron.models.files import sha256_of
from macaron.models.merge.adapter import BLOCK_ELEMENTS, Adapter, read_adapter
from macaron.models.merge.output import Advance, Sink, appearing, unwatched
from macaron.models.merge.record import Merged
from macaron.models.merge.tensor_file import FLOATS, TensorFile, as_bytes, as_floats, open_tensors
from macaron.models.progress import silent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONFIG = "config.json"
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
MAX_INDEX_BYTES = 67_108_864
MAX_SHARDS = 4096
_BESIDE = (
    "config.json", "generation_config.json", "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.*",
    "merges.txt", "chat_template*", "*.model", "preprocessor_config.json", "processor_config.json", "LICEN[CS]E*",
    "NOTICE*", INDEX,
)  # fmt: skip


def merge_safetensors(base: Path, adapter: Path, out: Path, *, advance: Advance = unwatched) -> Merged:
    """Write the base in the folder `base`, with the adapter in the folder `adapter` merged in, to the folder `out`.

    Every file keeps its name, every tensor its type and place; a block of rows is in memory at a time.

    Args:
        advance: is called with the bytes of weights written so far and in all.

    Raises:
        ConfigError: something cannot be read or merged (it is named), a result is not finite in the base's type, `out`
            is there, or the disk is full. Nothing is left behind.
    """
    found, config = read_adapter(adapter), _table(base / CONFIG)
    shards = {name: open_tensors(base / name) for name in _shards(base)}
    places = {tensor: shard for shard in shards.values() for tensor in shard.tensors}
    _check_base(base, config)
    tied = _is_tied(config) or "lm_head.weight" not in places
    found.check_untied(_table_modules(places) if tied else ())
    for module in found.pairs:
        _check_target(found, module, places)
    found.check_values()
    sizes = {name: (base / name).stat().st_size for name in shards}
    with appearing(out, sum(sizes.values())) as part:
        part.mkdir()
        _copy_beside(base, part)
        writer = _Writer(found, part, advance, sum(sizes.values()))
        sources = [f"{writer.write(name, shard)}  {name}\n" for name, shard in shards.items()]
    return Merged(
        format="safetensors",
        base_sha256=hashlib.sha256("".join(sources).encode()).hexdigest(),
        rank=found.options.rank,
        scale=found.scale,
        dtypes=dict(writer.dtypes),
        tensors=len(places),
        files=writer.files,
    )


class _Writer:
    def __init__(self, adapter: Adapter, folder: Path, advance: Advance, total: int) -> None:
        self._adapter = adapter
        self._folder = folder
        self._advance = advance
        self._total = total
        self._done = 0
        self._modules = {f"{module}.weight": module for module in adapter.pairs}
        self.dtypes: Counter[str] = Counter()
        self.files: dict[str, str] = {}

    def write(self, name: str, shard: TensorFile) -> str:
        """Write one file; returns the SHA-256 of the base's."""
        with (self._folder / name).open("wb") as target, shard.path.open("rb") as source:
            sink = Sink(target, lambda done: self._advance(self._done + done, self._total))
            with self._adapter.file.path.open("rb") as matrices:
                sink.write(shard.head)
                for tensor in shard.tensors:
                    self._tensor(tensor, shard, source, matrices, sink)
            sink.sync()
        self._done += sink.position
        self.files[name] = sink.sha256
        return sha256_of(shard.path, silent)

    def _tensor(self, name: str, shard: TensorFile, source: IO[bytes], matrices: IO[bytes], sink: Sink) -> None:
        tensor = shard.tensors[name]
        if name not in self._modules:
            sink.copy(source, len(shard.head) + tensor.data_offsets[0], tensor.size)
            return
        delta = self._adapter.delta(matrices, self._modules[name])
        rows, columns = tensor.shape
        step = max(1, BLOCK_ELEMENTS // columns)
        for first in range(0, rows, step):
            last = min(first + step, rows)
            values = as_floats(shard.read(source, name, first, last), tensor.dtype).reshape(last - first, columns)
            sink.write(_finite(name, values + delta.rows(first, last), tensor.dtype))
        self.dtypes[tensor.dtype] += 1


def _finite(name: str, values: NDArray[np.float32], dtype: str) -> bytes:
    import numpy as np

    raw = as_bytes(values, dtype)
    if not np.isfinite(as_floats(raw, dtype)).all():
        reason = f"has values that are not finite in the base's type {dtype}; train the adapter with a lower --lr"
        raise ConfigError(f"merged, {name} {reason}", param=name, code="broken_adapter")
    return raw


def _check_target(adapter: Adapter, module: str, places: Mapping[str, TensorFile]) -> None:
    name = f"{module}.weight"
    if (shard := places.get(name)) is None:
        reason = f"is for {module}, but the base has no tensor {name}; it was trained on another base"
        raise ConfigError(f"{adapter.file.path}: {adapter.pairs[module].a} {reason}", param=module)
    tensor = shard.tensors[name]
    adapter.check_shape(module, tensor.shape)
    if tensor.dtype not in FLOATS:
        remedy = "name the base before it was quantised, in F32, F16 or BF16"
        raise ConfigError(f"{shard.path}: {name} is of type {tensor.dtype}; {remedy}", param="base")


def _check_base(base: Path, config: Mapping[str, Any]) -> None:
    if method := config.get("quantization_config"):
        kind = method.get("quant_method", "") if isinstance(method, dict) else method
        remedy = "name the base before it was quantised, or merge into a GGUF file of it"
        raise ConfigError(f"{base / CONFIG}: the base is quantised ({str(kind)[:40]!r}); {remedy}", param="base")


def _is_tied(config: Mapping[str, Any]) -> bool:
    inner = config.get("text_config")
    return any(table.get("tie_word_embeddings") is True for table in (config, inner) if isinstance(table, dict))


def _table_modules(places: Mapping[str, TensorFile]) -> list[str]:
    """The modules that share a weight in a base whose embeddings are tied."""
    tables = (name.removesuffix(".weight") for name in places if name.endswith("embed_tokens.weight"))
    return ["lm_head", "transformer.wte", *tables]


def _shards(base: Path) -> list[str]:
    if not (base / INDEX).exists():
        if not (base / SINGLE).exists():
            raise ConfigError(f"{base} has neither {SINGLE} nor {INDEX}; name a folder of safetensors", param="base")
        return [SINGLE]
    weights = _table(base / INDEX).get("weight_map")
    names = set(weights.values()) if isinstance(weights, dict) and _all_text(weights.values()) else set()
    if not 1 <= len(names) <= MAX_SHARDS:
        raise ConfigError(
            f"{base / INDEX} names no files, or more than {MAX_SHARDS}; fetch the base again", param="base"
        )
    for name in names:
        if "/" in name or "\\" in name or "\0" in name or not name.endswith(".safetensors") or name.startswith("."):
            raise ConfigError(f"{base / INDEX}: {name[:80]!r} is not the name of a safetensors file", param="base")
    return sorted(names)


def _all_text(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _table(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_INDEX_BYTES + 1)
        if len(raw) > MAX_INDEX_BYTES:
            raise ConfigError(f"{path} has more than {MAX_INDEX_BYTES} bytes; it is no part of a model", param="base")
        return msgspec.json.decode(raw, type=dict[str, Any])
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", param="base") from None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a JSON object: {error}", param="base") from None


def _copy_beside(base: Path, part: Path) -> None:
    for pattern in _BESIDE:
        for path in base.glob(pattern):
            if path.is_file():
                shutil.copyfile(path, part / path.name)
