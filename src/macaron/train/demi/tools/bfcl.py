"""Rows from the train side of the Berkeley Function-Calling Leaderboard, with other cases' tools as distractors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.bfcl import MULTI_CANDIDATE, BfclCase, load, split_of
from macaron.train.demi.tools.shape import ToolUse, calls, compact, function_tool, shorten, user

REQUIREMENT = "bfcl-eval==2026.3.23"
MAX_CHARACTERS = 1_500
"""Of question, tools and answer, about 330 tokens; 150 more stand before every row."""
MAX_CHARACTERS_LIVE = 2_100
"""Of a case that itself has several tools, as people wrote it."""
MAX_SAME_TOOLS = 8
"""Rows with the same tools: some cases ask one question of them in forty ways."""
MAX_QUESTION = 420
_WIDTH = 64
_MIXED = ("simple_python", "multiple", "live_simple", "live_multiple")
_PARALLEL = ("parallel", "parallel_multiple", "live_parallel", "live_parallel_multiple")
_PARALLEL_SHARE = 12
"""One row in so many has several calls."""


def rows(context: BuildContext) -> Iterable[AnyRow]:
    """One call among two to four tools, and now and then two calls. What does not fit a short row is left out."""
    cases = [case for case in load(context.packages.folder(REQUIREMENT)) if split_of(case) == "train"]
    pool = [function for case in cases for function in case.functions if len(msgspec.json.encode(function)) < 420]
    context.random.shuffle(cases)
    made = _balanced(cases, pool, context.random)
    for number, row in enumerate(made, 1):
        yield row
        if number == context.limit:
            return


def _balanced(cases: Sequence[BfclCase], pool: Sequence[dict[str, Any]], random: Random) -> Iterator[SftRow]:
    several = (row for case in cases if case.category in _PARALLEL and (row := _row(case, pool, random)))
    # What the specialist is judged on comes first: several tools, then what real users wrote.
    singles = sorted(
        (case for case in cases if case.category in _MIXED),
        key=lambda case: (case.category not in MULTI_CANDIDATE, not case.category.startswith("live")),
    )
    seen: Counter[frozenset[str]] = Counter()
    number = 0
    for case in singles:
        names = frozenset(function["name"] for function in case.functions)
        row = _row(case, pool, random) if seen[names] < MAX_SAME_TOOLS else None
        if row is None:
            continue
        seen[names] += 1
        yield row
        number += 1
        if number % _PARALLEL_SHARE == 0 and (extra := next(several, None)) is not None:
            yield extra


def _row(case: BfclCase, pool: Sequence[dict[str, Any]], random: Random) -> SftRow | None:
    question = [message for message in case.messages if message["role"] == "user"]
    if len(case.messages) != len(question) or len(question) != 1 or len(question[0]["content"]) > MAX_QUESTION:
        return None
    if len(case.answers) > 3:
        return None
    functions = {function["name"]: function for function in case.functions}
    uses = [
        ToolUse(name, chosen(acceptable, functions[name]["parameters"], question[0]["content"]))
        for answer in case.answers
        for name, acceptable in answer.items()
    ]
    tools = [_tool(function) for function in _with_distractors(list(functions.values()), pool, random)]
    answer = calls(uses, tools)
    messages = (user(question[0]["content"].strip()), answer)
    limit = MAX_CHARACTERS_LIVE if case.category in MULTI_CANDIDATE else MAX_CHARACTERS
    if len(msgspec.json.encode([messages, tools])) > limit:
        return None
    return SftRow(id=case.id, source="bfcl", group=case.group, messages=messages, tools=tuple(tools))


def _with_distractors(
    own: list[dict[str, Any]], pool: Sequence[dict[str, Any]], random: Random
) -> list[dict[str, Any]]:
    wanted = random.choice((2, 2, 3))
    names = {function["name"] for function in own}
    while len(own) < wanted:
        other = random.choice(pool)
        if other["name"] not in names:
            names.add(other["name"])
            own.append(other)
    random.shuffle(own)
    return own


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    parameters = compact(function["parameters"], width=_WIDTH)
    return function_tool(function["name"], shorten(function["description"], _WIDTH), parameters)


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
