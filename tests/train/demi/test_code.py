"""Our own code rows: every solution passes its examples, every bug breaks one, and the build is the same every time."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from random import Random

import pytest

from macaron.train.data.rows import SftRow
from macaron.train.data.source import Builder
from macaron.train.demi.code import bugs, chains, composed, own, present, shell, wording
from macaron.train.demi.code.function import Function, functions
from macaron.train.demi.code.step import steps
from macaron.train.demi.code.values import KINDS

from .building import build

BUILDERS: tuple[tuple[Builder, int], ...] = (
    (own.rows, 0),
    (composed.rows, 300),
    (chains.rows, 300),
    (bugs.rows, 0),
    (shell.rows, 150),
)


def failures(function: Function, body: str | None = None) -> int:
    """How many of the function's examples fail; one where it cannot even be run."""
    code = function.code if body is None else function._replace(body=body).code
    scope: dict[str, object] = {}
    exec(code, scope)
    test = doctest.DocTestParser().get_doctest(function.docstring, scope, function.name, None, 0)
    assert test.examples, function.name
    said: list[str] = []
    return doctest.DocTestRunner(verbose=False).run(test, out=said.append).failed


def answer_of(row: SftRow) -> str:
    return str(row.messages[-1]["content"])


def blocks(text: str) -> Iterator[tuple[str, str]]:
    for found in re.finditer(r"^```(\w+)\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE):
        yield found[1], found[2]


def test_every_task_passes_its_own_examples_with_and_without_types() -> None:
    tasks = list(own.bank())
    assert len({task.name for task in tasks}) == len(tasks) >= 300
    for task in tasks:
        assert failures(task) == 0, task.name
        assert not task.free, task.name
        if not task.is_class:
            bare = own.untyped(task)
            assert "->" not in bare.signature
            assert failures(bare) == 0, task.name


def test_every_task_has_an_example_and_says_what_to_do() -> None:
    for task in own.bank():
        assert ">>>" in task.docstring
        assert task.is_class or wording.is_order(task.prose), task.name
        assert len(task.code) < 1_600


def test_every_bug_breaks_an_example() -> None:
    found = list(bugs.bugs())
    assert len(found) >= 60
    for bug in found:
        try:
            broken = failures(bug.function, bug.broken) > 0
        except Exception:
            broken = True
        assert broken, bug.function.name


@pytest.mark.parametrize("builder", [composed.rows, chains.rows])
def test_the_code_of_a_made_task_passes_the_examples_that_are_shown(builder: Builder) -> None:
    for row in build(builder, 300):
        (language, code), *others = blocks(answer_of(row))
        assert language == "python"
        assert not others
        request = row.messages[0]["content"]
        name = re.search(r"def (\w+)", code)
        assert name is not None
        if ">>>" in request:
            scope: dict[str, object] = {}
            exec(code, scope)
            stub = next((block for _, block in blocks(request)), request)
            shown = stub.replace('"""', "\n").replace("'''", "\n")
            test = doctest.DocTestParser().get_doctest(shown, scope, name[1], None, 0)
            assert len(test.examples) >= 2
            assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_every_step_joins_kinds_that_exist_and_is_used() -> None:
    every = list(steps())
    assert len({(step.takes, step.name) for step in every}) == len(every) > 120
    for step in every:
        assert step.words or step.noun, step.name
        assert step.short or step.loop or step.keep or step.each, step.name
        assert KINDS[step.takes].example is not None
        assert step.gives in KINDS
        words = f"{step.words} {step.noun}"
        assert all(str(each[0]) in words for each in step.parameters), step.name
    used = {name for row in build(chains.rows, 2_000) for name in row.id.split("-")[2:]}
    assert used == {step.name for step in every}


def test_chains_have_two_to_four_steps_and_are_all_different() -> None:
    rows = build(chains.rows, 300)
    assert len({row.id for row in rows}) == 300
    sizes = [row.id.count("-") - 1 for row in rows]
    assert set(sizes) == {2, 3, 4}
    assert sizes.count(2) < 0.7 * len(sizes)


def test_whatever_the_form_of_a_docstring_it_parses_and_keeps_its_examples() -> None:
    random = Random(1)
    for task in own.bank():
        for _ in range(6):
            shown = present.restyled(task, random)
            docstring = ast.get_docstring(ast.parse(present.head(shown, random)).body[-1])  # type: ignore[arg-type]
            assert docstring is not None
            assert docstring.split()[:3] == task.docstring.split()[:3]
            assert failures(shown) == 0 if ">>>" in shown.docstring else True


def test_a_head_takes_the_types_of_typing_with_their_import() -> None:
    head = "def pick(items: list[dict[str, int]], at: int | None = None) -> str | None:"
    source = head + '\n    """Pick."""\n    return None\n'
    (read,) = functions(source)
    typed = present.with_typing(read)
    assert typed.signature == "def pick(items: List[Dict[str, int]], at: Optional[int] = None) -> Optional[str]:"
    assert typed.imports == ("from typing import Dict, List, Optional",)


def test_imports_that_are_in_place_are_said_and_not_repeated() -> None:
    rows = [row for row in build(own.rows) if "These imports are in place" in row.messages[0]["content"]]
    assert len(rows) > 10
    for row in rows:
        assert not re.search(r"^(?:import|from) ", answer_of(row), re.MULTILINE)


def test_composed_tasks_are_all_different() -> None:
    tasks = list(composed.all_tasks())
    assert len({task.key for task in tasks}) == len(tasks) > 1_000
    rows = build(composed.rows, 300)
    assert len({row.id for row in rows}) == 300


@pytest.mark.parametrize(("builder", "limit"), BUILDERS)
def test_the_same_seed_gives_the_same_rows_and_another_seed_others(builder: Builder, limit: int) -> None:
    once = build(builder, limit)
    assert build(builder, limit) == once
    assert build(builder, limit, seed="b") != once
    assert not limit or len(once) == limit


@pytest.mark.parametrize(("builder", "limit"), BUILDERS)
def test_an_answer_is_one_fenced_block_and_at_most_a_sentence_or_two(builder: Builder, limit: int) -> None:
    for row in build(builder, limit):
        answer = answer_of(row)
        assert answer.startswith("```")
        assert len(list(blocks(answer))) == 1, answer
        after = answer.rpartition("```")[2].strip()
        assert "\n" not in after
        assert len(after) < 260


@pytest.mark.parametrize("builder", [own.rows, bugs.rows])
def test_the_wordings_of_a_task_share_its_group(builder: Builder) -> None:
    for row in build(builder):
        assert f"-{row.group}" in row.id


def test_a_completion_starts_from_code_that_parses() -> None:
    for task in own.bank():
        ast.parse(task.stub)


def test_a_snippet_leaves_no_name_open() -> None:
    for row in build(shell.rows, 150):
        for message in row.messages:
            assert not re.search(r"<\w+>", message["content"]), message["content"]


def test_an_order_becomes_what_something_does() -> None:
    assert wording.third_person("Return the sum.") == "returns the sum."
    assert wording.third_person("Multiply and return it.") == "multiplies and returns it."
    assert wording.third_person("Compress text.") == "compresses text."


def test_a_function_is_read_with_the_imports_and_names_it_needs() -> None:
    source = (
        "import os.path as p\nfrom math import sqrt, pi\n\nLIMIT = 3\n\n\n"
        'def root(x, y=None):\n    """Return the root.\n\n    More.\n    """\n\n'
        "    if x > LIMIT:\n        return sqrt(x)\n"
        "    return p.join(x)\n\n\ndef silent(x):\n    return x\n"
    )
    (read,) = functions(source)
    assert read.name == "root"
    assert read.parameters == ("x", "y")
    assert read.signature == "def root(x, y=None):"
    assert read.summary == "Return the root."
    assert read.imports == ("import os.path as p", "from math import sqrt")
    assert read.free == {"LIMIT"}
    assert read.body.startswith("    if x > LIMIT:")
