"""`macaron models` at the command line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from macaron.cli.models import app
from macaron.hcp import load
from macaron.profiles.base import GgufBase
from macaron.profiles.new import new_profile
from tests.models.conftest import FileServer
from tests.models.test_gguf import written


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "macaron" / "models"


def test_pull_fetches_what_a_profile_names(server: FileServer, cache: Path, tmp_path: Path) -> None:
    model = written(tmp_path / "m.gguf")
    document = new_profile("mine", GgufBase(model), tmp_path / "mine").path
    text = document.read_text().replace(f'path = "{model}"', f'url = "{server.put("/m", model.read_bytes())}"')
    document.write_text(text)
    result = CliRunner().invoke(app, ["pull", str(tmp_path / "mine")])
    weights = load(document).contract.engine.weights
    assert weights is not None
    fetched = cache / hashlib.sha256(model.read_bytes()).hexdigest()[:12] / "m.gguf"
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{fetched} (")
    assert fetched.read_bytes() == model.read_bytes()


def test_pull_of_a_profile_with_its_own_server_says_that_there_is_nothing_to_do(cache: Path) -> None:
    result = CliRunner().invoke(app, ["pull", "tall"])
    assert result.exit_code == 0
    assert "nothing to fetch" in result.stdout
    assert not cache.exists()


def test_list_says_what_is_here_and_how_to_get_the_rest(cache: Path) -> None:
    result = CliRunner().invoke(app, ["list"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert "SmolLM2-135M-Instruct.Q4_1.gguf" in result.stdout
    assert "macaron models pull demi" in result.stdout


@pytest.mark.parametrize("command", [[], ["pull"], ["list"]])
def test_help_gives_examples(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert not command or f"macaron models {command[0]}" in result.stdout
