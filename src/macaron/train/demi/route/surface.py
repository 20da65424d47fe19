"""Requests that carry a surface wrapper. The wrapper decides: inside it, whatever is asked is for the interface."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random

from macaron.train.data.rows import AnyRow, RouteRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.phrases import load_bank, load_table, requests
from macaron.train.demi.route.requests import Request, single_turn

LABEL = "L3"
OTHER_BANKS = ("chat", "life", "code", "interface")
_ACTION_SHARE = 0.2
_MAX_BRIEF = 400


def wrapped_en(context: BuildContext) -> Iterator[AnyRow]:
    """English requests in the wrappers for training: half briefs, half requests of other labels."""
    return _wrapped(context, "en")


def wrapped_zh(context: BuildContext) -> Iterator[AnyRow]:
    """The same in Chinese."""
    return _wrapped(context, "zh")


def surface_rows(briefs: Sequence[str], language: str = "zh", source: str = "ui-briefs") -> Iterator[RouteRow]:
    """Held-out rows from plain briefs, each in a wrapper whose form no training row has, in turn. The same briefs
    give the same rows.
    """
    wrappers = load_table("surfaces")["held_out"]
    random = Random(source)
    wrapped = (
        Request(wrap(random, wrappers[number % len(wrappers)], brief), f"{source}:{number}", language)
        for number, brief in enumerate(briefs)
    )
    return single_turn(source, LABEL, wrapped)


def wrap(random: Random, wrapper: str, brief: str) -> str:
    """A brief inside a wrapper, with ids, host and action made up."""
    table = load_table("surfaces")
    marks = {
        "@id@": _surface_id(random),
        "@host@": random.choice(table["hosts"]),
        "@action@": random.choice(table["actions_named"]),
        "@n@": str(random.randrange(1, 40)),
        "@json@": json.dumps(brief, ensure_ascii=random.random() < 0.5 and brief.isascii()),
        "@brief@": brief,
    }
    for mark, value in marks.items():
        wrapper = wrapper.replace(mark, value)
    return wrapper


def _surface_id(random: Random) -> str:
    word = random.choice(("srf", "s", "card", "ui", "surface", "main", "panel", "w"))
    return f"{word}{random.choice('-_')}{random.randrange(16**4):x}"


def _wrapped(context: BuildContext, language: str) -> Iterator[AnyRow]:
    random, table = context.random, load_table("surfaces")
    briefs = _briefs(random, language, context.limit)
    wrapped = (
        Request(
            wrap(
                random, random.choice(table["actions" if random.random() < _ACTION_SHARE else "wrappers"]), brief.text
            ),
            brief.group,
            language,
        )
        for brief in briefs
    )
    return single_turn(f"own-surface-{language}", LABEL, wrapped)


def _briefs(random: Random, language: str, count: int) -> list[Request]:
    others = [load_bank(name, language) for name in OTHER_BANKS]
    share = count // (2 * len(others))
    asked = [request for bank in others for request in requests(random, bank, share) if len(request.text) <= _MAX_BRIEF]
    briefs = load_bank("briefs", language)
    unique = min(count - len(asked), sum(map(len, briefs.intents.values())))
    asked += requests(random, briefs, unique)
    asked += random.choices(asked, k=count - len(asked))
    random.shuffle(asked)
    return asked
