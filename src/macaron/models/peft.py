"""An adapter in PEFT's format: its two files, and what of `adapter_config.json` decides the result or is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from msgspec import Struct

from macaron.errors import ConfigError
from macaron.models.safetensors import FLOATS, TensorFile, open_tensors
from macaron.models.source import printable, read_object, root_of

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
MAX_CONFIG_BYTES = 1_048_576
MAX_RANK = 4096
MAX_ALPHA = 1_000_000
MAX_TARGETS = 1024

# These say how it was trained, or restate what the tensors' names show; the weights alone decide what it does.
_WITHOUT_EFFECT = frozenset({
    "base_model_name_or_path", "corda_config", "ensure_weight_tying", "eva_config", "exclude_modules",
    "inference_mode", "init_lora_weights", "layers_pattern", "layers_to_transform", "loftq_config", "lora_alpha",
    "lora_dropout", "lora_ga_config", "megatron_core", "peft_type", "peft_version", "qalora_group_size", "r",
    "revision", "runtime_config", "target_modules", "task_type", "use_rslora",
})  # fmt: skip
_RUNS_CODE = frozenset({"auto_mapping", "megatron_config"})
_ON_LOADING = _RUNS_CODE | {"target_modules"}
"""What PEFT needs to load it, and a reader of its weights does not."""
_PLAIN_BEGINNINGS = ("gaussian", "orthogonal", "eva")
_NEUTRAL: tuple[Any, ...] = (None, False, "none", [], {})


class AdapterConfig(Struct, frozen=True):
    """What of the options decides the result.

    Attributes:
        rank: 0 where it cannot be read.
        alpha: 0 where it cannot be read.
        root_scaled: `use_rslora`: products are divided by the root of the rank instead of the rank.
        targets: names or ends of names of the adapted modules; None where they are a pattern or all linear layers.
        layers: numbers of the adapted layers, None for all.
        base: the name of the base, as it was trained; empty where it does not say.
    """

    rank: int = 0
    alpha: float = 0.0
    root_scaled: bool = False
    targets: tuple[str, ...] | None = None
    layers: tuple[int, ...] | None = None
    base: str = ""

    @property
    def plain_alpha(self) -> float:
        """The alpha that gives the same result where products are divided by the rank."""
        return self.alpha * math.sqrt(self.rank) if self.root_scaled else self.alpha

    @property
    def scale(self) -> float:
        """How often the product B·A counts."""
        return self.plain_alpha / self.rank


class Lora(NamedTuple):
    """An adapter whose options and tensors are those of a plain LoRA."""

    config: AdapterConfig
    file: TensorFile


class Problem(NamedTuple):
    """An option that a plain LoRA does not have, or that is not what it must be.

    Attributes:
        code: `not_lora`, `unsupported_option`, `bad_rank`, `bad_alpha`, `bad_config`, or `runs_code`: PEFT would run
            code on loading, what reads only the weights would not.
    """

    code: str
    option: str
    value: Any
    reason: str
    remedy: str


def open_lora(folder: Path) -> Lora:
    """Read an adapter's options and header. No tensor is read.

    Raises:
        ConfigError: a file cannot be read or is not what it says, there are no tensors, one is of another type than
            `FLOATS`, or an option is none of a plain LoRA's; the code is then `unsupported_adapter`.
    """
    path, root = weights_of(folder), root_of(folder)
    config, file = _plain(folder, root), open_tensors(path, root)
    if not file.tensors:
        raise ConfigError(f"{path} holds no tensors; train the adapter again", code="broken_adapter")
    for name, tensor in file.tensors.items():
        if tensor.dtype not in FLOATS:
            reason = f"{printable(name, 200)} is of type {tensor.dtype}; save the adapter as F16, BF16 or F32"
            raise ConfigError(f"{path}: {reason}", param=name)
    return Lora(config, file)


def _plain(folder: Path, root: Path) -> AdapterConfig:
    table = read_object(folder / CONFIG_FILE, root, MAX_CONFIG_BYTES)
    for problem in problems_of(table):
        if problem.option not in _ON_LOADING:
            where = f"{folder / CONFIG_FILE}: {problem.option} is {str(problem.value)[:80]!r}"
            reason = f"{where}; {problem.reason}; {problem.remedy}"
            raise ConfigError(reason, param=problem.option, code="unsupported_adapter")
    return config_of(table)


def weights_of(folder: Path) -> Path:
    """The file of an adapter's weights, which need not be there.

    Raises:
        ConfigError: there is only a pickle.
    """
    path, pickled = folder / WEIGHTS_FILE, folder / "adapter_model.bin"
    if not path.exists() and pickled.exists():
        remedy = f"save the adapter as {WEIGHTS_FILE}, with safe_serialization=True in PEFT"
        raise ConfigError(f"{pickled} is a pickle, which can run code when it is read, and is never opened; {remedy}")
    return path


def config_of(table: Mapping[str, Any]) -> AdapterConfig:
    """What the options say; what cannot be used is left out, and is among `problems_of`."""
    rank, alpha, targets = table.get("r"), table.get("lora_alpha"), table.get("target_modules")
    base = table.get("base_model_name_or_path")
    return AdapterConfig(
        rank=rank if _is_rank(rank) else 0,
        alpha=float(alpha) if _is_alpha(alpha) else 0.0,
        root_scaled=table.get("use_rslora") is True,
        targets=tuple(targets) if _is_names(targets) else None,
        layers=_layers(table.get("layers_to_transform")),
        base=base if isinstance(base, str) else "",
    )


def problems_of(table: Mapping[str, Any]) -> Iterator[Problem]:
    """Everything that is wrong with the options."""
    kind, rank, alpha, targets = (table.get(name) for name in ("peft_type", "r", "lora_alpha", "target_modules"))
    if kind != "LORA":
        yield Problem("not_lora", "peft_type", kind, "only LORA is an adapter here", "train a LoRA")
    for name, value in table.items():
        if value not in _NEUTRAL:
            yield from _option(name, value)
    beginning = table.get("init_lora_weights", True)
    if not isinstance(beginning, bool) and beginning not in _PLAIN_BEGINNINGS:
        reason = "this beginning changes the base too, so that the adapter fits no base file that exists"
        remedy = "save it converted to a plain LoRA"
        yield Problem("unsupported_option", "init_lora_weights", beginning, reason, remedy)
    if not _is_rank(rank):
        yield Problem("bad_rank", "r", rank, f"it must be a whole number from 1 to {MAX_RANK}", _AGAIN)
    if not _is_alpha(alpha):
        yield Problem("bad_alpha", "lora_alpha", alpha, f"it must be a number above 0 and below {MAX_ALPHA}", _AGAIN)
    if not isinstance(table.get("use_rslora", False), bool):
        yield Problem("bad_config", "use_rslora", table["use_rslora"], "it must be true or false", "correct it")
    if not (isinstance(targets, str) or _is_names(targets)):
        yield Problem("bad_config", "target_modules", targets, "it must be a list of module names, or a text", _AGAIN)


_AGAIN = "save the adapter again with PEFT"


def _option(name: str, value: Any) -> Iterator[Problem]:
    if name in _RUNS_CODE:
        reason = "it names Python code that PEFT would import on loading"
        yield Problem("runs_code", name, value, reason, "set it to null; a plain LoRA needs none")
    elif name in ("rank_pattern", "alpha_pattern"):
        reason = "engines apply one rank and one alpha to all layers, and would apply this one wrongly"
        yield Problem("unsupported_option", name, value, reason, "train with one rank and one alpha")
    elif name not in _WITHOUT_EFFECT:
        reason = "engines that serve a plain LoRA refuse or ignore this option"
        yield Problem("unsupported_option", name, value, reason, "train without it, or merge it into a plain LoRA")


def _is_rank(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_RANK


def _is_alpha(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MAX_ALPHA


def _is_names(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and 0 < len(value) <= MAX_TARGETS and all(isinstance(name, str) for name in value)


def _layers(value: Any) -> tuple[int, ...] | None:
    numbers = [value] if isinstance(value, int) else value
    if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
        return None
    return tuple(numbers)
