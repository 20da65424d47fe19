"""`macaron data` at the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from macaron.cli.data import _bars, app
from macaron.errors import ConfigError
from tests.train.data.making import recipe_of, route, sft, write_rows


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "120"})


def refused(*arguments: str) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, ConfigError)
    return result.exception.message


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    rows = [route(f"r{number}", group=f"g{number}", label=f"L{number % 4}") for number in range(30)]
    people = [sft("s1", "I am bob@example.com"), sft("s2", "I am bob@example.com")]
    return recipe_of(tmp_path, "[split]\ndev = 0.2\ntest = 0.2", a=rows, b=people).folder / "made.toml"


@pytest.fixture
def folder(recipe: Path, tmp_path: Path) -> str:
    assert run("build", str(recipe), "--out", str(tmp_path / "out")).exit_code == 0
    return str(tmp_path / "out")


def test_build_writes_the_data_set_and_sums_it_up(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("build", str(recipe))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["source", "given", "train", "dev", "test", "dropped", "why"]
    assert lines[1].split()[:2] == ["a", "30"]
    assert lines[2].rstrip().endswith("1 exact duplicate")
    assert lines[3].split()[:2] == ["all", "32"]
    assert "personal data replaced: 2 email" in result.stdout
    assert "held-out rows compared with the training rows: 0 stood in one" in " ".join(result.stdout.split())
    assert lines[-1].startswith("data/made is built (recipe sha256:")
    assert (tmp_path / "data" / "made" / "manifest.json").is_file()


def test_build_refuses_a_broken_row_unless_told_to_go_on(recipe: Path, tmp_path: Path) -> None:
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write("broken\n")
    out = str(tmp_path / "out")
    assert "a.jsonl:31: " in refused("build", str(recipe), "--out", out)
    result = run("build", str(recipe), "--out", out, "--skip-broken")
    assert result.exit_code == 0
    assert "1 broken" in result.stdout


def test_build_of_a_recipe_that_is_not_there_says_so(tmp_path: Path) -> None:
    assert "there is no recipe 'nothing-of-that-name'" in refused("build", "nothing-of-that-name")
    assert "cannot be read" in refused("build", str(tmp_path / "none.toml"))


def test_show_shows_some_rows_of_a_split(folder: str) -> None:
    few = run("show", folder, "--n", "3", "--label", "L2")
    assert few.stdout.count("answered by L2") == 3
    assert run("show", folder, "--seed", "1").stdout != run("show", folder, "--seed", "2").stdout


def test_show_finds_a_row_by_its_id_in_every_split(folder: str) -> None:
    for number in range(30):
        assert f"request number r{number} " in run("show", folder, "--id", f"r{number}").stdout


def test_show_counts(folder: str) -> None:
    table = run("show", folder, "--stats").stdout
    assert {line.split()[0] for line in table.splitlines()[1:]} == {"train", "dev", "test"}
    assert "route L3" in table
    assert "sft" not in run("show", folder, "--stats", "--label", "L1").stdout
    assert {line.split()[0] for line in run("show", folder, "--stats", "--split", "dev").stdout.splitlines()[1:]} == {
        "dev"
    }


def test_show_reads_a_lone_file(tmp_path: Path) -> None:
    path = str(write_rows(tmp_path / "r.jsonl", [sft("1", "hello there")]))
    assert "hello there" in run("show", path).stdout
    assert "--split is for a data set's folder" in refused("show", path, "--split", "dev")


def test_show_says_what_is_wrong(folder: str, tmp_path: Path) -> None:
    assert "has no such row" in refused("show", folder, "--id", "nobody")
    assert "--split 'tets' is not one of train, dev, test" in refused("show", folder, "--split", "tets")
    assert "is no data set" in refused("show", str(tmp_path / "out" / ".."))
    assert "does not exist" in refused("show", str(tmp_path / "none"))


def test_one_bar_at_a_time_is_drawn_for_rows_and_packages() -> None:
    console = Console(force_terminal=True, width=100, record=True)
    with _bars(console) as bars:
        bars.files("download", 2048, None)
        bars.files("download", 4096, 8192)
        bars.rows("reading a", 100, None)
    assert "reading a" in console.export_text()


@pytest.mark.parametrize("command", ["build", "show"])
def test_help_gives_examples_that_fit_a_terminal(command: str) -> None:
    lines = (
        CliRunner()
        .invoke(app, [command, "--help"], env={"COLUMNS": "80"}, prog_name="macaron data")
        .stdout.splitlines()
    )
    assert any(line.strip().startswith(f"macaron data {command} ") for line in lines)
    assert all(len(line) <= 80 for line in lines)


def test_the_command_line_knows_the_group_and_stays_light() -> None:
    script = (
        "import sys; from macaron.cli import build_cli; app = build_cli()\n"
        "assert 'data' in [group.typer_instance.info.name for group in app.registered_groups]\n"
        "heavy = {'datasketch', 'numpy', 'torch', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)
