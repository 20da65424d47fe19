"""The settings of a training run: built in, overridden by a recipe (TOML), overridden by the command line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from macaron.errors import ConfigError
from macaron.hcp.checks import LABEL
from macaron.train.record import RunKind

LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

Precision = Literal["float32", "bfloat16"]

CARDS = "cards with different labels, a capital letter and up to 31 letters, digits, _ or -, name and description"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a recipe."""


class LoraSection(Section, frozen=True):
    """`[lora]`: the adapter's shape. `targets` are the linear modules that get one."""

    rank: int = 8
    alpha: int = 16
    dropout: float = 0.0
    targets: tuple[str, ...] = LORA_TARGETS


class OptimizerSection(Section, frozen=True):
    """`[optimizer]`: AdamW. `warmup` is a share of all steps; `clip` bounds the gradient's norm."""

    lr: float = 2e-4
    schedule: Literal["linear", "cosine", "constant_with_warmup"] = "cosine"
    warmup: float = 0.05
    weight_decay: float = 0.0
    clip: float = 1.0


class BatchSection(Section, frozen=True):
    """`[batch]`: how rows become steps.

    Attributes:
        tokens: tokens computed a step, padding included and a shared prefix once; a longer row is a step of its own.
        rows: rows a step at most.
        window: rows that are sorted by length together.
    """

    tokens: int = 2048
    rows: int = 16
    window: int = 256


class AddedCard(Section, frozen=True):
    """`[[route.add]]`: the card of a specialist that the profile does not have."""

    label: str
    name: str
    description: str
    boundary: str = ""


class RouteSection(Section, frozen=True):
    """`[route]`: how route rows are asked.

    Attributes:
        vary: share of the rows that are asked with another set of labels and cards.
        add: cards that stand in the question beside the profile's. Rows of their labels are repeated until they are as
            many as those of other labels, and some rows of the others are asked as if these cards were not there.
    """

    vary: float = 0.0
    add: tuple[AddedCard, ...] = ()


class MixSection(Section, frozen=True):
    """`[mix]`: how often a row of each kind is seen in one epoch; a fraction draws that share anew each epoch."""

    sft: float = 1.0
    route: float = 1.0


class DpoSection(Section, frozen=True):
    """`[dpo]`: `beta` is how strongly the model is held to the one it started from (arXiv:2305.18290)."""

    beta: float = 0.1


class CheckpointSection(Section, frozen=True):
    """`[checkpoint]`: after so many minutes or steps, whichever is first; 0 steps leaves it to the minutes."""

    minutes: float = 5.0
    steps: int = 0
    keep: int = 2


class TrainConfig(Section, frozen=True):
    """Everything that decides a run's result, and with `threads` and `checkpoint` how it is run.

    Attributes:
        profile: name or path of the profile whose base, prompts and template are used.
        adapter: label of the specialist, or another name where all data sets say whose they are.
        data: folders of data sets; `LABEL=FOLDER` for rows of another specialist.
        identity: system prompt of a specialist that the profile does not have; empty for the profile's own.
        start: `--from`, the folder of a run, or of a published adapter, that is trained on; empty for a new one.
        max_tokens: longer rows are refused.
        max_steps: 0 for all that the epochs give.
        precision: of the frozen base; the adapter and its optimizer are kept in float32. `bfloat16` is faster on
            processors that multiply it (AVX512-BF16, AMX) and slower on others.
        skip_broken: go on without rows that cannot be used, and count them.
        threads: of the processor, 0 for one a core.
    """

    kind: RunKind
    profile: str
    adapter: str
    data: tuple[str, ...]
    identity: str = ""
    start: str = ""
    epochs: float = 1.0
    max_tokens: int = 2048
    max_steps: int = 0
    precision: Precision = "float32"
    seed: int = 1
    skip_broken: bool = False
    threads: int = 0
    lora: LoraSection = field(default_factory=LoraSection)
    optimizer: OptimizerSection = field(default_factory=OptimizerSection)
    batch: BatchSection = field(default_factory=BatchSection)
    route: RouteSection = field(default_factory=RouteSection)
    mix: MixSection = field(default_factory=MixSection)
    dpo: DpoSection = field(default_factory=DpoSection)
    checkpoint: CheckpointSection = field(default_factory=CheckpointSection)


