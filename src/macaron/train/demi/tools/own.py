"""Rows of our own tools: one call, two calls, an answer from a result, a question back, and no call at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.tools import dress
from macaron.train.demi.tools.bank import families
from macaron.train.demi.tools.shape import calls, result, said, user
from macaron.train.demi.tools.spec import Spoken, Tool, speak

DEFAULT_ROWS = 900
_OPENINGS = ("", "", "", "", "", "", "Hi! ", "Hello. ", "I need your help. ", "One more thing: ")
_ENDINGS = ("", "", "", "", "", "", " Thanks!", " Thank you.", " I appreciate it.")
_DONE = ("Done.", "That is done.", "It is done.")
_JOINTS = (" Also: ", " And: ", " Then: ", " After that: ")
_REFUSALS = (
    "I have no tool for that here: I can only {first} or {second}.",
    "None of my tools does that. I could {first} or {second}.",
    "That is not possible with the tools I have; they {first} and {second}.",
)


class Item(NamedTuple):
    """A tool and the family it belongs to."""

    family: str
    tool: Tool

    @property
    def key(self) -> str:
        return f"{self.family}.{self.tool.name}"


class _Bank(NamedTuple):
    items: Sequence[Item]
    random: Random

    def candidates(self, own: Sequence[Item], wanted: int) -> list[Item]:
        """`own` among other tools, half of them of the same family, shuffled."""
        chosen = list(own)
        while len(chosen) < wanted:
            near = [item for item in self.items if item.family == own[0].family]
            other = self.random.choice(near if self.random.random() < 0.5 else self.items)
            if all(other.key != each.key for each in chosen):
                chosen.append(other)
        self.random.shuffle(chosen)
        return chosen

    def number(self) -> int:
        return self.random.choice((2, 2, 2, 2, 2, 3, 3, 3, 4))


def rows(context: BuildContext) -> Iterable[AnyRow]:
    """`limit` rows, or 900: most are one call or two turns of one; every tool comes up before one comes again."""
    bank = _Bank(
        [Item(family, tool) for family, tools in families().items() for tool in tools],
        context.random,
    )
    queues = {kind: _Queue(bank.items, fits, context.random) for kind, fits in _FITS.items()}
    for number in range(context.limit or DEFAULT_ROWS):
        kind = _kind(number)
        item = queues[kind].next()
        messages, shown = _MAKERS[kind](bank, item)
        yield SftRow(
            id=f"tools-{number}",
            source="macaron-tools",
            group=item.key,
            messages=tuple(messages),
            tools=tuple(shown),
        )


class _Queue:
    """Items in a shuffled order, again and again."""

    def __init__(self, items: Sequence[Item], fits: Callable[[Tool], bool], random: Random) -> None:
        self._items = [item for item in items if fits(item.tool)]
        self._waiting: list[Item] = []
        self._random = random

    def next(self) -> Item:
        if not self._waiting:
            self._waiting = self._random.sample(self._items, len(self._items))
        return self._waiting.pop()


_Made = tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]


def _single(bank: _Bank, item: Item) -> _Made:
    style = dress.draw(bank.random)
    shown = _shown(bank, style, [item])
    spoken = _spoken(bank.random, item.tool)
    use = style.use(item.family, item.tool, spoken.arguments)
    return [user(_framed(bank.random, spoken.request)), calls([use], shown)], shown


def _parallel(bank: _Bank, item: Item) -> _Made:
    # Often it is the same tool twice, with other values.
    other = item if bank.random.random() < 0.5 else next(x for x in bank.candidates([item], 2) if x.key != item.key)
    style = dress.draw(bank.random)
    shown = _shown(bank, style, [item] if item is other else [item, other])
    first, second = _spoken(bank.random, item.tool), _spoken(bank.random, other.tool)
    uses = [style.use(item.family, item.tool, first.arguments), style.use(other.family, other.tool, second.arguments)]
    request = first.request + bank.random.choice(_JOINTS) + second.request
    return [user(request), calls(uses, shown)], shown


def _grounded(bank: _Bank, item: Item) -> _Made:
    style = dress.draw(bank.random)
    shown = _shown(bank, style, [item], wanted=2)
    return _turn(bank, style, item, shown), shown


def _session(bank: _Bank, item: Item) -> _Made:
    """Two requests one after the other, to two of the tools shown."""
    style = dress.draw(bank.random)
    both = bank.candidates([item], 2)
    shown = _shown(bank, style, both)
    return [message for each in both for message in _turn(bank, style, each, shown)], shown


def _turn(bank: _Bank, style: dress.Dress, item: Item, shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Request, call, result and the sentence that tells what came of it."""
    spoken = _spoken(bank.random, item.tool)
    call = calls([style.use(item.family, item.tool, spoken.arguments)], shown)
    done = item.tool.done
    if done is None:
        return [user(spoken.request), call, result({"status": "ok"}), said(bank.random.choice(_DONE))]
    returned = {name: slot.draw(bank.random).value for name, slot in done.returned.items()}
    words = {name: each.text for name, each in spoken.said.items()} | {
        name: str(each) for name, each in returned.items()
    }
    return [user(spoken.request), call, result(returned), said(done.sentence.format_map(words))]


