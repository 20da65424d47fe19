"""The base of a profile as a fingerprint, and what its engine accepts: what an adapter for it is checked against."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from macaron.errors import ConfigError
from macaron.hcp import Loaded
from macaron.models import Progress, fetch_weights, silent
from macaron.models.gguf import GgufReader, MalformedError, walk_gguf
from macaron.registry.check import BaseFingerprint, Extent, Limits, safetensors_fingerprint, sample_digest

VLLM_RANK = 16
EMBEDDED_BYTES = 4_294_967_296
MAX_TENSORS = 1_048_576
MAX_DIMENSIONS = 4
_ALIGNMENT = 32
_NAMES: Mapping[str, str] = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


def profile_base(loaded: Loaded, *, progress: Progress = silent) -> BaseFingerprint:
    """The base that a profile's adapters must fit; only name and hash where its files are not on this machine.

    The embedded engine's weights are fetched if they are not here yet. A running engine's base is known where
    `engine.base_model` is the folder it was started from.

    Raises:
        ConfigError: a file cannot be read, or is not what it says.
        Unavailable: the weights cannot be fetched.
    """
    mol, engine = loaded.contract.mol, loaded.contract.engine
    if engine.weights is not None:
        path = fetch_weights(engine.weights, folder=loaded.folder, progress=progress)
        known = f"sha256:{engine.weights.sha256}" if engine.weights.sha256 else ""
        return gguf_fingerprint(path, name=mol.base, full=mol.base_fingerprint or known)
    folder = Path(engine.base_model)
    if engine.base_model and folder.is_absolute() and folder.is_dir():
        return safetensors_fingerprint(folder, name=mol.base, full=mol.base_fingerprint)
    return BaseFingerprint(mol.base, "", 0, 0, 0, 0, 0, 0, "", {}, "", mol.base_fingerprint)


def profile_limits(loaded: Loaded) -> Limits:
    """What the profile's engine accepts, as far as the profile says."""
    match loaded.contract.engine.kind:
        case "llamacpp":
            return Limits(max_bytes=EMBEDDED_BYTES)
        case "vllm":
            return Limits(usual_rank=VLLM_RANK)
        case _:
            return Limits()


def gguf_fingerprint(path: Path, *, name: str = "", full: str = "") -> BaseFingerprint:
    """Fingerprint a base in one GGUF file. Metadata, the tensors' table and the sample are read.

    Args:
        name: of the base; the file's by default.
        full: the contract's `base_fingerprint`, if it is known.

    Raises:
        ConfigError: it cannot be read or is no whole GGUF file.
    """
    table = walk_gguf(path, _table)
    extents = list(_extents(path, table))
    try:
        sample = sample_digest(extents)
    except (OSError, EOFError) as problem:
        raise ConfigError(f"{path} cannot be read as a base: {problem}", param="base") from None
    pairs = table.pairs
    architecture = str(pairs.get("general.architecture", ""))

    def size(key: str, default: int = 0) -> int:
        value = pairs.get(f"{architecture}.{key}")
        return value if isinstance(value, int) else default

    heads = size("attention.head_count")
    tokens = pairs.get("tokenizer.ggml.tokens", [])
    return BaseFingerprint(
        name=name or path.stem, architecture=architecture.lower(), layers=size("block_count"),
        hidden=size("embedding_length"), feed_forward=size("feed_forward_length"), heads=heads,
        kv_heads=size("attention.head_count_kv", heads), vocabulary=len(tokens), tokenizer=_tokens_digest(tokens),
        modules=dict(_modules(table.tensors)), sample=sample, full=full,
    )  # fmt: skip


class _Tensor(NamedTuple):
    """An entry of the table: the shape with its slowest axis first, `offset` from the beginning of the tensors."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


class _Table(NamedTuple):
    pairs: Mapping[str, Any]
    tensors: tuple[_Tensor, ...]
    position: int
    size: int


def _table(reader: GgufReader) -> _Table:
    pairs = reader.pairs()
    if reader.tensor_count > MAX_TENSORS:
        raise MalformedError(f"{reader.tensor_count} tensors are more than can be")
    tensors = tuple(_tensor(reader) for _ in range(reader.tensor_count))
    return _Table(pairs, tensors, reader.position, reader.size)


def _tensor(reader: GgufReader) -> _Tensor:
    name, count = reader.string(), reader.number("<I")
    if not 1 <= count <= MAX_DIMENSIONS:
        raise MalformedError(f"a tensor has {count} dimensions")
    shape = tuple(reader.number("<Q") for _ in range(count))
    return _Tensor(name, shape[::-1], reader.number("<I"), reader.number("<Q"))


def _extents(path: Path, table: _Table) -> Iterator[Extent]:
    """Where the tensors lie; each reaches to the next one, padding included, and the last to the file's end."""
    alignment = table.pairs.get("general.alignment", _ALIGNMENT)
    step = alignment if isinstance(alignment, int) and alignment > 0 else _ALIGNMENT
    begin = (table.position + step - 1) // step * step
    ordered = sorted(table.tensors, key=lambda tensor: tensor.offset)
    ends = [*(tensor.offset for tensor in ordered[1:]), max(table.size - begin, 0)]
    for tensor, end in zip(ordered, ends, strict=False):
        size = max(end - tensor.offset, 0)
        yield Extent(tensor.name, str(tensor.kind), tensor.shape, path, begin + tensor.offset, size)


def _modules(tensors: Sequence[_Tensor]) -> Iterator[tuple[str, tuple[int, int]]]:
    for tensor in tensors:
        match tensor.name.split("."):
            case ["blk", layer, short, "weight"] if short in _NAMES and len(tensor.shape) == 2:
                yield f"model.layers.{layer}.{_NAMES[short]}", (tensor.shape[0], tensor.shape[1])


def _tokens_digest(tokens: Any) -> str:
    if not isinstance(tokens, list) or not tokens:
        return ""
    joined = "\0".join(map(str, tokens))
    return hashlib.sha256(joined.encode("utf-8", "surrogateescape")).hexdigest()
