"""Functions of other people's packages that can be written from signature and docstring, and proved by its examples.

Packages are read as text; only the sandbox imports them.
"""

from __future__ import annotations

import ast
import builtins
import json
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

MAX_BODY = 30
MAX_DOCSTRING = 1_600

_CHECK = """
import doctest, importlib, sys

def try_answer(module_name, name, code, docstring):
    module = importlib.import_module(module_name)
    reference = getattr(module, name)
    scope = {key: value for key, value in vars(module).items() if value is not reference}
    exec(compile(code, "answer.py", "exec"), scope)
    answer = scope[name]
    # Examples reach the function by many ways, and an answer that calls the reference would prove nothing.
    places = [
        (vars(loaded), key)
        for loaded in list(sys.modules.values())
        for key, value in list(getattr(loaded, "__dict__", {}).items())
        if value is reference
    ]
    for place, key in places:
        place[key] = answer
    try:
        scope = {**vars(module), name: answer}
        test = doctest.DocTestParser().get_doctest(docstring, scope, name, None, 0)
        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        return doctest.DocTestRunner(verbose=False, optionflags=flags).run(test)
    finally:
        for place, key in places:
            place[key] = reference
"""


_ASSERT = "assert result.attempted and not result.failed\n"

_AUDIT = """
import contextlib, io

def passes(*case):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            result = try_answer(*case)
    except Exception:
        return False
    return result.attempted > 0 and not result.failed

for id, module, name, source, docstring in rows:
    stub = f"def {name}(*args, **kwargs):\\n    return None\\n"
    if passes(module, name, source, docstring) and not passes(module, name, stub, docstring):
        print(id)
"""


class DoctestFunction(Struct, frozen=True):
    """One function with examples.

    Attributes:
        module, name: where it is found.
        imports: the statements of its module that its body relies on.
        head: signature and docstring as they are written, without decorators.
        source: the whole function, without decorators.
        docstring: as `ast` cleans it.
    """

    module: str
    name: str
    imports: tuple[str, ...]
    head: str
    source: str
    docstring: str

    @property
    def id(self) -> str:
        return f"{self.module}:{self.name}"


def functions_of(package: Path) -> Iterator[DoctestFunction]:
    """The self-contained functions with examples in the package folder `package`, in the order of paths and lines.

    Self-contained is a function whose body uses only its own names, builtins, and what its module imports from the
    standard library or as the whole package.
    """
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if "tests" in parts or parts[-1].startswith("test_"):
            continue
        module = ".".join(part for part in parts if part != "__init__")
        yield from functions_in(path.read_text(encoding="utf-8"), module)


def functions_in(text: str, module: str) -> Iterator[DoctestFunction]:
    """The self-contained functions with examples in the source `text` of `module`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # other people's escapes
        warnings.simplefilter("ignore", DeprecationWarning)
        tree = ast.parse(text)
    imports = _imports(tree, module.split(".")[0])
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            docstring = ast.get_docstring(node) or ""
            if ">>>" in docstring and len(docstring) <= MAX_DOCSTRING and _calls(node.name, docstring):
                needed = _needed(node, imports)
                if needed is not None and _body_lines(node) <= MAX_BODY:
                    yield _function(node, text, module, needed, docstring)


def check_program(function: DoctestFunction, code: str) -> str:
    """A program that ends normally if `code` passes the function's examples; its package must be importable."""
    case = json.dumps([function.module, function.name, code, function.docstring])
    return f"import json\n{_CHECK}\nresult = try_answer(*json.loads({case!r}))\n{_ASSERT}"


def audit_program(functions: Sequence[DoctestFunction]) -> str:
    """A program that prints, one a line, the ids of functions whose own source passes their examples while a function
    that does nothing fails them."""
    rows = [[each.id, each.module, each.name, each.source, each.docstring] for each in functions]
    return f"import json\n{_CHECK}\nrows = json.loads({json.dumps(rows)!r})\n{_AUDIT}"


def _imports(tree: ast.Module, package: str) -> dict[str, str]:
    """What the module imports at its top that an answer may rely on: name → statement."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == package or alias.name.split(".")[0] in sys.stdlib_module_names:
                    bound = alias.asname or alias.name.split(".")[0]
                    found[bound] = ast.unparse(ast.Import([alias]))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module != "__future__":
            for alias in node.names:
                if (node.module or "").split(".")[0] in sys.stdlib_module_names and alias.name != "*":
                    found[alias.asname or alias.name] = ast.unparse(ast.ImportFrom(node.module, [alias], 0))
    return found


def _needed(node: ast.FunctionDef, imports: Mapping[str, str]) -> tuple[str, ...] | None:
    """The imports that the function uses, None if it uses anything else of its module."""
    loaded: set[str] = set()
    bound = {node.name}
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name, ctx=ast.Load()):
                loaded.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.FunctionDef(name=name):
                bound.add(name)
            case ast.Import() | ast.ImportFrom():
                bound |= {alias.asname or alias.name.split(".")[0] for alias in each.names}
    for decorator in node.decorator_list:
        loaded -= {name.id for name in ast.walk(decorator) if isinstance(name, ast.Name)} - _used(node)
    free = loaded - bound - set(dir(builtins))
    if not free <= imports.keys():
        return None
    return tuple(sorted(imports[name] for name in free))


def _used(node: ast.FunctionDef) -> set[str]:
    inner = [*node.body, node.args, *([node.returns] if node.returns else [])]
    return {name.id for part in inner for name in ast.walk(part) if isinstance(name, ast.Name)}


def _calls(name: str, docstring: str) -> bool:
    examples = [line for line in docstring.splitlines() if line.lstrip().startswith((">>>", "..."))]
    return any(f"{name}(" in line for line in examples)


def _body_lines(node: ast.FunctionDef) -> int:
    return (node.end_lineno or 0) - (node.body[0].end_lineno or 0)


def _function(
    node: ast.FunctionDef, text: str, module: str, imports: tuple[str, ...], docstring: str
) -> DoctestFunction:
    lines = text.splitlines()
    return DoctestFunction(
        module=module,
        name=node.name,
        imports=imports,
        head="\n".join(lines[node.lineno - 1 : node.body[0].end_lineno]),
        source=textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno])) + "\n",
        docstring=docstring,
    )
