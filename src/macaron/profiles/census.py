"""The census of a profile: from the headers of files that are here, else from what is published, else unknown."""

from __future__ import annotations

from pathlib import Path

from macaron.hcp import AdapterEntry, Loaded, is_adapter
from macaron.models import cached_path, default_cache, is_cached
from macaron.models.census import Census, Count, KvCache, Part, Release, adapter_part, base_part
from macaron.models.shards import INDEX_FILE, SINGLE_FILE
from macaron.models.source import root_of
from macaron.profiles.published import Published, read_published

_WIDTHS = {"F32": 4, "F16": 2, "BF16": 2}


def inspect_profile(name: str, loaded: Loaded, *, cache_dir: Path | None = None) -> Census:
    """What a service of this profile holds. Nothing is fetched, and no tensor is read.

    Published numbers hold for the base they name, and for adapters of the rank they name.

    Args:
        name: how the profile was named; it is the census's subject.
        cache_dir: where model files are kept, `default_cache()` if None.

    Raises:
        ConfigError: a file of its weights or adapters, or its `published.toml`, cannot be used.
    """
    contract = loaded.contract
    published = read_published(loaded.folder)
    if published is not None and published.base != contract.mol.base:
        published = None
    base, cache, notes = _base(name, loaded, published, cache_dir or default_cache())
    adapters = tuple(_specialist(loaded, entry, published) for entry in contract.mol.adapters)
    return Census(name, base, adapters, cache, _release(published), notes)


def _base(name: str, loaded: Loaded, published: Published | None, cache: Path) -> tuple[Part, KvCache, tuple[str, ...]]:
    engine, base = loaded.contract.engine, loaded.contract.mol.base
    path = _weights(loaded, cache)
    if path is not None:
        part, kv, notes = base_part(path, path.parent)
        return _named(part, base), kv, notes
    if engine.weights is not None:
        size = f" of {engine.weights.size} bytes" if engine.weights.size else ""
        reason = f"the weights file{size} is not here; macaron models pull {name} fetches it"
        return Part("base", base, unknown=reason), KvCache(unknown=reason), ()
    if any((loaded.folder / name).exists() for name in (INDEX_FILE, SINGLE_FILE)):
        part, kv, notes = base_part(loaded.folder, root_of(loaded.folder))
        return _named(part, base), kv, notes
    reason = f"the weights are with {engine.kind} at {engine.address}; inspect the folder it loads them from"
    if published is not None:
        part = Part("base", base, published.base_values, rounded=True, source=published.source, unknown=reason)
        return part, KvCache(unknown=reason), ()
    return Part("base", base, unknown=reason), KvCache(unknown=reason), ()


def _weights(loaded: Loaded, cache: Path) -> Path | None:
    weights = loaded.contract.engine.weights
    if weights is None:
        return None
    if weights.path:
        path = loaded.folder / weights.path
        return path if path.is_file() else None
    return cached_path(weights, cache) if is_cached(weights, cache) else None


def _named(part: Part, name: str) -> Part:
    return Part("base", name, part.values, part.bytes, part.dtypes, source=part.source)


def _specialist(loaded: Loaded, entry: AdapterEntry, published: Published | None) -> Part:
    if entry.source:
        source = loaded.file(entry.source)
        return adapter_part(entry.label, entry.name, source, root_of(source if source.is_dir() else source.parent))
    if entry.model:
        reason = f"it is served by another model, {entry.model}, of which nothing is known here"
        return Part(entry.label, entry.name, unknown=reason)
    if not is_adapter(entry):
        return Part(entry.label, entry.name, 0, 0, source="prompt only", prompt_only=True)
    if published is None or entry.rank != published.adapter_rank:
        reason = f"the adapter is with {loaded.contract.engine.kind}; inspect its folder"
        return Part(entry.label, entry.name, rank=entry.rank, unknown=reason)
    return _published_part(entry, published)


def _published_part(entry: AdapterEntry, published: Published) -> Part:
    dtype, values = published.adapter_dtypes.get(entry.label), published.adapter_values
    size = values * _WIDTHS[dtype] if dtype else None
    return Part(
        label=entry.label,
        name=entry.name,
        values=values,
        bytes=size,
        dtypes={dtype: Count(values, size)} if dtype and size else {},
        rank=entry.rank,
        source=published.source,
        unknown="" if dtype else "the type of its values is not published; inspect its folder",
    )


def _release(published: Published | None) -> Release | None:
    if published is None or published.release is None:
        return None
    return Release(published.release.label, published.release.counts, published.source)
