"""Dialogues in which the entry specialist says who it is.

Rendering puts the specialist's identity text first in the system message, and these rows do not repeat it. What they
answer is read from that text, so that another name or base makes other rows. A first system message of a row is the
client's own and follows the identity: here it only adds where the chat is in use, which no answer can know by heart.
Another identity in that place would contradict the one before it, so there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

from macaron.errors import ConfigError
from macaron.hcp import load
from macaron.profiles import find_profile
from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.phrases import fill, load_table

IDENTITY_TEXT = "mol.adapters.L0.prompt_path"
_IDENTITY = re.compile(r"named (?P<name>[^,]{1,40}), based on (?P<base>\S{1,80}) \((?P<size>[^()]{1,40}) parameters\)")
_CHINESE_SHARE = 3
_CONTESTED = frozenset({"other", "base", "name"})
_INSISTENCE = 0.35


class Identity(NamedTuple):
    """What an identity text says of the specialist."""

    name: str
    base: str
    size: str


def read_identity(text: str) -> Identity:
    """The name, the base and the size in an identity text.

    Raises:
        ConfigError: the text does not say them as `named N, based on B (S parameters)`.
    """
    if (match := _IDENTITY.search(text)) is None:
        wanted = "named NAME, based on BASE (SIZE parameters)"
        raise ConfigError(f"the identity {text!r} does not say {wanted!r}; write it so, or correct the rows' builder")
    return Identity(**match.groupdict())


def rows(context: BuildContext) -> Iterator[AnyRow]:
    """Dialogues about the identity of the profile `demi`; one in three is Chinese, some with a user who insists."""
    identity = read_identity(load(find_profile("demi")).text(IDENTITY_TEXT))
    table = load_table("identity")
    seen: set[str] = set()
    while len(seen) < context.limit:
        language = "zh" if len(seen) % _CHINESE_SHARE == 0 else "en"
        topics = table[language]
        topic = context.random.choice([name for name in topics if name != "insist"])
        dialogue = tuple(_dialogue(context.random, topics, topic, _slots(context.random, table, identity, language)))
        if (said := repr(dialogue)) not in seen:
            yield _row(len(seen), dialogue, f"identity:{language}:{topic}", language)
            seen.add(said)


def _row(number: int, dialogue: tuple[dict[str, Any], ...], group: str, language: str) -> SftRow:
    return SftRow(id=f"identity-{number:05d}", source="identity", group=group, language=language, messages=dialogue)


def _slots(random: Random, table: Mapping[str, Any], identity: Identity, language: str) -> dict[str, list[str]]:
    """One value a slot, so that a question and its answer speak of the same thing."""
    slots = table["slots"] | (table["slots_zh"] if language == "zh" else {})
    chosen = {name: [random.choice(values)] for name, values in slots.items()}
    known = {"name": [identity.name], "base": [identity.base], "size": [identity.size]}
    return chosen | known | {"size_zh": [_chinese_size(identity.size)]}


def _chinese_size(size: str) -> str:
    """A count such as `135 million` in Chinese units of ten thousand and a hundred million."""
    number, _, unit = size.partition(" ")
    ten_thousands = float(number) * {"million": 100, "billion": 100_000}[unit]
    return f"{ten_thousands / 10_000:g}亿" if ten_thousands >= 10_000 else f"{ten_thousands:g}万"


def _dialogue(
    random: Random, topics: Mapping[str, Any], topic: str, slots: Mapping[str, list[str]]
) -> Iterator[dict[str, Any]]:
    said = topics[topic]
    if "system" in said:
        yield {"role": "system", "content": fill(random, random.choice(said["system"]), slots)}
    yield from _exchange(random, said, slots)
    if topic in _CONTESTED and random.random() < _INSISTENCE:
        yield from _exchange(random, topics["insist"], slots)


def _exchange(random: Random, said: Mapping[str, Any], slots: Mapping[str, list[str]]) -> Iterator[dict[str, Any]]:
    yield {"role": "user", "content": fill(random, random.choice(said["ask"]), slots)}
    yield {"role": "assistant", "content": fill(random, random.choice(said["answer"]), slots)}
