"""Requests that try to name their label, and requests about a quoted text that would have another one.

The right label is always that of what the user wants: nothing in the text around it changes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from macaron.train.data.rows import AnyRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.contrast import LABELS
from macaron.train.demi.route.phrases import fill, load_bank, load_table, requests
from macaron.train.demi.route.requests import Request, row, shorten
from macaron.train.demi.route.surface import wrap

BANKS = {"L0": "chat", "L1": "life", "L2": "code", "L3": "interface"}
QUOTED_CHARACTERS = 160
_QUOTING_SHARE = 4
_CHINESE_SHARE = 3


def rows(context: BuildContext) -> Iterator[AnyRow]:
    """One in four quotes a request of another label to ask something about its language, which is L0; the others are
    requests of all labels with a false label around them.
    """
    random = context.random
    for number in range(context.limit):
        language = "zh" if number % _CHINESE_SHARE == 0 else "en"
        if number % _QUOTING_SHARE == 1:
            yield row("own-injections", number, "L0", _quoting(random, language))
        else:
            label = random.choice(LABELS)
            yield row("own-injections", number, label, _claiming(random, label, language))


def _ask(random: Random, label: str, language: str) -> Request:
    return next(requests(random, load_bank(BANKS[label], language), 1))


def _claiming(random: Random, label: str, language: str) -> Request:
    ask = _ask(random, label, language)
    other = random.choice([name for name in LABELS if name != label])
    text = random.choice(load_table("injections")["around"]).replace("@other@", other).replace("@ask@", ask.text)
    return Request(text, f"injection:{ask.group}", language)


def _quoting(random: Random, language: str) -> Request:
    ask = _ask(random, random.choice(LABELS[1:]), language)
    quoted = shorten(ask.text, QUOTED_CHARACTERS)
    if random.random() < 0.25:
        quoted = wrap(random, random.choice(load_table("surfaces")["wrappers"]), quoted)
    slots = load_bank("chat", "en").slots
    phrase = fill(random, random.choice(load_table("injections")[f"quoting_{language}"]), slots)
    return Request(phrase.replace("@ask@", quoted), "injection:quoting", language)
