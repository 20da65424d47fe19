"""The fingerprint of a base: what an adapter must fit, and a hash of sampled bytes that tells two bases apart.

The sample `sample1` is fixed, so that it is the same on every machine, and bounded, so that it costs the same on 135
million weights and on 744 billion:

- Tensors are taken by name in the order of their UTF-8 bytes; of n > 64 tensors, those at i * (n - 1) // 63, i = 0…63.
- Of a tensor of at most 3,072 bytes all of them; of a larger one 1,024 bytes each at its start, at (size - 1024) // 2,
  and at its end: at most 192 KiB in all.
- SHA-256 over `macaron-base-sample1\\n`, then one line `name\\0dtype\\0shape\\0size\\n` for *every* tensor in order,
  the shape with its slowest axis first and `x` between, then the sampled bytes in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from macaron.models.peft import AdapterConfig
from macaron.registry.check.report import Finding, error, note, shown, warning

SAMPLED_TENSORS = 64
WINDOW = 1024
SAMPLE = "sample1"


class Extent(Struct, frozen=True):
    """Where a tensor of a base lies: `start` counts from the file's beginning, `size` is in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path
    start: int
    size: int


class BaseFingerprint(Struct, frozen=True):
    """What is known of a base.

    Attributes:
        name: by which people call it, such as `SmolLM2-135M-Instruct`.
        architecture: such as `llama`, in lower case.
        layers, hidden, feed_forward, heads, kv_heads: 0 where the files do not say.
        vocabulary: number of tokens.
        tokenizer: SHA-256 in hex over the tokens' texts (GGUF) or over `tokenizer.json`; empty where there is none.
        modules: outputs and inputs of each linear layer an adapter may name, by the original's module names, such as
            `model.layers.0.self_attn.q_proj`; empty where the format's names are not known here.
        sample: `sample1:<64 hex>` over sampled bytes, as this module says.
        full: `sha256:<hex>` of the weights, as the contract has it; empty where it is not known.
    """

    name: str
    architecture: str
    layers: int
    hidden: int
    feed_forward: int
    heads: int
    kv_heads: int
    vocabulary: int
    tokenizer: str
    modules: Mapping[str, tuple[int, int]]
    sample: str
    full: str = ""

    @property
    def identity(self) -> str:
        """The most that is known: `full`, else `sample`."""
        return self.full or self.sample


def compatible(config: AdapterConfig, base: BaseFingerprint) -> list[Finding]:
    """What an adapter's options alone say against a base: modules and layers it does not have, another name."""
    findings: list[Finding] = []
    known = {name for module in base.modules for name in target_names(module)}
    for target in config.targets or ():
        if known and target not in known:
            reason = (
                f"The base has no linear layer of this name that can be adapted; it is of the type {base.architecture}."
            )
            remedy = "Train the adapter on this base, with target modules that it has."
            findings.append(error("unknown_target", "adapter_config.json: target_modules", target, reason, remedy))
    beyond = [number for number in config.layers or () if not 0 <= number < base.layers]
    if beyond and base.layers:
        reason = f"The base has the layers 0 to {base.layers - 1}."
        remedy = "Train the adapter on this base."
        findings.append(error("unknown_layer", "adapter_config.json: layers_to_transform", beyond, reason, remedy))
    trained = config.base.replace("\\", "/").rstrip("/").rpartition("/")[2]
    if not trained:
        reason = "It does not say which base it was trained on."
        remedy = "Write the base's name there."
        findings.append(warning("no_base_name", "adapter_config.json: base_model_name_or_path", "", reason, remedy))
    elif base.name and trained.lower() != base.name.rpartition("/")[2].lower():
        reason = f"It names another base than {shown(base.name)}; the name alone proves nothing."
        remedy = "Make sure that it was trained on this base."
        findings.append(
            warning("base_name", "adapter_config.json: base_model_name_or_path", config.base, reason, remedy)
        )
    return findings


def trained_on(fingerprint: str, base: BaseFingerprint) -> list[Finding]:
    """What the fingerprint in `run.json`, empty where there is none, says about a base."""
    if not fingerprint or not base.full:
        reason = (
            "Nothing proves that it was trained on exactly these bytes of the base; shapes and names were compared."
        )
        return [note("base_unproven", "run.json: base_fingerprint", fingerprint, reason)]
    if fingerprint != base.full:
        reason = f"It was trained on another base than {base.full}."
        remedy = "Train it on this base, or serve it with a profile of its own base."
        return [error("other_base", "run.json: base_fingerprint", fingerprint, reason, remedy)]
    return []


def target_names(module: str) -> Iterator[str]:
    """Every name in `target_modules` that means this module, as PEFT reads it: its own, and each end after a dot."""
    while module:
        yield module
        module = module.partition(".")[2]


def sample_digest(extents: Iterable[Extent]) -> str:
    """`sample1:<64 hex>` of a base's tensors.

    Raises:
        OSError: a file cannot be read.
        EOFError: a file is shorter than its header says.
    """
    ordered = sorted(extents, key=lambda extent: extent.name.encode("utf-8", "surrogateescape"))
    digest = hashlib.sha256(f"macaron-base-{SAMPLE}\n".encode())
    for extent in ordered:
        shape = "x".join(map(str, extent.shape))
        line = f"{extent.name}\0{extent.dtype}\0{shape}\0{extent.size}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    for extent in _chosen(ordered):
        with extent.path.open("rb", buffering=0) as file:
            for start, count in windows(extent.size):
                digest.update(_at(file, extent.start + start, count))
    return f"{SAMPLE}:{digest.hexdigest()}"


def windows(size: int) -> list[tuple[int, int]]:
    """Start and length of what is read of a tensor of `size` bytes."""
    if size <= 3 * WINDOW:
        return [(0, size)]
    return [(0, WINDOW), ((size - WINDOW) // 2, WINDOW), (size - WINDOW, WINDOW)]


def _chosen(ordered: Sequence[Extent]) -> Sequence[Extent]:
    last = SAMPLED_TENSORS - 1
    if len(ordered) <= SAMPLED_TENSORS:
        return ordered
    return [ordered[number * (len(ordered) - 1) // last] for number in range(SAMPLED_TENSORS)]


def _at(file: IO[bytes], start: int, count: int) -> bytes:
    file.seek(start)
    raw = file.read(count)
    if len(raw) != count:
        raise EOFError("a base's file is shorter than its header says")
    return raw
