"""Programming tasks composed of parts: which elements of a list, what of each, and what of them all.

A task is written in two ways, as one expression and as a loop; its examples are what the code gives when it is run, and
a task whose two forms differ is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, NamedTuple

from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.code import present, wording
from macaron.train.demi.code.function import Function
from macaron.train.demi.code.own import untyped
from macaron.train.demi.code.parts import (
    GATHERS,
    NUMBER_MAKES,
    NUMBER_PICKS,
    WORD_MAKES,
    WORD_PICKS,
    Gather,
    Make,
    Pick,
)

DEFAULT_ROWS = 400
TRIES = 8
_WORDS = (
    "apple", "banana", "cat", "door", "eel", "fig", "anna", "oven", "tree", "none", "egg", "ocean", "level",
    "sun", "area", "noon",
)  # fmt: skip
_TOO_CLOSE = (
    ("positive", "", "list"),
    ("starting", "", "list"),
    ("containing", "", "list"),
    ("odd", "squares", "sum"),
    ("even_length", "", "sorted"),
    ("even", "", "smallest"),
    ("negative", "", "largest"),
    ("positive", "", "smallest"),
    ("two_digit", "", "sum"),
)
"""Combinations that a HumanEval task asks for, or nearly so; they are left out."""


class Task(NamedTuple):
    noun: str
    pick: Pick
    make: Make
    gather: Gather

    @property
    def key(self) -> str:
        return f"{self.noun}-{self.pick.name}-{self.make.name}-{self.gather.name}"

    @property
    def name(self) -> str:
        return "_".join(part for part in (self.gather.name, self.pick.name, self.make.name or self.noun) if part)

    @property
    def words(self) -> str:
        things = " ".join(part for part in ("the", self.pick.before, self.noun, self.pick.after) if part)
        return self.gather.words.format(things=self.make.words + things)

    @property
    def signature(self) -> str:
        kind = "int" if self.noun == "numbers" else "str"
        more = f", {self.pick.parameter[0]}: {self.pick.parameter[1]}" if self.pick.parameter else ""
        returned = self.gather.returns.format(type=self.make.type)
        return f"def {self.name}({self.noun}: list[{kind}]{more}) -> {returned}:"

    def short(self) -> str:
        items = f"{_renamed(self.make.expression, self.noun)} for {self.noun[:-1]} in {self.noun}"
        expression = self.gather.short.format(items=f"{items} if {_renamed(self.pick.condition, self.noun)}")
        return f"    return {expression}"

    def loop(self) -> str:
        element = _renamed(self.make.expression, self.noun)
        step = self.gather.step.format(e=element).replace("\n", "\n            ")
        lines = [
            *self.gather.start.format().split("\n"),
            f"for {self.noun[:-1]} in {self.noun}:",
            f"    if {_renamed(self.pick.condition, self.noun)}:",
            f"        {step}",
            f"return {self.gather.end}",
        ]
        return "\n".join(f"    {line}" for line in lines if line)

    def imports(self, body: str) -> tuple[str, ...]:
        needed = (("math.prod", "import math"), ("Counter(", "from collections import Counter"))
        return tuple(line for mark, line in needed if mark in body)


def rows(context: BuildContext) -> Iterable[AnyRow]:
    """`limit` rows, or 400, each of another task."""
    tasks = list(all_tasks())
    chosen = context.random.sample(tasks, min(context.limit or DEFAULT_ROWS, len(tasks)))
    for number, task in enumerate(chosen):
        function = written(task, context.random)
        ask = (wording.complete, wording.complete, wording.plain, wording.nameless)[number % 4]
        if ask is wording.complete:
            function = present.restyled(function, context.random)
        remark = wording.remark(function) if ask is not wording.complete and context.random.random() < 0.4 else ""
        request = {"role": "user", "content": ask(function, context.random)}
        yield SftRow(
            id=f"composed-{task.key}",
            source="macaron-code-composed",
            group=f"{task.pick.name}-{task.gather.name}",
            messages=(request, wording.answer(function.code, remark)),
        )


def all_tasks() -> Iterator[Task]:
    """Every combination that makes sense, in a fixed order."""
    for noun, picks, makes in (("numbers", NUMBER_PICKS, NUMBER_MAKES), ("words", WORD_PICKS, WORD_MAKES)):
        for pick in picks:
            for make in makes:
                for gather in GATHERS:
                    fits = make.type in gather.types or ("plain" in gather.types and not make.name)
                    if fits and (pick.name, make.name, gather.name) not in _TOO_CLOSE:
                        yield Task(noun, pick, make, gather)


def written(task: Task, random: Random) -> Function:
    """The task with examples, as a loop or as an expression, with types or without."""
    body = task.loop() if task.gather.clever or random.random() < 0.5 else task.short()
    parameters = (task.noun, *(task.pick.parameter[:1] if task.pick.parameter else ()))
    examples = "\n".join(f">>> {call}\n{value!r}" for call, value in _telling(task, random))
    words = "\n".join([task.words, "", examples])
    function = Function(task.name, parameters, task.signature, words, body, task.imports(body), frozenset())
    return function if random.random() < 0.5 else untyped(function)


def _telling(task: Task, random: Random) -> list[tuple[str, Any]]:
    """Examples that do not all have the same value, if a few tries find such."""
    for _ in range(TRIES):
        examples = list(_examples(task, random))
        if len({repr(value) for _, value in examples}) > 1:
            break
    return examples


def _examples(task: Task, random: Random) -> Iterator[tuple[str, Any]]:
    for _ in range(random.choice((2, 2, 3))):
        arguments = [repr(_list(task.noun, random))]
        if task.pick.parameter:
            arguments.append(repr(random.choice(task.pick.parameter[2])))
        call = f"{task.name}({', '.join(arguments)})"
        values = [_value(task, body, call) for body in (task.loop(), task.short())]
        if values[0] != values[1]:
            raise AssertionError(f"The two forms of {task.name} differ on {call}: {values}")
        # An example whose value is None would print nothing.
        yield (call, values[0]) if values[0] is not None else (f"{call} is None", True)


def _value(task: Task, body: str, call: str) -> Any:
    scope: dict[str, Any] = {}
    # Only code of this module's own making is run.
    exec("\n".join([*task.imports(body), task.signature, body]), scope)
    return eval(call, scope)


def _list(noun: str, random: Random) -> list[Any]:
    if noun == "words":
        return random.sample(_WORDS, random.choice((0, 3, 4, 5)))
    return [random.choice((0, 5, 12, random.randint(-9, 40))) for _ in range(random.choice((0, 3, 4, 5, 6)))]


def _renamed(expression: str, noun: str) -> str:
    """The expression with the loop's variable in the place of `x`."""
    return re.sub(r"\bx\b", noun[:-1], expression)
