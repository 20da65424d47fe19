"""Rows of a brief and the card that answers it: kinds of card × data × wording, in English and Chinese."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any, Final, NamedTuple

from macaron.train.data.rows import SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.ui import bank
from macaron.train.demi.ui.card import Marks, render

CHINESE_SHARE: Final = 0.58
ACTION_SHARE: Final = 0.05
WRAPPED_SHARE: Final = 0.08
_TRIES: Final = 50

_ENDINGS: Final[Mapping[str, Sequence[str]]] = {
    "zh": (
        "",
        "",
        "",
        "，简单点就行",
        "，谢谢",
        "，要好看",
        "，快",
        "，手机上也能用",
        "，帮我弄一个",
        "，谢啦",
        " 给我看看",
    ),
    "en": ("", "", "", " please", ", keep it simple", ", for my phone", " - thanks", ", make it look nice"),
}
_WRAPPERS: Final = (
    '<surface id="{id}" revision="{n}">\n{brief}\n</surface>',
    "[surface {id} r{n}] {brief}",
    "surface_id: {id}\nsurface: inline\n---\n{brief}",
    '<surface mode="canvas">{brief}</surface>',
)
_ACTIONS: Final = (
    '<surface_action id="{id}" action="{action}">{payload}</surface_action>',
    '{{"type": "surface_action", "surface_id": "{id}", "action": "{action}", "payload": {payload}}}',
    "[surface_action {action} on {id}] {payload}",
)


class Data(NamedTuple):
    """Everything that rows are made from: `kinds` and `actions` by name, `banks` by name, `words` by language."""

    kinds: Mapping[str, Mapping[str, Any]]
    actions: Mapping[str, Mapping[str, Any]]
    banks: Mapping[str, Sequence[bank.Entry]]
    words: Mapping[str, Mapping[str, Sequence[str]]]


class Draft(NamedTuple):
    """A row before it is known to be new."""

    kind: str
    entry: bank.Entry
    messages: tuple[dict[str, Any], ...]


def rows(context: BuildContext) -> Iterator[SftRow]:
    """Exactly `context.limit` rows with different requests; all kinds equally often, all data of a kind nearly so.
    Without a limit, one row for each kind and entry of its bank."""
    data = load()
    limit = context.limit or sum(len(data.banks[kind["bank"]]) for kind in data.kinds.values())
    seen: set[str] = set()
    for number, draft in enumerate(islice(_new(data, context.random, seen), limit)):
        yield SftRow(
            id=f"demi-ui-{number:05}",
            source="demi-ui",
            group=f"{draft.kind}/{draft.entry['lang']}/{bank.key(draft.entry)}",
            language=draft.entry["lang"],
            messages=draft.messages,
        )


def load() -> Data:
    """Read the templates and banks that come with the package."""
    kinds = {kind["name"]: kind for kind in bank.load("kinds")["kind"]}
    tables = bank.load("banks")
    return Data(
        kinds={name: kind for name, kind in kinds.items() if "after" not in kind},
        actions={kind["after"]: kind for kind in kinds.values() if "after" in kind},
        banks={name: table for name, table in tables.items() if isinstance(table, list)},
        words={name: table for name, table in tables.items() if isinstance(table, dict)},
    )


def _new(data: Data, random: Random, seen: set[str]) -> Iterator[Draft]:
    """Drafts whose brief no earlier one has."""
    used: Counter[tuple[str, str]] = Counter()
    for kind in _in_turn(random, data):
        for _ in range(_TRIES):
            draft = _draft(data, random, kind, used)
            brief = draft.messages[0]["content"]
            if brief not in seen:
                seen.add(brief)
                used[kind, bank.key(draft.entry)] += 1
                yield draft
                break


def _in_turn(random: Random, data: Data) -> Iterator[str]:
    """Kinds for ever, each once in a round; a share of the drawn kinds is one whose card is then acted on."""
    while True:
        names = list(data.kinds)
        random.shuffle(names)
        for name in names:
            yield random.choice(list(data.actions)) + "!" if random.random() < ACTION_SHARE else name


def _draft(data: Data, random: Random, name: str, used: Counter[tuple[str, str]]) -> Draft:
    kind = data.kinds[name.removesuffix("!")]
    language = "zh" if random.random() < CHINESE_SHARE else "en"
    entries = [entry for entry in data.banks[kind["bank"]] if entry["lang"] == language]
    entry = min(random.sample(entries, len(entries)), key=lambda one: used[name, bank.key(one)])
    values = bank.values(random, kind["bank"], entry, data.words[language])
    brief = random.choice(kind[language]).format_map(values) + random.choice(_ENDINGS[language])
    if random.random() < WRAPPED_SHARE:
        brief = random.choice(_WRAPPERS).format(id=_surface(random), n=random.randint(1, 9), brief=brief)
    messages = _turn(brief, render(random, kind["code"], values))
    if name.endswith("!"):
        messages += _acted(random, data.actions[kind["name"]], values)
    return Draft(kind["name"], entry, messages)


def _acted(random: Random, action: Mapping[str, Any], values: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
    payload = Marks(action["payload"]).substitute(values)
    request = random.choice(_ACTIONS).format(id=_surface(random), action=action["action"], payload=payload)
    return _turn(request, render(random, action["code"], values))


def _turn(request: str, answer: str) -> tuple[dict[str, Any], ...]:
    return ({"role": "user", "content": request}, {"role": "assistant", "content": answer})


def _surface(random: Random) -> str:
    return f"{random.choice(('s', 'srf', 'card', 'ui'))}-{random.randrange(16, 256):x}"
