"""Scenes: a list of tools and several requests to it, each a row of its own.

The rows of a scene begin alike, so that training computes their tools only once, and they differ in what a specialist
has to learn: which of the tools is meant, and which values its call holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec

from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.tools import dress
from macaron.train.demi.tools.bank import families
from macaron.train.demi.tools.own import Item
from macaron.train.demi.tools.phrasing import phrase
from macaron.train.demi.tools.shape import calls, said, user
from macaron.train.demi.tools.spec import speak

DEFAULT_ROWS = 1_400
TOOLS = (2, 2, 3, 3, 3, 4, 4)
REQUESTS = (6, 7, 8)
NEAR = 0.7
"""Share of the other tools that are of the first one's family, and so easily taken for it."""
ASKED = 0.3
"""Share of the scenes with a request that lacks a value."""
DESCRIBED = 0.75
LONG = 0.5
MAX_BYTES = 2_200
"""Of the tools, about 600 tokens."""
_TRIES = 6
"""Draws of a request before one that was there already is taken again."""


class Scene(NamedTuple):
    """Tools as a client shows them, and the requests with their answers."""

    shown: Sequence[dict[str, Any]]
    exchanges: Sequence[tuple[str, dict[str, Any]]]


def rows(context: BuildContext) -> Iterable[AnyRow]:
    """`limit` rows, or 1,400, scene after scene; every tool leads a scene before one leads a second."""
    made = _rows(context.random)
    for _ in range(context.limit or DEFAULT_ROWS):
        yield next(made)


def _rows(random: Random) -> Iterator[SftRow]:
    items = [Item(family, tool) for family, tools in families().items() for tool in tools]
    number = 0
    while True:
        for lead in random.sample(items, len(items)):
            scene = _scene(lead, items, random)
            for at, (request, answer) in enumerate(scene.exchanges):
                yield SftRow(
                    id=f"scene-{number}-{at}",
                    source="macaron-scenes",
                    group=f"scene-{number}",
                    messages=(user(request), answer),
                    tools=tuple(scene.shown),
                )
            number += 1


def _scene(lead: Item, items: Sequence[Item], random: Random) -> Scene:
    chosen = _cast(lead, items, random)
    style = dress.draw(random, DESCRIBED, LONG)
    shown = [style.tool(item.family, item.tool) for item in chosen]
    while len(chosen) > 2 and len(msgspec.json.encode(shown)) > MAX_BYTES:
        chosen, shown = chosen[:-1], shown[:-1]
    exchanges: dict[str, dict[str, Any]] = {}
    for at in range(random.choice(REQUESTS)):
        item = chosen[at % len(chosen)]
        for _ in range(_TRIES):
            spoken = phrase(item.tool, random)
            if spoken.request not in exchanges:
                break
        exchanges[spoken.request] = calls([style.use(item.family, item.tool, spoken.arguments)], shown)
    asking = [item for item in chosen if item.tool.asks]
    if asking and random.random() < ASKED:
        request, question = _question(random.choice(asking), random)
        exchanges.setdefault(request, said(question))
    return Scene(shown, list(exchanges.items()))


def _cast(lead: Item, items: Sequence[Item], random: Random) -> list[Item]:
    """Tools of different names, the first one's family among them, in random order."""
    near = [item for item in items if item.family == lead.family]
    chosen = [lead]
    wanted = random.choice(TOOLS)
    while len(chosen) < wanted:
        other = random.choice(near if random.random() < NEAR else items)
        if all(other.tool.name != each.tool.name for each in chosen):
            chosen.append(other)
    random.shuffle(chosen)
    return chosen


def _question(item: Item, random: Random) -> tuple[str, str]:
    ask = random.choice(item.tool.asks)
    spoken = speak(item.tool, ask.request, random)
    return spoken.request, ask.question.format_map({name: each.text for name, each in spoken.said.items()})
