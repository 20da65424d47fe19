"""`macaron evals` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from macaron.cli import build_cli
from macaron.errors import ConfigError
from tests.evals.rows import plain_rows, write_lines

KEYS = {"n", "accuracy", "accuracy_ci", "canonical", "parse_errors", "confusion", "per_source", "latency_ms"}


@pytest.mark.engine
@pytest.mark.slow
def test_routing_prints_json_and_keeps_it(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "a.jsonl", plain_rows("L0", "L2"))
    arguments = ["evals", "routing", str(data), "--json", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(build_cli(), arguments)
    assert result.exit_code == 0, result.output
    assert set(json.loads(result.stdout)) == KEYS
    assert json.loads((tmp_path / "out" / "routing.json").read_text()) == json.loads(result.stdout)
    table = CliRunner().invoke(build_cli(), [*arguments[:3], "--out", str(tmp_path / "out"), "--baseline", str(data)])
    assert "tfidf" in table.stdout
    assert "source-1" in table.stdout


@pytest.mark.engine
@pytest.mark.slow
def test_chat_asks_who_it_is(tmp_path: Path) -> None:
    result = CliRunner().invoke(build_cli(), ["evals", "chat", "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert len(report["answers"]) == 10
    assert report["perplexity"] is None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["tasks", "--suite", "poetry"], "no suite 'poetry'"),
        (["routing", "none.jsonl"], "cannot be read"),
        (["routing"], "there are no rows"),
        (["chat", "--adapters", "nowhere"], "there is no adapter"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(
    arguments: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(build_cli(), ["evals", *arguments])
    assert isinstance(result.exception, ConfigError)
    assert reason in result.exception.message
