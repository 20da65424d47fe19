"""How a function is shown to whom it is asked of: the many forms that docstrings, examples and types have."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from doctest import DocTestParser
from random import Random

from macaron.train.demi.code.function import Function

_WIDTHS = (66, 72, 79, 88, 100)
_HEADINGS = ("Examples:", "For example:", "Example:", "Examples", "")
_GENERICS = (("list[", "List["), ("dict[", "Dict["), ("tuple[", "Tuple["), ("set[", "Set["))


def restyled(function: Function, random: Random) -> Function:
    """The same function with its docstring in another form, and sometimes with the types of `typing`.

    Functions whose examples need several lines keep their examples as they are.
    """
    if random.random() < 0.3:
        function = with_typing(function)
    prose = _wrapped(_prose(function.docstring), random)
    examples = _examples(function.docstring)
    as_session = "\n".join(f">>> {call}\n{value}" for call, value in examples)
    if not examples:
        return function
    form = random.choices(("session", "close", "arrow", "list", "numpy", "google", "none"), (30, 22, 16, 9, 8, 7, 8))[0]
    match form:
        case "session":
            docstring = f"{prose}\n\n{as_session}"
        case "close":
            docstring = f"{prose}\n{as_session}"
        case "arrow":
            sign = random.choice((" => ", " -> ", " == ", " ➞ ", " returns "))
            lines = [f"{call}{sign}{value}" for call, value in examples]
            docstring = "\n".join([prose, *_heading(random), *lines])
        case "list":
            lines = [f"- {call} gives {value}" for call, value in examples]
            docstring = "\n".join([prose, "", *_heading(random), *lines])
        case "numpy":
            docstring = "\n".join([prose, *_numpy(function), "", "Examples", "--------", as_session])
        case "google":
            docstring = "\n".join([prose, *_google(function), "", textwrap.indent(as_session, "    ")])
        case _:
            docstring = prose
    return function._replace(docstring=docstring)


def head(function: Function, random: Random) -> str:
    """Imports, signature and docstring, the quotes of which are set in one of several ways."""
    opening, closing = random.choice((("", "\n"), ("", "\n"), (" ", "\n"), ("\n", "\n"), ("", "")))
    quotes = "'''" if random.random() < 0.06 and "'''" not in function.docstring else '"""'
    if "\n" in function.docstring or function.docstring.endswith(('"', "\\")):
        closing = "\n"
    text = textwrap.indent(function.docstring, "    ")
    inside = f"\n{text}" if opening == "\n" else f"{opening}{text.lstrip()}"
    docstring = f"    {quotes}{inside}{closing}{'    ' if closing else ''}{quotes}"
    return "\n".join([*function.imports, *(["", ""] if function.imports else []), function.signature, docstring])


def with_typing(function: Function) -> Function:
    """The head with `List`, `Optional` and the like in the place of the built-in types, and their import."""
    signature = re.sub(r"(: |-> )([\w\[\], ]+?) \| None", r"\1Optional[\2]", function.signature)
    for new, old in _GENERICS:
        signature = re.sub(rf"\b{re.escape(new)}", old, signature)
    used = [name for name in ("Dict", "List", "Optional", "Set", "Tuple") if f"{name}[" in signature]
    if not used or function.is_class or function.signature == signature:
        return function
    line = f"from typing import {', '.join(used)}"
    return function._replace(signature=signature, imports=(*function.imports, line))


def spoken_examples(function: Function, random: Random) -> str:
    """One or two examples as the end of a request in words, or nothing."""
    examples = _examples(function.docstring)[: random.choice((0, 1, 1, 2))]
    if not examples:
        return ""
    told = " and ".join(f"`{call}` gives `{value}`" for call, value in examples)
    return random.choice((f"\n\nFor example, {told}.", f" For instance, {told}.", f"\n\nExamples: {told}."))


def _prose(docstring: str) -> str:
    return "\n\n".join(part for part in docstring.split("\n\n") if ">>>" not in part)


def _wrapped(prose: str, random: Random) -> str:
    """Long lines broken; lists keep their lines."""
    width = random.choice(_WIDTHS)
    return "\n".join(textwrap.fill(line, width) if line else "" for line in prose.split("\n"))


def _examples(docstring: str) -> Sequence[tuple[str, str]]:
    """Calls and their values, or nothing where one of them takes more than a line."""
    found = [(each.source.rstrip("\n"), each.want.rstrip("\n")) for each in DocTestParser().get_examples(docstring)]
    simple = all(want and "\n" not in source + want and "Traceback" not in want for source, want in found)
    return found if simple else ()


def _heading(random: Random) -> list[str]:
    heading = random.choice(_HEADINGS)
    return [heading] if heading else []


def _types(function: Function) -> tuple[list[tuple[str, str]], str]:
    node = ast.parse(f"{function.signature}\n    pass").body[0]
    assert isinstance(node, ast.FunctionDef)
    each = [(arg.arg, ast.unparse(arg.annotation) if arg.annotation else "") for arg in node.args.args]
    return each, ast.unparse(node.returns) if node.returns else ""


def _numpy(function: Function) -> list[str]:
    if function.is_class:
        return []
    parameters, returned = _types(function)
    lines = ["", "Parameters", "----------", *(f"{name} : {kind}" if kind else name for name, kind in parameters)]
    return [*lines, "", "Returns", "-------", returned] if returned else lines


def _google(function: Function) -> list[str]:
    if function.is_class:
        return []
    parameters, returned = _types(function)
    lines = ["", "Args:", *(f"    {name}{f' ({kind})' if kind else ''}" for name, kind in parameters)]
    return [*lines, "", "Returns:", f"    {returned}", "", "Example:"] if returned else [*lines, "", "Example:"]
