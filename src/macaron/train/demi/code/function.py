"""A documented function or class read from source text, never imported."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterator
from typing import NamedTuple


class Function(NamedTuple):
    """One definition of a module.

    Attributes:
        signature: its head, such as `def double(n: int) -> int:`, and for a class its `class` line.
        docstring: cleaned of indentation.
        body: its lines without the docstring, indented as in a module.
        imports: the module's import lines that it needs.
        free: global names it needs besides builtins and what it imports.
    """

    name: str
    parameters: tuple[str, ...]
    signature: str
    docstring: str
    body: str
    imports: tuple[str, ...]
    free: frozenset[str]

    @property
    def summary(self) -> str:
        """The docstring's first paragraph on one line."""
        return " ".join(self.docstring.split("\n\n")[0].split())

    @property
    def prose(self) -> str:
        """The docstring without its examples, on one line."""
        kept = [part for part in self.docstring.split("\n\n") if ">>>" not in part]
        return " ".join(" ".join(kept).split())

    @property
    def code(self) -> str:
        """What defines it, ready to run."""
        return "\n".join([*self.imports, *(["", ""] if self.imports else []), self.signature, self.body])

    @property
    def stub(self) -> str:
        """Imports, head and docstring: what a completion starts from."""
        lines = [f"    {line}" if line else "" for line in self.docstring.splitlines()]
        quoted = '    """' + "\n".join(lines).lstrip() + '\n    """'
        return "\n".join([*self.imports, *(["", ""] if self.imports else []), self.signature, quoted])

    @property
    def is_class(self) -> bool:
        return self.signature.startswith("class ")


def functions(source: str) -> Iterator[Function]:
    """The module's own documented functions and classes, in order.

    Raises:
        SyntaxError: the text is not a module of this Python.
    """
    module = ast.parse(source)
    lines = source.splitlines()
    imports = dict(_imports(module))
    for node in module.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.decorator_list:
            continue
        docstring = ast.get_docstring(node, clean=False)
        if docstring and len(node.body) > 1:
            yield _function(node, inspect.cleandoc(docstring), lines, imports)


def _function(
    node: ast.FunctionDef | ast.ClassDef, docstring: str, lines: list[str], imports: dict[str, str]
) -> Function:
    first = node.body[0]
    used = _names(node)
    needed = dict.fromkeys(line for name, line in imports.items() if name in used)
    free = used - set(imports) - set(dir(builtins)) - _bound(node) - {node.name}
    body = lines[first.end_lineno or 0 : node.end_lineno]
    while body and not body[0].strip():
        body.pop(0)
    parameters = (
        []
        if isinstance(node, ast.ClassDef)
        else [each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)]
    )
    return Function(
        name=node.name,
        parameters=tuple(parameters),
        signature="\n".join(lines[node.lineno - 1 : first.lineno - 1]).rstrip(),
        docstring=docstring,
        body="\n".join(body).rstrip(),
        imports=tuple(needed),
        free=frozenset(free),
    )


def _imports(module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in module.body:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield (alias.asname or alias.name).partition(".")[0], f"import {_spelt(alias)}"
            case ast.ImportFrom(module=str(origin), names=names, level=0) if origin != "__future__":
                for alias in names:
                    yield alias.asname or alias.name, f"from {origin} import {_spelt(alias)}"


def _spelt(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def _bound(node: ast.AST) -> set[str]:
    bound: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                bound |= {alias.asname or alias.name for alias in names}
    return bound
