"""Rows from the train side of the Berkeley Function-Calling Leaderboard, in scenes of cases that share one tool list.

Every case comes up several times, each time among the tools of other cases: so it is practised more often than it is
there, and the rows of a scene, which begin alike, are cheap to train on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from random import Random
from typing import Any, NamedTuple

import msgspec

from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.bfcl import BfclCase, load, split_of
from macaron.train.demi.tools.shape import ToolUse, calls, compact, function_tool, shorten, user

REQUIREMENT = "bfcl-eval==2026.3.23"
DRESSINGS = 2
"""How often a case comes up, each time among other tools; one of the leaderboard's own authors with a single tool comes
up once, since the specialist is judged on the others."""
WIDTHS = (64, 140, 300)
"""Characters of a description; a scene that would be too long gets the next smaller one."""
MAX_TOOLS = 5
MAX_CHARACTERS = 1_900
"""Of a scene's tools, about 450 tokens."""
MAX_ROW = 2_600
"""Bytes of tools, question and answer."""
MAX_QUESTION = 420
MAX_ANSWER = 400
MAX_ROWS = 8
"""Rows of one scene, and rows with the same tools in one round: some cases ask one question of them in forty ways."""
_OPEN = 40
"""Scenes that are filled at the same time."""
_SINGLE = ("simple_python", "multiple", "live_simple", "live_multiple")
_PARALLEL = ("parallel", "parallel_multiple", "live_parallel", "live_parallel_multiple")
_PARALLEL_SHARE = 12
"""One case in so many has several calls."""
_COMMON = frozenset(
    ("get", "find", "search", "calculate", "book", "data", "from", "with", "info", "list", "create", "check", "play")
)

_Function = dict[str, Any]


class _Asked(NamedTuple):
    """A case as a row needs it."""

    case: BfclCase
    question: str
    uses: Sequence[ToolUse]

    @property
    def called(self) -> set[str]:
        return {use.name for use in self.uses}


class _Scene(NamedTuple):
    functions: dict[str, _Function]
    asked: list[_Asked]
    wanted: int

    def takes(self, other: _Scene) -> bool:
        """Whether the cases of `other` fit in, and no tool of the one could be meant where the other's is right."""
        strange = {name: function for name, function in other.functions.items() if name not in self.functions}
        both = {**self.functions, **strange}
        return (
            len(self.asked) + len(other.asked) <= MAX_ROWS
            and len(both) <= self.wanted
            and all(self.functions.get(name, function) == function for name, function in other.functions.items())
            and not any(_confusable(mine, name) for mine in self.functions for name in strange)
            and _length(both.values(), WIDTHS[0]) <= MAX_CHARACTERS
        )

    def take(self, other: _Scene) -> None:
        self.functions.update(other.functions)
        self.asked.extend(other.asked)


def rows(context: BuildContext) -> Iterable[AnyRow]:
    """One call among two to four tools, and now and then two calls. What does not fit a short row is left out."""
    cases = [case for case in load(context.packages.folder(REQUIREMENT)) if split_of(case) == "train"]
    made = (row for round_ in range(DRESSINGS) for row in _round(cases, round_, context.random))
    return islice(made, context.limit or None)