def read_recipe(name_or_path: str) -> dict[str, Any]:
    """The table of a recipe: a bare word is one that ships, anything else a path.

    Raises:
        ConfigError: it is not there or not TOML.
    """
    shipped = Path(__file__).parent / "recipes" / "train"
    bare = not any(mark in name_or_path for mark in "/\\.")
    path = shipped / f"{name_or_path}.toml" if bare else Path(name_or_path).expanduser()
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        names = ", ".join(sorted(item.stem for item in shipped.glob("*.toml"))) or "none"
        raise ConfigError(f"there is no recipe {name_or_path!r}; recipes that ship: {names}", param="config") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", param="config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}", param="config") from None


def build_config(table: Mapping[str, Any], overrides: Mapping[str, Any]) -> TrainConfig:
    """The checked settings.

    Args:
        table: a recipe's, or `config.json` of a run.
        overrides: by dotted name, such as `lora.rank`; None leaves a value as it is.

    Raises:
        ConfigError: a key is unknown, or a value is of a wrong type or out of range.
    """
    merged = _merged(table, overrides)
    try:
        config = msgspec.convert(merged, TrainConfig, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the training configuration is wrong: {error}", param="config") from None
    for name, value, rule, wanted in _ranges(config):
        if not rule:
            raise ConfigError(f"{name} is {value!r}; it must be {wanted}", param=name)
    return config


def differences(stored: TrainConfig, given: TrainConfig) -> list[str]:
    """The dotted names of the settings that decide a result and in which two runs differ."""
    free = {"threads", "checkpoint"}
    left, right = (_flat(msgspec.to_builtins(config)) for config in (stored, given))
    return sorted(name for name in left | right if name.split(".")[0] not in free and left.get(name) != right.get(name))


def _usable(cards: tuple[AddedCard, ...]) -> bool:
    labels = [card.label for card in cards]
    plain = all(LABEL.fullmatch(card.label) and card.name.strip() and card.description.strip() for card in cards)
    return plain and len(set(labels)) == len(labels)


def _merged(table: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = msgspec.to_builtins(dict(table))
    for name, value in overrides.items():
        if value is None:
            continue
        *sections, key = name.split(".")
        place = merged
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = value
    assert isinstance(merged, dict)
    return merged


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _ranges(config: TrainConfig) -> list[tuple[str, Any, bool, str]]:
    above = "greater than 0"
    return [
        ("adapter", config.adapter, bool(_NAME.fullmatch(config.adapter)), "1 to 32 letters, digits, - and _"),
        ("data", config.data, bool(config.data), "at least one folder"),
        ("epochs", config.epochs, 0 < config.epochs <= 1000, "greater than 0 and at most 1000"),
        ("max_tokens", config.max_tokens, config.max_tokens >= 8, "at least 8"),
        ("max_steps", config.max_steps, config.max_steps >= 0, "0 or more"),
        ("seed", config.seed, 0 <= config.seed < 2**32, "from 0 to 4294967295"),
        ("threads", config.threads, 0 <= config.threads <= 4096, "from 0 to 4096"),
        ("lora.rank", config.lora.rank, 1 <= config.lora.rank <= 1024, "from 1 to 1024"),
        ("lora.alpha", config.lora.alpha, config.lora.alpha > 0, above),
        ("lora.dropout", config.lora.dropout, 0 <= config.lora.dropout < 1, "from 0 to below 1"),
        ("lora.targets", config.lora.targets, bool(config.lora.targets), "at least one module"),
        ("optimizer.lr", config.optimizer.lr, 0 < config.optimizer.lr < 1, "between 0 and 1"),
        ("optimizer.warmup", config.optimizer.warmup, 0 <= config.optimizer.warmup < 1, "from 0 to below 1"),
        ("optimizer.clip", config.optimizer.clip, config.optimizer.clip > 0, above),
        ("batch.tokens", config.batch.tokens, config.batch.tokens > 0, above),
        ("batch.rows", config.batch.rows, config.batch.rows > 0, above),
        ("batch.window", config.batch.window, config.batch.window > 0, above),
        ("route.add", [card.label for card in config.route.add], _usable(config.route.add), CARDS),
        ("route.vary", config.route.vary, 0 <= config.route.vary <= 1, "from 0 to 1"),
        ("mix.sft", config.mix.sft, config.mix.sft >= 0, "0 or more"),
        ("mix.route", config.mix.route, config.mix.route >= 0, "0 or more"),
        ("dpo.beta", config.dpo.beta, config.dpo.beta > 0, above),
        ("checkpoint.minutes", config.checkpoint.minutes, config.checkpoint.minutes > 0, above),
        ("checkpoint.steps", config.checkpoint.steps, config.checkpoint.steps >= 0, "0 or more"),
        ("checkpoint.keep", config.checkpoint.keep, config.checkpoint.keep >= 1, "at least 1"),
    ]
