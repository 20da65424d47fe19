"""Rows from our own bank of programming tasks, each in several wordings."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from random import Random

from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.code import present, wording
from macaron.train.demi.code.function import Function, functions

MODULES = (
    "strings", "lists", "dicts", "numbers", "algorithms", "parsing", "classes", "grids", "records", "sequences",
    "digits", "series", "windows", "order", "texts", "dates", "walks", "functional",
)  # fmt: skip

Wording = Callable[[Function, Random], str]


def rows(context: BuildContext) -> Iterable[AnyRow]:
    """`limit` rows, or four a task: every task is completed twice before it is asked for in words."""
    made = _made(list(bank()), context.random)
    for number, row in enumerate(made, 1):
        yield row
        if number == context.limit:
            return


def bank() -> Iterator[Function]:
    """The tasks, in a fixed order."""
    folder = files("macaron.train.demi.code.bank")
    for module in MODULES:
        yield from functions(folder.joinpath(f"{module}.py").read_text(encoding="utf-8"))


def _made(tasks: Sequence[Function], random: Random) -> Iterator[SftRow]:
    for pass_number, ask in enumerate((wording.complete, wording.complete, wording.plain, wording.nameless)):
        for task in random.sample(tasks, len(tasks)):
            yield _row(task, pass_number, ask, random)


def _row(task: Function, number: int, ask: Wording, random: Random) -> SftRow:
    # HumanEval and real users show functions with and without types, so both are asked for.
    shown = task if task.is_class or random.random() < 0.5 else untyped(task)
    if ask is wording.complete:
        return _completed(task.name, number, present.restyled(shown, random), random)
    remark = wording.remark(shown) if random.random() < 0.5 else ""
    return SftRow(
        id=f"code-{task.name}-{number}",
        source="macaron-code",
        group=task.name,
        messages=({"role": "user", "content": ask(shown, random)}, wording.answer(shown.code, remark)),
    )


def _completed(name: str, number: int, shown: Function, random: Random) -> SftRow:
    """Imports are kept in the request and the answer, or said to be in place and left out of both."""
    if shown.imports and random.random() < 0.4:
        request, shown = wording.placed(shown, random), shown._replace(imports=())
    else:
        request = wording.complete(shown, random)
    return SftRow(
        id=f"code-{name}-{number}",
        source="macaron-code",
        group=name,
        messages=({"role": "user", "content": request}, wording.answer(shown.code)),
    )


def untyped(task: Function) -> Function:
    """The function without annotations in its head, and without imports that only they need."""
    tree = ast.parse(f"{task.signature}\n    pass")
    head = tree.body[0]
    assert isinstance(head, ast.FunctionDef)
    for each in ast.walk(head.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    head.returns = None
    signature = ast.unparse(head).rsplit("\n", 1)[0]
    body = re.sub(r"^(\s+\w+): [^=\n]+ = ", r"\1 = ", task.body, flags=re.MULTILINE)
    needed = [line for line in task.imports if re.search(rf"\b{line.split()[-1]}\b", body + task.docstring)]
    return task._replace(signature=signature, body=body, imports=tuple(needed))
