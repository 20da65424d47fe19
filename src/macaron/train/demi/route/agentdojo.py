"""AgentDojo's user tasks of the banking and travel suites, read from the source without importing it.

The workspace and Slack suites are left out: most of their tasks are one step or a short chain of steps with an office
tool, and the label rules do not clearly settle which of them are coordination. A banking task is kept if it names the
service it is about; the others only say to do what a file says. Prompts that are assembled at run time are filled from
the constants of their class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from macaron.train.data.rows import AnyRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.requests import Request, mentions, sample, single_turn, squeeze

PACKAGE = "agentdojo==0.1.35"
LABEL = "L1"
SUITES = ("banking", "travel")
SERVICE_WORDS = (
    "pay", "spend", "spent", "transaction", "account", "rent", "refund", "bill", "money", "recurring", "hotel",
    "restaurant", "flight", "car", "book", "trip", "travel",
)  # fmt: skip


def rows(context: BuildContext) -> Iterator[AnyRow]:
    """The prompts, each once."""
    folder = context.packages.folder(PACKAGE) / "agentdojo" / "default_suites" / "v1"
    prompts = (
        Request(squeeze(prompt), f"agentdojo:{suite}")
        for suite in SUITES
        for prompt in _prompts((folder / suite / "user_tasks.py").read_text(encoding="utf-8"))
        if mentions(prompt, SERVICE_WORDS)
    )
    return single_turn("agentdojo", LABEL, sample(context.random, prompts, context.limit))


def _prompts(source: str) -> Iterator[str]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            constants: dict[str, str] = {}
            for name, value in _assignments(node):
                constants[name] = text = _text(value, constants)
                if name == "PROMPT":
                    yield text


def _assignments(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for statement in node.body:
        match statement:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                yield name, value


def _text(node: ast.expr, constants: dict[str, str]) -> str:
    """A string expression without running it; what is not a string or a known name counts for nothing."""
    match node:
        case ast.Constant(value):
            return str(value)
        case ast.JoinedStr(values):
            return "".join(_text(value, constants) for value in values)
        case ast.FormattedValue(value):
            return _text(value, constants)
        case ast.Name(name):
            return constants.get(name, "")
        case _:
            return ""
