"""The fingerprint of a base that lies in a folder as safetensors, in one file or in shards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from macaron.errors import ConfigError
from macaron.models.files import sha256_of
from macaron.models.progress import silent
from macaron.models.safetensors import TensorFile
from macaron.models.shards import open_model
from macaron.models.source import read_object, root_of
from macaron.registry.check.base import BaseFingerprint, Extent, sample_digest

CONFIG_FILE, TOKENIZER_FILE = "config.json", "tokenizer.json"
_NO_LORA = (".embed_tokens", ".wte", ".norm")


def safetensors_fingerprint(folder: Path, *, name: str = "", full: str = "") -> BaseFingerprint:
    """Fingerprint a base. Headers and the sample are read, never whole shards.

    Args:
        name: of the base; the folder's by default.
        full: the contract's `base_fingerprint`, if it is known.

    Raises:
        ConfigError: a file is missing, cannot be read, or is not what it says.
    """
    root = root_of(folder)
    settings = read_object(folder / CONFIG_FILE, root)
    extents = [extent for file in open_model(folder, root).files.values() for extent in _extents(file)]
    try:
        sample = sample_digest(extents)
        tokenizer = _tokenizer(folder / TOKENIZER_FILE)
    except OSError as problem:
        raise ConfigError(f"{problem.filename or folder} cannot be read: {problem.strerror}", param="base") from None
    except EOFError as problem:
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


def _extents(file: TensorFile) -> Iterator[Extent]:
    for name, tensor in file.tensors.items():
        yield Extent(name, tensor.dtype, tensor.shape, file.path, file.start(name), tensor.bytes)


def _modules(extents: list[Extent]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Linear layers: their weights are matrices, outputs first."""
    for extent in extents:
        module = extent.name.removesuffix(".weight")
        if module != extent.name and len(extent.shape) == 2 and not module.endswith(_NO_LORA):
            yield module, (extent.shape[0], extent.shape[1])


def _tokenizer(path: Path) -> str:
    return sha256_of(path, silent) if path.is_file() else ""


def _size(settings: Mapping[str, Any], name: str) -> int:
    value = settings.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
