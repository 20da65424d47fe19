"""The safetensors of a model in a folder: one file, or shards by an index that may name files of that folder only."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from macaron.errors import ConfigError
from macaron.models.safetensors import TensorFile, UnusableTensors, is_size, open_tensors
from macaron.models.source import printable, read_object

INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"
MAX_INDEX_BYTES = 67_108_864
MAX_SHARDS = 8192
MAX_HEADER_BYTES = 268_435_456
"""Of all shards together."""

_SHARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.safetensors")


class Shards(NamedTuple):
    """The files of a model.

    Attributes:
        files: by name, sorted; one without an index.
        unnamed: tensors in them that the index does not name.
        stated_bytes: of all tensors, as the index has it; None where it does not say.
    """

    files: Mapping[str, TensorFile]
    unnamed: frozenset[str] = frozenset()
    stated_bytes: int | None = None

    @property
    def places(self) -> dict[str, TensorFile]:
        """The file that holds each tensor."""
        return {name: file for file in self.files.values() for name in file.tensors}


def open_model(folder: Path, root: Path) -> Shards:
    """The headers of a model in a folder, in one file or in shards by its index.

    Raises:
        ConfigError: there are none, a shard is missing, or index and shards disagree.
    """
    if (folder / INDEX_FILE).exists():
        return _indexed(folder, root)
    if (folder / SINGLE_FILE).exists():
        return Shards({SINGLE_FILE: open_tensors(folder / SINGLE_FILE, root)})
    found = next(iter(sorted(folder.glob("*.bin"))), None)
    hint = f"; {printable(found.name)} may be a pickle and is never opened, save it as safetensors" if found else ""
    raise ConfigError(f"{folder} has neither {SINGLE_FILE} nor {INDEX_FILE}{hint}", param="base", code="no_weights")


def _indexed(folder: Path, root: Path) -> Shards:
    index = read_object(folder / INDEX_FILE, root, MAX_INDEX_BYTES)
    wanted = _places(folder, index.get("weight_map"))
    files: dict[str, TensorFile] = {}
    there: set[str] = set()
    left = MAX_HEADER_BYTES
    for name, tensors in sorted(wanted.items()):
        held = files[name] = open_tensors(folder / name, root)
        if lost := tensors - held.tensors.keys():
            reason = f"{len(lost)} tensors that {INDEX_FILE} places in it are not, such as {printable(min(lost))}"
            raise UnusableTensors(held.path, reason)
        if twice := there & held.tensors.keys():
            reason = f"another shard holds {printable(min(twice))} too"
            raise UnusableTensors(held.path, reason, code="name_collision", tensor=min(twice))
        there |= held.tensors.keys()
        left -= len(held.head)
        if left < 0:
            raise UnusableTensors(held.path, f"the shards' headers have more than {MAX_HEADER_BYTES} bytes")
    metadata = index.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    return Shards(files, frozenset(there - index["weight_map"].keys()), total if is_size(total) else None)


def _places(folder: Path, weight_map: Any) -> Mapping[str, set[str]]:
    """The tensors that an index places in each shard."""
    index = folder / INDEX_FILE
    if not isinstance(weight_map, dict) or not weight_map:
        raise ConfigError(f"{index} names no tensor; fetch it again", param="base", code="bad_index")
    shards: defaultdict[str, set[str]] = defaultdict(set)
    for tensor, name in weight_map.items():
        if not isinstance(name, str) or not _SHARD.fullmatch(name):
            reason = f"names {printable(str(name))!r}, which is not the name of a .safetensors file in the same folder"
            raise ConfigError(f"{index} {reason}", param="base", code="bad_index")
        shards[name].add(tensor)
    if len(shards) > MAX_SHARDS:
        raise ConfigError(f"{index} names {len(shards)} shards, more than {MAX_SHARDS}", param="base", code="bad_index")
    if missing := sorted(name for name in shards if not (folder / name).exists()):
        some = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        reason = f"{folder} lacks {len(missing)} of {len(shards)} shards: {some}; fetch the rest"
        raise ConfigError(reason, param="base", code="missing_shards")
    return shards
