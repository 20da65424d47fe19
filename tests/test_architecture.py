"""The shape of the code itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "macaron").rglob("*.py"))
MAX_FILE, MAX_FUNCTION = 400, 60


def test_dependencies_point_one_way() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_files_and_functions_stay_small() -> None:
    large = [str(path) for path in SOURCES if len(path.read_text().splitlines()) > MAX_FILE]
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > MAX_FUNCTION:
                    large.append(f"{path.name}:{node.name} has {lines} lines")
    assert large == []


def test_nothing_is_read_or_started_at_import() -> None:
    """Importing every module, with files and sockets forbidden, works."""
    modules = [
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for path in SOURCES
        if path.name != "__main__.py"
    ]
    script = (
        "import importlib, sys\n"
        "def watch(event, args):\n"
        "    if event in ('socket.connect', 'socket.bind', 'subprocess.Popen', 'sqlite3.connect'):\n"
        "        raise RuntimeError(event)\n"
        "    if event == 'open' and isinstance(args[0], str) and args[1] not in (None, 'r', 'rb'):\n"
        "        if not args[0].endswith('.pyc') and '__pycache__' not in args[0]:\n"
        "            raise RuntimeError(args)\n"
        "sys.addaudithook(watch)\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
