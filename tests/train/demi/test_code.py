"""Our own code rows: every solution passes its examples, every bug breaks one, and the build is the same every time."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator

import pytest

from macaron.train.data.rows import SftRow
from macaron.train.data.source import Builder
from macaron.train.demi.code import bugs, composed, own, shell, wording
from macaron.train.demi.code.function import Function, functions

from .building import build

BUILDERS: tuple[tuple[Builder, int], ...] = ((own.rows, 0), (composed.rows, 300), (bugs.rows, 0), (shell.rows, 150))


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
    assert len({task.name for task in tasks}) == len(tasks) >= 120
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


def test_the_two_forms_of_composed_tasks_agree_on_their_examples() -> None:
    for row in build(composed.rows, 300):
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
            test = doctest.DocTestParser().get_doctest(stub.replace('"""', "\n"), scope, name[1], None, 0)
            assert len(test.examples) == 2
            assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


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
