"""The fingerprint of a base that lies in a folder as safetensors, in one file or in shards."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from macaron.errors import ConfigError
from macaron.registry.check.base import BaseFingerprint, Extent, sample_digest
from macaron.registry.check.document import DuplicateKeyError, NotAnObjectError, read_object
from macaron.registry.check.header import read_header
from macaron.registry.check.report import Refused

INDEX_FILE, SINGLE_FILE = "model.safetensors.index.json", "model.safetensors"
CONFIG_FILE, TOKENIZER_FILE = "config.json", "tokenizer.json"
MAX_SHARDS = 4096
_NO_LORA = (".embed_tokens", ".wte", ".norm")


def safetensors_fingerprint(folder: Path, *, name: str = "", full: str = "") -> BaseFingerprint:
    """Fingerprint a base. Headers and the sample are read, never whole shards.

    Args:
        name: of the base; the folder's by default.
        full: the contract's `base_fingerprint`, if it is known.

    Raises:
        ConfigError: a file is missing, cannot be read, or is not what it says.
    """
    try:
        settings = read_object((folder / CONFIG_FILE).read_bytes())
        extents = [extent for shard in _shards(folder) for extent in _extents(shard)]
        sample = sample_digest(extents)
        tokenizer = _tokenizer(folder / TOKENIZER_FILE)
    except OSError as problem:
        raise ConfigError(f"{problem.filename or folder} cannot be read: {problem.strerror}", param="base") from None
    except (NotAnObjectError, DuplicateKeyError, EOFError, msgspec.MsgspecError) as problem:
        raise ConfigError(f"{folder} is no usable base in safetensors: {problem}", param="base") from None
    text = settings.get("text_config")
    sizes = {**settings, **text} if isinstance(text, dict) else settings
    heads = _size(sizes, "num_attention_heads")
    return BaseFingerprint(
        name=name or folder.name, architecture=str(settings.get("model_type", "")).lower(),
        layers=_size(sizes, "num_hidden_layers"), hidden=_size(sizes, "hidden_size"),
        feed_forward=_size(sizes, "intermediate_size"), heads=heads,
        kv_heads=_size(sizes, "num_key_value_heads") or heads, vocabulary=_size(sizes, "vocab_size"),
        tokenizer=tokenizer, modules=dict(_modules(extents)), sample=sample, full=full,
    )  # fmt: skip


def _shards(folder: Path) -> list[Path]:
    index = folder / INDEX_FILE
    if not index.is_file():
        return [folder / SINGLE_FILE]
    weight_map = read_object(index.read_bytes()).get("weight_map")
    names = set(weight_map.values()) if isinstance(weight_map, dict) else set()
    if not names or len(names) > MAX_SHARDS:
        raise NotAnObjectError(f"{INDEX_FILE} names {len(names)} files; 1 to {MAX_SHARDS} are possible")
    for name in names:
        if not isinstance(name, str) or name != Path(name).name or name in ("", ".", ".."):
            raise NotAnObjectError(f"{INDEX_FILE} names {str(name)[:120]!r}, which is no plain file name")
    return [folder / name for name in sorted(names)]


def _extents(path: Path) -> list[Extent]:
    with path.open("rb") as file:
        try:
            header = read_header(file, path.stat().st_size, path.name)
        except Refused as problem:
            raise NotAnObjectError(f"{path.name}: {problem.finding.message}") from None
    start = len(header.raw)
    return [
        Extent(item.name, item.dtype, item.shape, path, start + item.begin, item.end - item.begin)
        for item in header.tensors
    ]


def _modules(extents: list[Extent]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Linear layers: their weights are matrices, outputs first."""
    for extent in extents:
        module = extent.name.removesuffix(".weight")
        if module != extent.name and len(extent.shape) == 2 and not module.endswith(_NO_LORA):
            yield module, (extent.shape[0], extent.shape[1])


def _tokenizer(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _size(settings: Mapping[str, Any], name: str) -> int:
    value = settings.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
