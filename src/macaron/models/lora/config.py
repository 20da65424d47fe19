"""`adapter_config.json`: the options of a LoRA, and the refusal of those that the engine cannot apply."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError

CONFIG_FILE = "adapter_config.json"
MAX_CONFIG_BYTES = 1_048_576
MAX_RANK = 4096
MAX_ALPHA = 1_000_000

# These say how it was trained, or restate what the tensors' names show; the weights alone decide what it does.
_WITHOUT_EFFECT = frozenset({
    "alpha_pattern", "auto_mapping", "base_model_name_or_path", "corda_config", "ensure_weight_tying", "eva_config",
    "exclude_modules", "inference_mode", "init_lora_weights", "layers_pattern", "layers_to_transform", "loftq_config",
    "lora_alpha", "lora_dropout", "lora_ga_config", "megatron_config", "megatron_core", "peft_type", "peft_version",
    "qalora_group_size", "r", "rank_pattern", "revision", "runtime_config", "target_modules", "task_type",
    "use_rslora",
})  # fmt: skip
# Other ways to begin change the base itself, so that the adapter belongs to no base file that exists.
_PLAIN_BEGINNINGS = (True, False, "gaussian", "orthogonal", "eva")
_NEUTRAL: tuple[Any, ...] = (None, False, "none", [], {})


class LoraOptions(Struct, frozen=True):
    """What of the options decides the result: every product B·A counts `alpha / rank` times."""

    rank: int
    alpha: float


def read_options(folder: Path) -> LoraOptions:
    """The options of an adapter. With `use_rslora` the scale `alpha / sqrt(rank)` is given as a larger alpha.

    Raises:
        ConfigError: the file cannot be read, or names an option that a LoRA in GGUF cannot express.
    """
    path = folder / CONFIG_FILE
    table = _table(path)
    if table.get("peft_type") != "LORA":
        raise _refused(path, "peft_type", table.get("peft_type"), "only LORA can be converted")
    for name, value in table.items():
        if name not in _WITHOUT_EFFECT and value not in _NEUTRAL:
            raise _refused(path, name, value, "the embedded engine cannot apply it; train without it")
    for name in ("rank_pattern", "alpha_pattern"):
        if table.get(name):
            raise _refused(path, name, table[name], "one rank and one alpha for all layers are supported")
    if table.get("init_lora_weights", True) not in _PLAIN_BEGINNINGS:
        remedy = "it changes the base too; save the adapter converted to a plain LoRA"
        raise _refused(path, "init_lora_weights", table["init_lora_weights"], remedy)
    rank, alpha, stabilised = table.get("r"), table.get("lora_alpha"), table.get("use_rslora", False)
    if isinstance(rank, bool) or not isinstance(rank, int) or not 1 <= rank <= MAX_RANK:
        raise _refused(path, "r", rank, f"it must be a whole number from 1 to {MAX_RANK}")
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < MAX_ALPHA:
        raise _refused(path, "lora_alpha", alpha, f"it must be a number above 0 and below {MAX_ALPHA}")
    if not isinstance(stabilised, bool):
        raise _refused(path, "use_rslora", stabilised, "it must be true or false")
    return LoraOptions(rank, alpha * math.sqrt(rank) if stabilised else float(alpha))


def _table(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_CONFIG_BYTES + 1)
        if len(raw) > MAX_CONFIG_BYTES:
            raise ConfigError(f"{path} has more than {MAX_CONFIG_BYTES} bytes; it is no configuration of an adapter")
        return msgspec.json.decode(raw, type=dict[str, Any])
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a JSON object: {error}") from None


def _refused(path: Path, name: str, value: object, remedy: str) -> ConfigError:
    return ConfigError(f"{path}: {name} is {str(value)[:80]!r}; {remedy}", param=name, code="unsupported_adapter")
