"""The command line's own words."""

from __future__ import annotations

from importlib.metadata import version

import pytest
import typer
from typer.testing import CliRunner

from macaron.cli import build_cli

COMMANDS = (
    ("serve",), ("chat",), ("status",), ("trace",), ("models", "pull"), ("models", "list"),
    ("profile", "new"), ("profile", "list"), ("profile", "check"), ("data", "build"), ("data", "show"),
    ("train", "sft"), ("train", "dpo"), ("train", "publish"),
    ("runs", "list"), ("runs", "show"), ("runs", "compare"), ("runs", "export"),
    ("evals", "routing"), ("evals", "tasks"), ("evals", "chat"),
    ("evals", "diagnose"), ("evals", "report"),
    ("inspect",), ("adapter", "check"), ("merge",),
)  # fmt: skip


@pytest.fixture
def app() -> typer.Typer:
    return build_cli()


def printed(app: typer.Typer, *arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments), prog_name="macaron")
    assert result.exit_code == status, result.output
    return result.output


def test_help_names_every_command_and_where_to_start(app: typer.Typer) -> None:
    text = printed(app, "--help")
    assert all(f"\n  {command[0]} " in text for command in COMMANDS)
    assert "macaron serve" in text


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_has_an_example_on_a_line_of_its_own(
    command: tuple[str, ...], app: typer.Typer
) -> None:
    text = printed(app, *command, "--help")
    assert "Example" in text
    examples = [line for line in text.splitlines() if line.strip().startswith(f"macaron {' '.join(command)}")]
    assert examples
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_version_is_printed(app: typer.Typer) -> None:
    assert printed(app, "--version") == f"macaron {version('macaron')}\n"


def test_an_unknown_command_is_an_error(app: typer.Typer) -> None:
    assert "dance" in printed(app, "dance", status=2)
