"""Merging into a base of safetensors: a folder with `config.json`, a tokenizer, and one file or several shards."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from macaron.errors import ConfigError
from macaron.models.files import sha256_of, sha256_of_listing
from macaron.models.merge.adapter import BLOCK_ELEMENTS, Adapter, read_adapter
from macaron.models.merge.output import Advance, Sink, appearing, unwatched
from macaron.models.merge.record import Merged
from macaron.models.progress import silent
from macaron.models.safetensors import FLOATS, TensorFile, as_bytes, as_floats
from macaron.models.shards import INDEX_FILE, open_model
from macaron.models.source import opened, read_object, root_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONFIG = "config.json"
_BESIDE = (
    "config.json", "generation_config.json", "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.*",
    "merges.txt", "chat_template*", "*.model", "preprocessor_config.json", "processor_config.json", "LICEN[CS]E*",
    "NOTICE*", INDEX_FILE,
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
    found, root = read_adapter(adapter), root_of(base)
    config, shards = read_object(base / CONFIG, root), open_model(base, root)
    places = shards.places
    _check_base(base, config)
    tied = _is_tied(config) or "lm_head.weight" not in places
    found.check_untied(_table_modules(places) if tied else ())
    for module in found.pairs:
        _check_target(found, module, places)
    found.check_values()
    total = sum(file.size for file in shards.files.values())
    with appearing(out, total) as part:
        part.mkdir()
        _copy_beside(base, root, part)
        writer = _Writer(found, part, advance, total)
        sources = [(name, writer.write(name, file)) for name, file in shards.files.items()]
    return Merged(
        format="safetensors",
        base_sha256=sha256_of_listing(sources),
        rank=found.config.rank,
        scale=found.config.scale,
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
            sink.copy(source, shard.start(name), tensor.bytes)
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


def _copy_beside(base: Path, root: Path, part: Path) -> None:
    for pattern in _BESIDE:
        for path in base.glob(pattern):
            if path.is_file():
                with opened(path, root) as (source, _), (part / path.name).open("wb") as target:
                    shutil.copyfileobj(source, target)
