"""A census of what lies on the disk: an adapter, a run, a base, a model layout, or a GGUF file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from macaron.errors import ConfigError
from macaron.models.census.cache import KvCache, cache_of_config, cache_of_gguf
from macaron.models.census.count import Census, Part, Weights, tally
from macaron.models.gguf import is_gguf
from macaron.models.gguf_table import GgufTable, read_whole_table
from macaron.models.peft import CONFIG_FILE, MAX_CONFIG_BYTES, AdapterConfig, config_of, weights_of
from macaron.models.safetensors import open_tensors
from macaron.models.shards import INDEX_FILE, SINGLE_FILE, open_model
from macaron.models.source import printable, read_object, root_of

MODEL_CONFIG = "config.json"
MAX_ADAPTERS = 1024

_LABEL = re.compile(r"[A-Z][A-Za-z0-9_-]{0,31}")
_PACKED = frozenset({"U8", "I8", "I32", "U32"})


def inspect_path(path: Path) -> Census:
    """What a file or folder holds.

    Args:
        path: a GGUF file, or a folder: an adapter in PEFT's format, a training run with its `adapter`, a base with its
            `config.json`, or a model layout with `base` and `loras`.

    Raises:
        ConfigError: it is none of these, or a file of it cannot be used.
    """
    try:
        real = path.expanduser().resolve(strict=True)
        return _census(path, real, root_of(real))
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path} cannot be read: {reason}; name another, or correct its rights") from None


def _census(path: Path, real: Path, root: Path) -> Census:
    subject = str(path)
    if real.is_file():
        return _file(subject, real)
    if (real / CONFIG_FILE).exists():
        return _adapter(subject, real, root)
    if (real / "adapter").is_dir():
        return _adapter(subject, real / "adapter", root)
    if (real / "base").is_dir():
        return _layout(subject, real, root)
    if any((real / name).exists() for name in (MODEL_CONFIG, INDEX_FILE, SINGLE_FILE)):
        base, cache, notes = base_part(real, root)
        return Census(subject, base, (), cache, notes=notes)
    raise _neither(path)


def base_part(source: Path, root: Path) -> tuple[Part, KvCache, tuple[str, ...]]:
    """A base, its KV cache and notes: a GGUF file, or a folder with `config.json` and safetensors.

    Raises:
        ConfigError: a file of it cannot be used, or a link leads out of `root`.
    """
    if source.is_file():
        table = read_whole_table(source)
        if table.pairs.get("general.type", "model") != "model":
            raise ConfigError(f"{source} is not a model but of type {printable(str(table.pairs['general.type']))!r}")
        name = printable(table.text("general.name")) or source.stem
        return _part("base", name, tally(table.tensors.values()), source), cache_of_gguf(table.pairs), ()
    weights = _model(source, root)
    if (source / MODEL_CONFIG).exists():
        config = read_object(source / MODEL_CONFIG, root)
        cache = cache_of_config(config)
        name = _model_name(config) or source.name
    else:
        cache = KvCache(unknown=f"{source} has no {MODEL_CONFIG}; put the base's there")
        name = source.name
    return _part("base", name, weights, source), cache, (*weights.notes, *_packed(weights))


def adapter_part(label: str, name: str, source: Path, root: Path) -> Part:
    """An adapter: a LoRA as GGUF, or a folder in PEFT's format.

    Raises:
        ConfigError: a file of it cannot be used, or a link leads out of `root`.
    """
    if source.is_file():
        table = read_whole_table(source)
        if table.text("general.type") != "adapter":
            raise ConfigError(f"{source} is a model, not an adapter; name it as the base", param=label)
        return _part(label, name, tally(table.tensors.values()), source, _rank(table))
    weights = tally(open_tensors(weights_of(source), root).tensors.values())
    return _part(label, name, weights, source, _config(source, root).rank or None)


def _file(subject: str, path: Path) -> Census:
    if not is_gguf(path):
        raise _neither(path)
    if read_whole_table(path).text("general.type") == "adapter":
        part = adapter_part(_label(path.stem), path.stem, path, path.parent)
        return _alone(subject, part, "a LoRA in GGUF does not hold its base; inspect the profile that uses it")
    base, cache, notes = base_part(path, path.parent)
    return Census(subject, base, (), cache, notes=notes)


def _adapter(subject: str, folder: Path, root: Path) -> Census:
    part = adapter_part(_label(folder.name), folder.name, folder, root)
    named = printable(_config(folder, root).base)
    base = f"its base, {named}," if named else "its base"
    return _alone(subject, part, f"{base} is not in this folder; inspect a model layout or a profile for both")


def _alone(subject: str, part: Part, reason: str) -> Census:
    return Census(subject, Part("base", "", unknown=reason), (part,), KvCache(unknown=reason))


def _layout(subject: str, folder: Path, root: Path) -> Census:
    base, cache, notes = base_part(folder / "base", root)
    loras = folder / "loras"
    children = loras.iterdir() if loras.is_dir() else ()
    folders = sorted(path for path in children if path.is_dir() and not path.name.startswith("."))
    if len(folders) > MAX_ADAPTERS:
        raise ConfigError(f"{loras} holds {len(folders)} folders, more than {MAX_ADAPTERS} adapters")
    wrong = [printable(path.name) for path in folders if not _LABEL.fullmatch(path.name)]
    if wrong:
        wanted = "a capital letter and up to 31 letters, digits, _ or -"
        raise ConfigError(f"{loras} holds {wrong[0]!r}, which is no label: {wanted}; rename or remove it")
    adapters = tuple(adapter_part(path.name, path.name, path, root) for path in folders)
    return Census(subject, base, adapters, cache, notes=notes)


def _part(label: str, name: str, weights: Weights, source: Path, rank: int | None = None) -> Part:
    return Part(
        label=label,
        name=name,
        values=weights.values,
        bytes=weights.bytes,
        dtypes=weights.dtypes,
        rank=rank,
        source=f"headers of {source}",
    )


def _model(folder: Path, root: Path) -> Weights:
    """With an index, what it names is counted."""
    shards = open_model(folder, root)
    weights = tally(file.tensors[name] for name, file in shards.places.items() if name not in shards.unnamed)
    notes = []
    if shards.stated_bytes not in (None, weights.bytes):
        stated = f"{INDEX_FILE} says total_size {shards.stated_bytes}, the shards' headers say {weights.bytes}"
        notes.append(f"{stated}; the headers are counted.")
    if shards.unnamed:
        number = len(shards.unnamed)
        notes.append(f"The shards hold {number} more tensors that {INDEX_FILE} does not name; they are not counted.")
    return replace(weights, notes=tuple(notes))


def _rank(table: GgufTable) -> int | None:
    """The one rank of a LoRA, None where there are several."""
    matrices = [tensor for tensor in table.tensors.values() if tensor.name.endswith(".lora_a")]
    ranks = {tensor.dimensions[1] for tensor in matrices if len(tensor.dimensions) > 1}
    return ranks.pop() if len(ranks) == 1 else None


def _config(folder: Path, root: Path) -> AdapterConfig:
    return config_of(read_object(folder / CONFIG_FILE, root, MAX_CONFIG_BYTES))


def _packed(weights: Weights) -> tuple[str, ...]:
    packed = _PACKED & weights.dtypes.keys()
    if not packed:
        return ()
    kinds = ", ".join(sorted(packed))
    return (f"Values are counted as stored: one of type {kinds} may hold several quantised parameters.",)


def _model_name(config: dict[str, Any]) -> str:
    named = config.get("_name_or_path") or config.get("model_type")
    return printable(named) if isinstance(named, str) else ""


def _label(name: str) -> str:
    return name if _LABEL.fullmatch(name) else "adapter"


def _neither(path: Path) -> ConfigError:
    wanted = (
        "a GGUF file, an adapter's folder (adapter_config.json), a finished run (adapter/), a base's folder "
        "(config.json and safetensors), a model layout (base/ and loras/) or a profile"
    )
    return ConfigError(f"{path} is none of what can be inspected: {wanted}", param="subject")
