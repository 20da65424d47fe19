"""The base of a profile as a fingerprint, and what its engine accepts: what an adapter for it is checked against."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from macaron.errors import ConfigError
from macaron.hcp import Loaded
from macaron.models import Progress, fetch_weights, silent
from macaron.models.gguf_table import GgufTable, GgufTensor, read_table
from macaron.registry.check import BaseFingerprint, Extent, Limits, safetensors_fingerprint, sample_digest

VLLM_RANK = 16
EMBEDDED_BYTES = 4_294_967_296
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
    table = read_table(path)
    try:
        sample = sample_digest(_extents(table))
    except (OSError, EOFError) as problem:
        raise ConfigError(f"{path} cannot be read as a base: {problem}", param="base") from None
    pairs = table.pairs
    architecture = table.text("general.architecture")

    def size(key: str, default: int = 0) -> int:
        value = pairs.get(f"{architecture}.{key}")
        return value if isinstance(value, int) else default

    heads = size("attention.head_count")
    tokens = pairs.get("tokenizer.ggml.tokens", [])
    return BaseFingerprint(
        name=name or path.stem, architecture=architecture.lower(), layers=size("block_count"),
        hidden=size("embedding_length"), feed_forward=size("feed_forward_length"), heads=heads,
        kv_heads=size("attention.head_count_kv", heads), vocabulary=len(tokens), tokenizer=_tokens_digest(tokens),
        modules=dict(_modules(table.tensors.values())), sample=sample, full=full,
    )  # fmt: skip


def _extents(table: GgufTable) -> Iterator[Extent]:
    """Where the tensors lie; each reaches to the next one, padding included, and the last to the file's end."""
    ordered = sorted(table.tensors.values(), key=lambda tensor: tensor.start)
    ends = [*(tensor.start for tensor in ordered[1:]), table.size]
    for tensor, end in zip(ordered, ends, strict=True):
        size = max(end - tensor.start, 0)
        yield Extent(tensor.name, str(int(tensor.kind)), tensor.dimensions[::-1], table.path, tensor.start, size)


def _modules(tensors: Iterable[GgufTensor]) -> Iterator[tuple[str, tuple[int, int]]]:
    for tensor in tensors:
        match tensor.name.split("."):
            case ["blk", layer, short, "weight"] if short in _NAMES and len(tensor.dimensions) == 2:
                inputs, outputs = tensor.dimensions
                yield f"model.layers.{layer}.{_NAMES[short]}", (outputs, inputs)


def _tokens_digest(tokens: Any) -> str:
    if not isinstance(tokens, list) or not tokens:
        return ""
    joined = "\0".join(map(str, tokens))
    return hashlib.sha256(joined.encode("utf-8", "surrogateescape")).hexdigest()
