"""`macaron profile` at the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from macaron.cli.profile import app
from macaron.errors import ConfigError
from macaron.hcp import load
from macaron.profiles import find_profile


def test_new_writes_a_profile_and_prints_its_digest(model_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["new", "mine", "--base", str(model_file), "--out", str(out)])
    assert result.exit_code == 0
    assert result.stdout.split() == [str(out / "profile.toml"), load(out / "profile.toml").digest]


def test_new_takes_the_name_for_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["new", "mine", "--base", "http://127.0.0.1:9", "--model", "m"])
    assert result.exit_code == 0
    assert (tmp_path / "mine" / "profile.toml").is_file()


def test_list_names_what_ships() -> None:
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("macaron-demi", "macaron-v1-tall", "macaron-v1-venti"))


def test_check_prints_the_digest() -> None:
    result = CliRunner().invoke(app, ["check", "demi"])
    assert result.exit_code == 0
    assert load(find_profile("demi")).digest in result.stdout


def test_check_asks_for_the_environment_unless_told_not_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(app, ["new", "mine", "--base", "hf:a/b"])
    with Path("mine/profile.toml").open("a") as document:
        document.write('api_key_env = "NO_SUCH_KEY"\n')
    result = CliRunner().invoke(app, ["check", "./mine"])
    assert isinstance(result.exception, ConfigError)
    assert "NO_SUCH_KEY, which is not set" in result.exception.message
    assert CliRunner().invoke(app, ["check", "./mine", "--no-env"]).exit_code == 0


@pytest.mark.parametrize("command", ["new", "list", "check"])
def test_help_gives_examples(command: str) -> None:
    assert f"macaron profile {command}" in CliRunner().invoke(app, [command, "--help"]).stdout
