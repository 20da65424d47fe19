"""Finds the function in what a model wrote."""

from __future__ import annotations

import ast
import textwrap
import warnings
from typing import NamedTuple

CODE_LIMIT = 32_000
_FENCE = "```"


class Written(NamedTuple):
    """The program text that defines the function, or the reason why there is none."""

    code: str = ""
    reason: str = ""


def function_written(text: str, name: str, prompt: str) -> Written:
    """The text that defines `name`: the answer's code alone, or as the continuation of `prompt`, which ends inside it.

    What stands in `prompt` before the function, its imports and helpers, is kept in front.

    Reasons: `no code`, `does not parse`, `wrong name`.
    """
    block = code_block(text, name)
    if not block.strip():
        return Written(reason="no code")
    alone = _parsed(block)
    if alone is not None and _defines(alone, name):
        return Written(_before(prompt, name) + block)
    if alone is not None and any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in alone.body):
        return Written(reason="wrong name")
    for body in (block, textwrap.indent(textwrap.dedent(block), "    "), textwrap.indent(block, "    ")):
        whole = f"{prompt.rstrip()}\n{body}\n"
        tree = _parsed(whole)
        if tree is not None and _has_body(tree, name):
            return Written(whole)
    return Written(reason="does not parse" if alone is None else "wrong name")


def code_block(text: str, name: str) -> str:
    """The first fenced block that mentions the function's definition, else the first, else the text as it is. A block
    that is not closed goes to the end."""
    blocks = _blocks(text[:CODE_LIMIT])
    if not blocks:
        return text[:CODE_LIMIT]
    return next((block for block in blocks if f"def {name}(" in block), blocks[0])


def _blocks(text: str) -> list[str]:
    blocks: list[list[str]] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith(_FENCE):
            inside = not inside
            if inside:
                blocks.append([])
        elif inside:
            blocks[-1].append(line)
    return ["".join(lines) for lines in blocks]


def _parsed(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _defines(tree: ast.Module, name: str) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)


def _has_body(tree: ast.Module, name: str) -> bool:
    """Whether the function holds more than its docstring."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return len(node.body) > (ast.get_docstring(node) is not None)
    return False


def _before(prompt: str, name: str) -> str:
    at = prompt.rfind(f"def {name}(")
    return prompt[:at] if at > 0 else ""
