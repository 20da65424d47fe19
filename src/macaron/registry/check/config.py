"""`adapter_config.json`: what of PEFT's options decides the result, and the options that a plain LoRA does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from msgspec import Struct

from macaron.registry.check.document import DuplicateKeyError, NotAnObjectError, read_object
from macaron.registry.check.folder import CONFIG_FILE
from macaron.registry.check.report import Finding, Limits, Refused, error, shown, warning

MAX_CONFIG_BYTES = 1_048_576
MAX_RANK = 4096
MAX_ALPHA = 1_000_000
MAX_TARGETS = 1024
ALL_LINEAR = "all-linear"

# How it was trained, or what the tensors' names show again.
_WITHOUT_EFFECT = frozenset({
    "base_model_name_or_path", "corda_config", "ensure_weight_tying", "eva_config", "exclude_modules",
    "inference_mode", "init_lora_weights", "layers_pattern", "layers_to_transform", "loftq_config", "lora_alpha",
    "lora_dropout", "lora_ga_config", "megatron_core", "peft_type", "peft_version", "qalora_group_size", "r",
    "revision", "runtime_config", "target_modules", "task_type", "use_rslora",
})  # fmt: skip
_RUNS_CODE = frozenset({"auto_mapping", "megatron_config"})
_PLAIN_BEGINNINGS = ("gaussian", "orthogonal", "eva")
_NEUTRAL: tuple[Any, ...] = (None, False, "none", [], {})


class AdapterConfig(Struct, frozen=True):
    """What of the options decides the result.

    Attributes:
        rank: 0 where it cannot be read.
        alpha: 0 where it cannot be read.
        targets: names or ends of names of the adapted modules; None where they are a pattern or all linear layers.
        layers: numbers of the adapted layers, None for all.
        base: the name of the base, as it was trained.
    """

    rank: int = 0
    alpha: float = 0.0
    targets: tuple[str, ...] | None = None
    layers: tuple[int, ...] | None = None
    base: str = ""


def read_config(raw: bytes, limits: Limits) -> tuple[AdapterConfig, list[Finding]]:
    """The options, and everything that is wrong with them.

    Raises:
        Refused: it is no JSON object, or has a key twice.
    """
    try:
        table = read_object(raw)
    except DuplicateKeyError as problem:
        reason = "The key is there twice, and two readers would see different values."
        raise Refused(error("duplicate_key", CONFIG_FILE, problem.key, reason, "Keep one of them.")) from None
    except NotAnObjectError as problem:
        reason = f"It is no JSON object: {shown(problem)}."
        raise Refused(error("bad_config", CONFIG_FILE, "", reason, "Save the adapter again with PEFT.")) from None
    return _config(table), [*_options(table), *_numbers(table, limits)]


def _config(table: Mapping[str, Any]) -> AdapterConfig:
    rank, alpha, targets = table.get("r"), table.get("lora_alpha"), table.get("target_modules")
    return AdapterConfig(
        rank=rank if _is_rank(rank) else 0,
        alpha=float(alpha) if _is_alpha(alpha) else 0.0,
        targets=tuple(targets) if _is_names(targets) else None,
        layers=_layers(table.get("layers_to_transform")),
        base=shown(table.get("base_model_name_or_path") or ""),
    )


def _options(table: Mapping[str, Any]) -> Iterator[Finding]:
    if table.get("peft_type") != "LORA":
        yield _wrong("not_lora", "peft_type", table.get("peft_type"), "Only LoRA is served.", "Train a LoRA.")
    for name, value in table.items():
        if value in _NEUTRAL:
            continue
        if name in _RUNS_CODE:
            reason = "It names Python code that PEFT would import on loading."
            yield _wrong("runs_code", name, value, reason, "Set it to null; a plain LoRA needs none.")
        elif name in ("rank_pattern", "alpha_pattern"):
            reason = "Engines apply one rank and one alpha to all layers, and would apply this one wrongly."
            yield _wrong("unsupported_option", name, value, reason, "Train with one rank and one alpha.")
        elif name not in _WITHOUT_EFFECT:
            reason = "Engines that serve a plain LoRA refuse or ignore this option."
            yield _wrong("unsupported_option", name, value, reason, "Train without it, or merge it into a plain LoRA.")
    beginning = table.get("init_lora_weights", True)
    if not isinstance(beginning, bool) and beginning not in _PLAIN_BEGINNINGS:
        reason = "This beginning changes the base too, so that the adapter fits no base file that exists."
        yield _wrong("unsupported_option", "init_lora_weights", beginning, reason, "Save it converted to a plain LoRA.")


def _numbers(table: Mapping[str, Any], limits: Limits) -> Iterator[Finding]:
    rank, alpha, targets = table.get("r"), table.get("lora_alpha"), table.get("target_modules")
    if not _is_rank(rank):
        yield _wrong("bad_rank", "r", rank, f"It must be a whole number from 1 to {MAX_RANK}.", "Save it again.")
    elif limits.max_rank is not None and rank > limits.max_rank:
        reason = f"The engine takes ranks up to {limits.max_rank}."
        remedy = f"Start the engine with a maximum of {rank} or more, or train with a lower rank."
        yield _wrong("rank_too_high", "r", rank, reason, remedy)
    elif limits.usual_rank is not None and rank > limits.usual_rank:
        reason = f"The engine takes ranks up to {limits.usual_rank} unless it was started with another maximum."
        yield warning("rank_limit", f"{CONFIG_FILE}: r", rank, reason, f"Start vLLM with --max-lora-rank {rank}.")
    if not _is_alpha(alpha):
        reason = f"It must be a number above 0 and below {MAX_ALPHA}."
        yield _wrong("bad_alpha", "lora_alpha", alpha, reason, "Save the adapter again.")
    if not isinstance(table.get("use_rslora", False), bool):
        yield _wrong("bad_config", "use_rslora", table["use_rslora"], "It must be true or false.", "Correct it.")
    if not (isinstance(targets, str) or _is_names(targets)):
        reason = "It must be a list of module names, or a text."
        yield _wrong("bad_config", "target_modules", targets, reason, "Save the adapter again with PEFT.")


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


def _wrong(code: str, name: str, value: Any, message: str, remedy: str) -> Finding:
    return error(code, f"{CONFIG_FILE}: {name}", value, message, remedy)