def _round(cases: Sequence[BfclCase], number: int, random: Random) -> Iterator[SftRow]:
    """Every case that fits, once."""
    singles = _asked(cases, _SINGLE[number > 0 :], random)
    several = _asked(cases, _PARALLEL, random)[: len(singles) // (_PARALLEL_SHARE - 1)]
    small = [function for each in singles for function in each.case.functions if _length([function], WIDTHS[0]) < 420]
    for scene in _packed(_alike([*singles, *several], random), random):
        _add_distractors(scene, small, random)
        tools = _dressed(scene, random)
        for each in scene.asked:
            messages = (user(each.question), calls(each.uses, tools))
            if len(msgspec.json.encode((messages, tools))) > MAX_ROW:
                continue
            yield SftRow(
                id=f"{each.case.id}~{number}" if number else each.case.id,
                source="bfcl",
                group=each.case.group,
                messages=messages,
                tools=tools,
            )


def _asked(cases: Sequence[BfclCase], categories: Sequence[str], random: Random) -> list[_Asked]:
    found = [each for case in cases if case.category in categories and (each := _read(case)) is not None]
    random.shuffle(found)
    return found


def _read(case: BfclCase) -> _Asked | None:
    question = [message["content"].strip() for message in case.messages if message["role"] == "user"]
    if len(case.messages) != len(question) or len(question) != 1 or len(question[0]) > MAX_QUESTION:
        return None
    functions = {function["name"]: function for function in case.functions}
    uses = [
        ToolUse(name, chosen(acceptable, functions[name]["parameters"], question[0]))
        for answer in case.answers
        for name, acceptable in answer.items()
    ]
    if len(uses) > 3 or len(msgspec.json.encode([use.arguments for use in uses])) > MAX_ANSWER:
        return None
    # A few answers hold what their function does not have.
    if any(not use.arguments.keys() <= functions[use.name]["parameters"].get("properties", {}).keys() for use in uses):
        return None
    return _Asked(case, question[0], uses)


def _alike(asked: Sequence[_Asked], random: Random) -> list[_Scene]:
    """The cases with the same tools together, in random order, with no more tools than a scene has."""
    groups: dict[bytes, list[_Asked]] = {}
    for each in asked:
        tools = sorted(each.case.functions, key=lambda function: str(function["name"]))
        groups.setdefault(msgspec.json.encode(tools), []).append(each)
    scenes = [_first(group[:MAX_ROWS], random) for group in groups.values()]
    return [scene for scene in scenes if _length(scene.functions.values(), WIDTHS[0]) <= MAX_CHARACTERS]


def _first(asked: list[_Asked], random: Random) -> _Scene:
    """A scene of the tools that some cases call, and of one or more of their other tools as far as there is room."""
    most = random.choice((2, 3, 4))
    functions = {function["name"]: function for function in asked[0].case.functions}
    kept = {name: functions[name] for each in asked for name in sorted(each.called)}
    for name in random.sample(sorted(functions), len(functions)):
        more = {**kept, name: functions[name]}
        if len(more) <= most and _length(more.values(), WIDTHS[0]) <= MAX_CHARACTERS:
            kept = more
    return _Scene(kept, asked, random.choice((4, MAX_TOOLS)))


def _packed(small: Sequence[_Scene], random: Random) -> Iterator[_Scene]:
    """Scenes put together as far as they go."""
    filling: list[_Scene] = []
    for scene in random.sample(small, len(small)):
        if (place := next((other for other in filling if other.takes(scene)), None)) is not None:
            place.take(scene)
            continue
        filling.append(scene)
        if len(filling) > _OPEN:
            yield filling.pop(0)
    yield from filling


def _add_distractors(scene: _Scene, pool: Sequence[_Function], random: Random) -> None:
    """Tools of other cases, until there are at least two."""
    for other in random.sample(pool, len(pool)):
        if len(scene.functions) >= 2:
            return
        if not any(_confusable(name, other["name"]) for name in scene.functions):
            scene.functions[other["name"]] = other


def _dressed(scene: _Scene, random: Random) -> tuple[dict[str, Any], ...]:
    """The tools as the rows show them, described as fully as chance and the room allow."""
    wanted = random.choice(WIDTHS)
    width = max(
        (each for each in WIDTHS if each <= wanted and _length(scene.functions.values(), each) <= MAX_CHARACTERS),
        default=WIDTHS[0],
    )
    names = random.sample(sorted(scene.functions), len(scene.functions))
    return tuple(_tool(scene.functions[name], width) for name in names)


def _confusable(first: str, second: str) -> bool:
    """Whether two tools are named for the same thing, so that a request could mean either."""
    return bool(_words(first) & _words(second))


def _words(name: str) -> set[str]:
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    return {part.lower().rstrip("s") for part in parts if len(part) > 2} - _COMMON


def _tool(function: _Function, width: int) -> dict[str, Any]:
    full = width > WIDTHS[0]
    parameters = compact(function["parameters"], width=width, full=full)
    return function_tool(function["name"], shorten(function["description"], width, full=full), parameters)


def _length(functions: Iterable[_Function], width: int) -> int:
    return len(msgspec.json.encode([_tool(function, width)["function"] for function in functions]))


def chosen(acceptable: Mapping[str, Sequence[Any]], schema: Mapping[str, Any], question: str = "") -> dict[str, Any]:
    """One set of arguments among the acceptable ones: the first value of each. What may be left out is left out
    unless the question says it.
    """
    properties = schema.get("properties", {})
    required = set(schema.get("required", ()))
    arguments = {}
    for name, values in acceptable.items():
        stated = [value for value in values if value != ""]
        mentioned = [value for value in stated if _mentions(question, value)]
        if mentioned or name in required or len(stated) == len(values):
            value = (mentioned or stated or [""])[0]
            arguments[name] = _plain(value, properties.get(name, {}), question)
    return arguments


def _mentions(question: str, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    return re.search(rf"(?<![\w.]){re.escape(str(value))}(?![\w]|\.\d)", question, re.IGNORECASE) is not None


def _plain(value: Any, schema: Mapping[str, Any], question: str) -> Any:
    match value:
        case dict():
            return chosen(value, schema, question)
        case list():
            return [_plain(each, schema.get("items", {}), question) for each in value]
        case _:
            return value