def _asked(bank: _Bank, item: Item) -> _Made:
    ask = bank.random.choice(item.tool.asks)
    style = dress.draw(bank.random)
    shown = _shown(bank, style, [item])
    spoken = speak(item.tool, ask.request, bank.random)
    words = {name: each.text for name, each in spoken.said.items()}
    return [user(_framed(bank.random, spoken.request)), said(ask.question.format_map(words))], shown


def _refused(bank: _Bank, item: Item) -> _Made:
    style = dress.draw(bank.random)
    foreign = [each for each in bank.items if each.family != item.family]
    offered = bank.random.sample(foreign, bank.random.choice((2, 2, 3)))
    shown = [style.tool(each.family, each.tool) for each in offered]
    first, second = (_lowered(each.tool.description) for each in offered[:2])
    answer = bank.random.choice(_REFUSALS).format(first=first, second=second)
    return [user(_framed(bank.random, _spoken(bank.random, item.tool).request)), said(answer)], shown


_MAKERS: Mapping[str, Callable[[_Bank, Item], _Made]] = {
    "single": _single,
    "parallel": _parallel,
    "grounded": _grounded,
    "session": _session,
    "asked": _asked,
    "refused": _refused,
}
_FITS: Mapping[str, Callable[[Tool], bool]] = {
    "single": lambda tool: True,
    "parallel": lambda tool: True,
    "grounded": lambda tool: tool.done is not None,
    "session": lambda tool: True,
    "asked": lambda tool: bool(tool.asks),
    "refused": lambda tool: True,
}


def _kind(number: int) -> str:
    """Of 40 rows 14 hold two turns, 2 two calls, 2 end with an answer, 3 with a question, 1 with a refusal."""
    match number % 40:
        case 3 | 23:
            return "parallel"
        case 7 | 27:
            return "grounded"
        case 9 | 19 | 29:
            return "asked"
        case 13:
            return "refused"
        case place:
            return "session" if place % 5 in (0, 1) or place == 38 else "single"


def _shown(bank: _Bank, style: dress.Dress, own: Sequence[Item], wanted: int | None = None) -> list[dict[str, Any]]:
    chosen = bank.candidates(own, max(wanted or bank.number(), len(own)))
    return [style.tool(item.family, item.tool) for item in chosen]


def _spoken(random: Random, tool: Tool) -> Spoken:
    return speak(tool, random.choice(tool.requests), random)


def _framed(random: Random, request: str) -> str:
    return random.choice(_OPENINGS) + request + random.choice(_ENDINGS)


def _lowered(description: str) -> str:
    return description[0].lower() + description[1:].rstrip(".")
