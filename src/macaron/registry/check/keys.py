"""Every tensor matched: its name, its partner, its shape and rank, against the options and the base."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from macaron.models.peft import AdapterConfig
from macaron.models.safetensors import Tensor
from macaron.registry.check.base import BaseFingerprint, target_names
from macaron.registry.check.report import Fault, Finding, error, grouped

PREFIX = "base_model.model."
MAX_KEY = 512
OTHER_SIDE = {"A": "B", "B": "A"}

_NO_PREFIX = Fault(
    "unknown_key",
    f"PEFT's keys begin with {PREFIX}; engines ignore tensors of other names, and answer like the base.",
    "Save the adapter with save_pretrained of PEFT.",
)
_NAMED = Fault(
    "unknown_key",
    "The key carries the adapter's name inside PEFT; engines do not know it.",
    "Save the adapter with save_pretrained of PEFT, not with the model's state dict.",
)
_EMBEDDING = Fault(
    "unknown_key",
    "It adapts the embeddings, which not every engine can.",
    "Train without embeddings among the target modules.",
)
_OTHER = Fault(
    "unknown_key",
    "It is no LoRA matrix of a linear layer; engines refuse or ignore it.",
    "Train a plain LoRA, without DoRA, biases, and modules that are saved whole.",
)
_NO_MODULE = Fault(
    "unknown_module",
    "The base has no such linear layer; the adapter was trained on another one.",
    "Train it on this base, or serve it with a profile of its own base.",
)
_NOT_A_TARGET = Fault(
    "outside_targets",
    "target_modules does not name it, so some engines apply it and others do not.",
    "Save the adapter again with PEFT, or complete target_modules.",
)

_EMPTY_TARGET = Fault(
    "empty_target", "target_modules names it, but no tensor adapts it.", "See whether the file is whole.", "warning"
)
_MISSING_LAYER = Fault(
    "missing_layers", "target_modules means it, but no tensor adapts it.", "See whether the file is whole.", "warning"
)


class Place(NamedTuple):
    """Which matrix of which module a tensor is: `side` is A or B."""

    module: str
    side: str


def place_of(key: str) -> Place | Fault:
    """Read a tensor's name as PEFT writes it: `base_model.model.<module>.lora_<A|B>.weight`."""
    if len(key) > MAX_KEY:
        return _OTHER
    module, _, rest = key.partition(".lora_")
    if rest.startswith("embedding_"):
        return _EMBEDDING
    if rest not in ("A.weight", "B.weight"):
        return _NAMED if rest.startswith(("A.", "B.")) and rest.endswith(".weight") else _OTHER
    if not module.startswith(PREFIX) or module.startswith(PREFIX * 2):
        return _NO_PREFIX
    return Place(module.removeprefix(PREFIX), rest[0])


def match_keys(
    tensors: Collection[Tensor], config: AdapterConfig | None, base: BaseFingerprint | None, file: str
) -> Iterator[Finding]:
    """Everything that is wrong with names and shapes; `config` and `base` are None where they could not be read."""
    if not tensors:
        yield error("no_tensors", file, "", "It holds no tensors.", "Train the adapter and save it again.")
        return
    placed, wrong = _places(tensors)
    yield from grouped(file, wrong)
    yield from grouped(file, _unpaired(placed))
    yield from grouped(file, _shapes(placed, config, base))
    if base is not None and base.modules:
        yield from grouped(file, ((_key(at), _NO_MODULE) for at in placed if at.module not in base.modules))
    if placed and config is not None and config.targets is not None:
        yield from _targets(placed, config, config.targets, base, file)


def targets_of(tensors: Collection[Tensor]) -> tuple[str, ...]:
    """The last names of the adapted modules, sorted."""
    placed, _ = _places(tensors)
    return tuple(sorted({at.module.rpartition(".")[2] for at in placed}))


def _places(tensors: Collection[Tensor]) -> tuple[dict[Place, Tensor], list[tuple[str, Fault]]]:
    placed: dict[Place, Tensor] = {}
    wrong: list[tuple[str, Fault]] = []
    for tensor in tensors:
        found = place_of(tensor.name)
        if isinstance(found, Place):
            placed[found] = tensor
        else:
            wrong.append((tensor.name, found))
    return placed, wrong


def _unpaired(placed: Mapping[Place, Tensor]) -> Iterator[tuple[str, Fault]]:
    for at, tensor in placed.items():
        if Place(at.module, OTHER_SIDE[at.side]) not in placed:
            other = f"lora_{OTHER_SIDE[at.side]}"
            yield tensor.name, Fault("unpaired", f"Its {other} is not there.", "Save the adapter again, whole.")


def _shapes(
    placed: Mapping[Place, Tensor], config: AdapterConfig | None, base: BaseFingerprint | None
) -> Iterator[tuple[str, Fault]]:
    for at, tensor in placed.items():
        if len(tensor.shape) != 2 or 0 in tensor.shape:
            yield tensor.name, Fault("shape", "It is no matrix.", "Save the adapter again with PEFT.")
            continue
        rank, width = tensor.shape if at.side == "A" else reversed(tensor.shape)
        wanted_rank = config.rank if config is not None and config.rank else _rank_of_partner(placed, at)
        if wanted_rank is not None and rank != wanted_rank:
            reason = f"It has the rank {rank}, the rank of the adapter is {wanted_rank}."
            yield (
                tensor.name,
                Fault("rank_mismatch", reason, "Save weights and configuration of one training together."),
            )
        size = base.modules.get(at.module) if base is not None else None
        if size is not None and width != size[at.side == "A"]:
            what = "inputs" if at.side == "A" else "outputs"
            reason = f"It has {width} {what}, this layer of the base has {size[at.side == 'A']}."
            yield tensor.name, Fault("shape", reason, "It was trained on another base; train it on this one.")


def _rank_of_partner(placed: Mapping[Place, Tensor], at: Place) -> int | None:
    partner = placed.get(Place(at.module, OTHER_SIDE[at.side]))
    if partner is None or len(partner.shape) != 2:
        return None
    return partner.shape[0 if at.side == "B" else 1]


def _targets(
    placed: Mapping[Place, Tensor], config: AdapterConfig, targets: tuple[str, ...], base: BaseFingerprint | None,
    file: str,
) -> Iterator[Finding]:  # fmt: skip
    modules = {at.module for at in placed}
    wanted = set(targets)
    meant = {module: wanted.intersection(target_names(module)) for module in modules}
    yield from grouped(file, ((module, _NOT_A_TARGET) for module, named in meant.items() if not named))
    present = set().union(*meant.values())
    yield from grouped(file, ((target, _EMPTY_TARGET) for target in sorted(wanted - present)))
    if base is None or config.layers is not None:
        return
    lacking = [
        module for module in base.modules if module not in modules and not present.isdisjoint(target_names(module))
    ]
    yield from grouped(file, ((module, _MISSING_LAYER) for module in lacking))


def _key(at: Place) -> str:
    return f"{PREFIX}{at.module}.lora_{at.side}.weight"
