"""Rows in which a function of our bank has one mistake: the user shows it, the answer repairs it and names it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.code.function import Function
from macaron.train.demi.code.own import bank
from macaron.train.demi.code.wording import answer

_SLIPS = (
    (re.compile(r"if (.*) == "), r"if \1 != ", "`==`", "`!=`"),
    (re.compile(r"if (.*) < "), r"if \1 > ", "`<`", "`>`"),
    (re.compile(r"if (.*) > "), r"if \1 < ", "`>`", "`<`"),
    (re.compile(r"if (.*) not in "), r"if \1 in ", "`not in`", "`in`"),
    (re.compile(r" \+= "), " -= ", "`+=`", "`-=`"),
    (re.compile(r"return (.*) \+ "), r"return \1 - ", "`+`", "`-`"),
    (re.compile(r"return (.*) and "), r"return \1 or ", "`and`", "`or`"),
    (re.compile(r"max\("), "min(", "`max`", "`min`"),
    (re.compile(r"range\(1, (\w+) \+ 1\)"), r"range(1, \1)", "`+ 1`", "none"),
)  # fmt: skip
_REQUESTS = (
    "This function should {job}, but it gives wrong results. What is wrong?\n{code}",
    "Find the bug and fix it:\n{code}\nIt should {job}.",
    "My `{name}` does not work: {example}\n{code}",
    "{code}\nWhy does this not {job}?",
)


class Bug(NamedTuple):
    """A function, its body with one slip, and what it needed and had instead."""

    function: Function
    broken: str
    right: str
    wrong: str


def rows(context: BuildContext) -> Iterable[AnyRow]:
    """`limit` rows, or one a bug."""
    found = list(bugs())
    context.random.shuffle(found)
    for bug in found[: context.limit or len(found)]:
        function = bug.function
        job = function.prose.split(". ")[0].rstrip(".")
        broken = function._replace(body=bug.broken).code
        request = context.random.choice(_REQUESTS).format(
            job=job[:1].lower() + job[1:],
            name=function.name,
            code=f"```python\n{broken}\n```",
            example=_expected(function),
        )
        remark = f"It had {bug.wrong} where {bug.right} is needed."
        yield SftRow(
            id=f"bug-{function.name}",
            source="macaron-bugs",
            group=function.name,
            messages=({"role": "user", "content": request}, answer(function.code, remark)),
        )


def bugs() -> Iterator[Bug]:
    """One slip in every function that has a place for one. Loops with `while` are left alone: they might never end."""
    for function in bank():
        if function.is_class or "while " in function.body:
            continue
        for pattern, replacement, right, wrong in _SLIPS:
            broken = pattern.sub(replacement, function.body, count=1)
            if broken != function.body:
                yield Bug(function, broken, right, wrong)
                break


def _expected(function: Function) -> str:
    found = re.search(r">>> (.+)\n(\S.*)", function.docstring)
    return f"`{found[1]}` should be `{found[2]}`." if found else "the result is wrong."
