"""Rows from documented functions of libraries: the docstring is the request, the function the answer.

Whole modules are held out: the evaluation runs their doctests.
"""

from __future__ import annotations

import ast
import re
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.code import wording
from macaron.train.demi.code.function import Function, functions

HELD_OUT_MODULES = (
    "boltons/",
    "toolz/",
    "networkx/",
    "more_itertools/recipes.py",
    "statistics.py",
    "textwrap.py",
    "difflib.py",
    "fractions.py",
)
"""Files, or folders where they end in a slash, that no training row may come from."""

HELD_OUT_NAMES = ("is_sorted", "difference")
"""Functions that HumanEval or a doctest of networkx asks for by the same name."""

HELD_OUT_PACKAGES = ("boltons==26.2.0", "toolz==1.2.0")
"""Read for the names of their functions only, since other libraries have functions of the same name."""

PACKAGES = {
    "more-itertools==11.2.1": ("more_itertools/more.py",),
    "sortedcontainers==2.4.0": ("sortedcontainers/sortedlist.py",),
}
STANDARD = (
    "ast.py", "base64.py", "bisect.py", "calendar.py", "codecs.py", "colorsys.py", "contextlib.py", "email/utils.py",
    "email/iterators.py", "email/base64mime.py", "functools.py", "genericpath.py", "heapq.py", "html/__init__.py",
    "inspect.py", "ipaddress.py", "locale.py", "ntpath.py", "operator.py", "os.py", "pickletools.py", "posixpath.py",
    "pydoc.py", "quopri.py", "random.py", "reprlib.py", "shlex.py", "shutil.py", "stat.py", "string.py", "timeit.py",
    "tokenize.py", "traceback.py", "types.py", "typing.py", "urllib/parse.py", "urllib/request.py", "warnings.py",
)  # fmt: skip
"""Modules of the running interpreter's standard library, which is under the PSF licence."""

MAX_LINES = 25
MAX_CHARACTERS = 1_300
MAX_PER_MODULE = 80
_MAX_PER_TRIVIAL = {"operator.py": 12, "inspect.py": 12, "typing.py": 6}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MARKUP = (
    (re.compile(r":\w+:`~?\.?([^`]+)`"), r"`\1`"),
    (re.compile(r"``([^`]+)``"), r"`\1`"),
    (re.compile(r"(?<![\w*])\*([\w.]+)\*(?![\w*])"), r"\1"),
)


class Library(NamedTuple):
    source: str
    module: str
    function: Function


def packages(context: BuildContext) -> Iterable[AnyRow]:
    """`limit` rows of small functions of more-itertools and sortedcontainers."""
    held = held_out_names(context.packages.folder)
    return _rows(_of_packages(context.packages.folder), held, context)


def standard(context: BuildContext) -> Iterable[AnyRow]:
    """`limit` rows of small functions of the standard library, read from the files of the running interpreter."""
    held = held_out_names(context.packages.folder)
    return _rows(_of_standard(), held, context)


def held_out_names(folder: Callable[[str], Path]) -> frozenset[str]:
    """Names of functions that must not come up: those of the held-out modules, which other libraries define as well."""
    names = set(HELD_OUT_NAMES)
    roots = [folder(requirement) for requirement in (*PACKAGES, *HELD_OUT_PACKAGES)] + [_standard_folder()]
    for path in (path for root in roots for module in HELD_OUT_MODULES for path in _files(root / module)):
        names |= {node.name for node in ast.parse(path.read_bytes()).body if isinstance(node, _DEFINITIONS)}
    return frozenset(names)


def usable(function: Function) -> bool:
    """Whether it is small, has something to say and needs nothing of its module."""
    return (
        not function.is_class
        and not function.name.startswith("_")
        and not function.free
        and 1 <= function.body.count("\n") + 1 <= MAX_LINES
        and len(function.prose) >= 24
        and len(function.code) + len(function.docstring) <= MAX_CHARACTERS
        and "import " not in function.docstring.split(">>>")[0]
    )


def _of_packages(folder: Callable[[str], Path]) -> Iterator[Library]:
    for requirement, modules in PACKAGES.items():
        name = requirement.partition("==")[0]
        for module in modules:
            yield from _of_file(folder(requirement) / module, name, module)


def _of_standard() -> Iterator[Library]:
    for module in STANDARD:
        path = _standard_folder() / module
        # Modules come and go with the interpreter's version.
        if path.is_file():
            yield from _of_file(path, "python-stdlib", module)


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(path.rglob("*.py"))
    elif path.is_file():
        yield path


def _standard_folder() -> Path:
    return Path(sysconfig.get_paths()["stdlib"])


def _of_file(path: Path, source: str, module: str) -> Iterator[Library]:
    kept = 0
    for function in functions(path.read_text(encoding="utf-8")):
        if usable(function) and kept < _MAX_PER_TRIVIAL.get(module, MAX_PER_MODULE):
            kept += 1
            yield Library(source, module, function)


def _rows(found: Iterable[Library], held: frozenset[str], context: BuildContext) -> Iterator[AnyRow]:
    libraries = [each for each in found if each.function.name not in held]
    context.random.shuffle(libraries)
    wanted = context.limit or len(libraries)
    for each in libraries[:wanted]:
        yield _row(each, context.random)


def _row(each: Library, random: Random) -> SftRow:
    function = each.function._replace(docstring=_clean(each.function.docstring))
    worded = random.random() < 0.5
    request = wording.plain(_summarised(function), random) if worded else wording.complete(_short(function), random)
    remark = wording.remark(_summarised(function)) if worded and random.random() < 0.4 else ""
    return SftRow(
        id=f"{each.source}-{each.module}-{function.name}",
        source=each.source,
        group=each.module,
        messages=({"role": "user", "content": request}, wording.answer(function.code, remark)),
    )


def _short(function: Function) -> Function:
    """The docstring up to its first block of examples, which is enough to complete from."""
    paragraphs = function.docstring.split("\n\n")
    first = next((at for at, part in enumerate(paragraphs) if ">>>" in part), min(len(paragraphs), 3) - 1)
    return function._replace(docstring="\n\n".join(paragraphs[: first + 1]).rstrip())


def _summarised(function: Function) -> Function:
    example = next((part for part in function.docstring.split("\n\n") if ">>>" in part), "")
    summary = function.summary.rstrip(":").rstrip(".") + "."
    return function._replace(docstring="\n\n".join(part for part in (summary, example) if part))


def _clean(docstring: str) -> str:
    for pattern, replacement in _MARKUP:
        docstring = pattern.sub(replacement, docstring)
    return docstring
