"""The header of a safetensors file, and the shards of a model by their index. No tensor is read.

The layout is that of the safetensors format: 8 bytes of length, a JSON header of that length, then the tensors' bytes,
which the header's offsets cover without holes and without overlaps.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from macaron.errors import ConfigError
from macaron.models.census.count import Tensor, Weights, tally
from macaron.models.census.source import decoded, opened, printable

INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"
MAX_HEADER_BYTES = 100_000_000
"""The format's own limit."""
MAX_INDEX_BYTES = 100_000_000
MAX_SHARDS = 8192

_BITS: Mapping[str, int] = {
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
    "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}  # fmt: skip
_SHARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.safetensors")

_Size = Annotated[int, Meta(ge=0, le=2**62)]


class _Entry(Struct, frozen=True, forbid_unknown_fields=True):
    dtype: str
    shape: Annotated[tuple[_Size, ...], Meta(max_length=32)]
    data_offsets: tuple[_Size, _Size]


class _Index(Struct, frozen=True):
    weight_map: dict[str, str]
    metadata: dict[str, Any] = {}


def read_header(path: Path, root: Path) -> dict[str, Tensor]:
    """The tensors of one file by name.

    Args:
        root: the folder, free of links, that `path` must not lead out of.

    Raises:
        ConfigError: it cannot be read, or its header does not describe the bytes that follow it.
    """
    with opened(path, root) as (file, size):
        length = int.from_bytes(file.read(8), "little")
        if length > MAX_HEADER_BYTES:
            raise _broken(path, f"its header would have {length} bytes, the format allows {MAX_HEADER_BYTES}")
        if length > size - 8:
            raise _broken(path, f"it ends within its header: {size} bytes, the header alone has {length}")
        raw = file.read(length)
    if not raw.startswith(b"{"):
        raise _broken(path, "its header is no JSON object")
    table: dict[str, msgspec.Raw] = decoded(raw, dict[str, msgspec.Raw], path)
    table.pop("__metadata__", None)
    entries = {name: decoded(bytes(entry), _Entry, path) for name, entry in table.items()}
    _check_offsets(path, entries, size - 8 - length)
    return {name: _tensor(path, name, entry) for name, entry in entries.items()}


def read_model(folder: Path, root: Path) -> Weights:
    """The weights of a model's folder, in one file or in shards. With an index, what it names is counted.

    Raises:
        ConfigError: there are none, a shard is missing, or index and shards disagree.
    """
    if (folder / INDEX_FILE).exists():
        return _read_shards(folder, root)
    if (folder / SINGLE_FILE).exists():
        return tally(read_header(folder / SINGLE_FILE, root).values())
    found = next(iter(sorted(folder.glob("*.bin"))), None)
    hint = f"; {printable(found.name)} may be a pickle and is never opened, save it as safetensors" if found else ""
    raise ConfigError(f"{folder} has neither {INDEX_FILE} nor {SINGLE_FILE}{hint}", code="no_weights")


def _read_shards(folder: Path, root: Path) -> Weights:
    path = folder / INDEX_FILE
    with opened(path, root) as (file, size):
        if size > MAX_INDEX_BYTES:
            raise _broken(path, f"it has {size} bytes, more than {MAX_INDEX_BYTES}")
        index: _Index = decoded(file.read(size), _Index, path)
    if not index.weight_map:
        raise _broken(path, "its weight_map names no tensor")
    shards = _shards(folder, index)
    tensors: list[Tensor] = []
    unnamed = 0
    for name, wanted in sorted(shards.items()):
        held = read_header(folder / name, root)
        if lost := wanted - held.keys():
            first = printable(min(lost))
            raise _broken(folder / name, f"{len(lost)} tensors that {INDEX_FILE} places in it are not, such as {first}")
        tensors += [held[tensor] for tensor in wanted]
        unnamed += len(held) - len(wanted)
    return tally(tensors, tuple(_notes(index, tensors, unnamed)))


def _shards(folder: Path, index: _Index) -> dict[str, set[str]]:
    shards: defaultdict[str, set[str]] = defaultdict(set)
    for tensor, name in index.weight_map.items():
        shards[name].add(tensor)
    if len(shards) > MAX_SHARDS:
        raise _broken(folder / INDEX_FILE, f"it names {len(shards)} shards, more than {MAX_SHARDS}")
    for name in shards:
        if not _SHARD.fullmatch(name):
            reason = f"{printable(name)!r} is not the name of a .safetensors file in the same folder"
            raise _broken(folder / INDEX_FILE, reason)
    missing = sorted(name for name in shards if not (folder / name).exists())
    if missing:
        some = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        reason = f"{folder} lacks {len(missing)} of {len(shards)} shards: {some}; fetch the rest"
        raise ConfigError(reason, code="missing_shards")
    return shards


def _notes(index: _Index, tensors: list[Tensor], unnamed: int) -> list[str]:
    notes = []
    total, found = index.metadata.get("total_size"), sum(tensor.bytes for tensor in tensors)
    if isinstance(total, int) and total != found:
        notes.append(f"{INDEX_FILE} says total_size {total}, the shards' headers say {found}; the headers are counted.")
    if unnamed:
        notes.append(f"The shards hold {unnamed} more tensors that {INDEX_FILE} does not name; they are not counted.")
    return notes


def _check_offsets(path: Path, entries: Mapping[str, _Entry], size: int) -> None:
    position = 0
    for begin, end, name in sorted((*entry.data_offsets, name) for name, entry in entries.items()):
        if begin != position or end < begin:
            what = "overlaps what is before it" if begin < position else "leaves a hole or ends before it begins"
            raise _broken(path, f"{printable(name)} has the offsets {begin} to {end}: it {what}")
        position = end
    if position != size:
        raise _broken(path, f"its header describes {position} bytes of tensors, the file has {size}")


def _tensor(path: Path, name: str, entry: _Entry) -> Tensor:
    bits = _BITS.get(entry.dtype)
    if bits is None:
        raise _broken(path, f"{printable(name)} has the type {printable(entry.dtype)!r}, which is not known here")
    values, size = math.prod(entry.shape), entry.data_offsets[1] - entry.data_offsets[0]
    if values * bits != size * 8:
        reason = f"{printable(name)} has {values} values of {bits} bits in {size} bytes"
        raise _broken(path, reason)
    return Tensor(entry.dtype, values, size)


def _broken(path: Path, reason: str) -> ConfigError:
    return ConfigError(f"{path} is not usable: {reason}; fetch or save it again", code="broken_safetensors")
