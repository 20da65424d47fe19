"""Our own banks: phrases with slots, filled at random.

A bank is a TOML file: `[intents]` gives each intent its phrases, `[slots]` the values of `{name}` in them. Values may
have slots themselves. `slots.<language>.toml` is shared by all banks of a language.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from random import Random
from typing import Any, NamedTuple

from macaron.errors import ConfigError
from macaron.train.demi.route.requests import Request

_SLOT = re.compile(r"\{([a-z_]+)\}")
_MAX_DEPTH = 8
_PATIENCE = 40


class Bank(NamedTuple):
    """Phrases of a label in a language, by intent, with the values of their slots."""

    name: str
    language: str
    intents: Mapping[str, Sequence[str]]
    slots: Mapping[str, Sequence[str]]


def load_table(name: str) -> dict[str, Any]:
    """A file of the banks, as it is."""
    return tomllib.loads((files(__package__) / "banks" / f"{name}.toml").read_text(encoding="utf-8"))


def load_bank(name: str, language: str) -> Bank:
    """The bank `<name>.<language>` with the shared slots of its language."""
    own = load_table(f"{name}.{language}")
    shared = load_table(f"slots.{language}")
    return Bank(f"{name}.{language}", language, own["intents"], {**shared, **own.get("slots", {})})


def fill(random: Random, phrase: str, slots: Mapping[str, Sequence[str]], depth: int = 0) -> str:
    """A phrase with every slot replaced by one of its values.

    Raises:
        ConfigError: a slot has no values, or slots contain each other.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] not in slots or depth >= _MAX_DEPTH:
            raise ConfigError(
                f"slot {match[0]} of the phrase {phrase!r} has no values or contains itself; add it to the bank's slots"
            )
        return fill(random, random.choice(slots[match[1]]), slots, depth + 1)

    return _SLOT.sub(value, phrase)


def requests(random: Random, bank: Bank, count: int) -> Iterator[Request]:
    """Exactly `count` different requests; every phrase is used before one is used again.

    Raises:
        ConfigError: the bank has not so many.
    """
    phrases = [
        (f"{bank.name}:{intent}:{place}", phrase)
        for intent, said in bank.intents.items()
        for place, phrase in enumerate(said)
    ]
    seen: set[str] = set()
    misses = 0
    while len(seen) < count:
        random.shuffle(phrases)
        for group, phrase in phrases:
            text = fill(random, phrase, bank.slots)
            if text in seen:
                misses += 1
                continue
            misses = 0
            seen.add(text)
            yield Request(text, group, bank.language)
            if len(seen) == count:
                return
        if misses > _PATIENCE * len(phrases):
            raise ConfigError(
                f"bank {bank.name} gives only {len(seen)} of {count} requests; lower limit or add phrases"
            )
