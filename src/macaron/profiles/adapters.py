"""The adapters of a profile as files that the embedded engine loads."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from macaron.errors import ConfigError
from macaron.hcp import Loaded
from macaron.models import Dimensions, default_cache, silent
from macaron.models.files import explained, locked
from macaron.models.gguf import is_gguf, llama_dimensions
from macaron.models.lora import FORMAT, write_gguf
from macaron.registry.cards import Registry
from macaron.registry.revision import adapter_revision

_OTHER_BASE = "name a GGUF file of the adapter as source, made with llama.cpp's convert_lora_to_gguf.py"


def engine_adapters(
    loaded: Loaded, registry: Registry, weights: Path, *, cache_dir: Path | None = None
) -> tuple[Path, ...]:
    """A file for each adapter that a contract names with `source`, in the contract's order.

    The contract's registry has hashed the adapters already. Its revision decides what is loaded: where a converted file
    is in the cache, the adapter is not read again.

    Raises:
        ConfigError: as from `gguf_adapter`; it names the specialist.
    """
    return tuple(
        _named(entry.label, loaded.file(entry.source), weights, specialist.revision, cache_dir)
        for entry, specialist in zip(loaded.contract.mol.adapters, registry.specialists, strict=True)
        if entry.source
    )


def gguf_adapter(source: Path, weights: Path, *, revision: str = "", cache_dir: Path | None = None) -> Path:
    """An adapter as LoRA GGUF. A file is given back as it is; a folder in PEFT's format is converted once and kept.

    Several processes may call this at once: one converts, the others wait.

    Args:
        source: a GGUF file, or a folder with `adapter_config.json` and `adapter_model.safetensors`.
        weights: the GGUF file of the base that the adapter was trained on; its dimensions are checked and decide the
            order of rows.
        revision: `adapter_revision` of `source`, where it is known.
        cache_dir: where model files are kept, `default_cache()` if None.

    Raises:
        ConfigError: it is neither, it does not fit the base, it cannot be expressed as a LoRA of the engine, or the
            cache cannot be written; the file, the field and the remedy are named.
    """
    if source.is_file() and is_gguf(source):
        return source
    if not source.is_dir():
        wanted = "a GGUF file nor a folder with adapter_config.json and adapter_model.safetensors"
        raise ConfigError(f"adapter {source} is neither {wanted}")
    base = llama_dimensions(weights, "adapters are converted", _OTHER_BASE)
    folder = (cache_dir or default_cache()) / "adapters"
    revision = revision or adapter_revision(source)
    target = folder / _file_name(revision, base)
    if target.is_file():
        return target
    with explained(target):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(target.with_suffix(".lock"), silent):
            if not target.is_file():
                _convert(source, target, base, revision)
    return target


def _named(label: str, source: Path, weights: Path, revision: str, cache_dir: Path | None) -> Path:
    try:
        return gguf_adapter(source, weights, revision=revision, cache_dir=cache_dir)
    except ConfigError as error:
        place = f"mol.adapters.{label}.source"
        raise ConfigError(f"{place}: {error.message}", param=place, code=error.code) from None


def _convert(source: Path, target: Path, base: Dimensions, revision: str) -> None:
    part = target.with_suffix(".part")
    try:
        write_gguf(source, part, base)
        if adapter_revision(source) != revision:
            raise ConfigError(f"adapter {source} changed while it was converted; start again when it is complete")
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _file_name(revision: str, base: Dimensions) -> str:
    """Of the same adapter for a base of other dimensions, or written by another version of us, the name differs."""
    made_for = hashlib.sha256(repr((FORMAT, base)).encode()).hexdigest()[:8]
    return f"{revision.removeprefix('sha256:')}-{made_for}.gguf"
