"""Other ways to ask the same route question: more cards, fewer, in another order, under other names. Pure.

A router that has only ever seen one instruction learns what its labels are and never reads a card.
"""

from __future__ import annotations

import tomllib
from collections.abc import Set
from importlib.resources import files
from random import Random
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from macaron.registry.cards import Registry

MIN_LABELS, MAX_LABELS = 3, 9
_STEMS = ("L", "A", "S", "M", "R", "T", "E", "X")


class Card(Struct, frozen=True, forbid_unknown_fields=True):
    """A specialist that nobody has: its name and description, for the router."""

    name: str
    description: str


class Variant(NamedTuple):
    """Another set of labels: the registry to ask with, and what it calls those of the profile that are in it."""

    registry: Registry
    names: dict[str, str]


def read_cards() -> tuple[Card, ...]:
    """The cards that ship."""
    text = files("macaron.train").joinpath("recipes", "cards.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["card"], tuple[Card, ...])


def vary(registry: Registry, needed: Set[str], cards: tuple[Card, ...], random: Random) -> Variant:
    """A set of 3 to 9 labels with those that are needed."""
    own = list(registry.specialists)
    fewest = max(MIN_LABELS, len(needed))
    count = random.randint(fewest, max(fewest, MAX_LABELS))
    optional = [item for item in own if item.label not in needed]
    kept = [item for item in own if item.label in needed]
    kept += random.sample(optional, min(len(optional), count - len(kept), random.randint(0, len(optional))))
    strangers = random.sample(cards, min(len(cards), count - len(kept)))
    shown = [*kept, *(replace(own[0], name=card.name, description=card.description, boundary="") for card in strangers)]
    places = list(range(len(shown)))
    random.shuffle(places)
    labels = _labels(len(shown), random)
    specialists = tuple(replace(shown[place], label=label) for place, label in zip(places, labels, strict=True))
    names = {kept[place].label: label for place, label in zip(places, labels, strict=True) if place < len(kept)}
    return Variant(Registry(specialists, specialists[0].label, specialists[0].label), names)


def _labels(count: int, random: Random) -> list[str]:
    """One letter and a digit each, in order or not."""
    stem = random.choice(_STEMS)
    start = random.randint(0, max(0, 10 - count))
    digits = list(range(start, start + count))
    if random.random() < 0.5:
        random.shuffle(digits)
    return [f"{stem}{digit}" for digit in digits]
