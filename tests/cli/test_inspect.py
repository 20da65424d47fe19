"""`macaron inspect`, as a person types it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from macaron.cli import build_cli
from macaron.errors import ConfigError
from macaron.profiles import find_profile
from macaron.profiles.base import GgufBase, ServerBase
from macaron.profiles.new import new_profile
from tests.models.census_files import write_adapter, write_layout
from tests.models.peft_folder import write_base


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(build_cli(), ["inspect", *map(str, arguments)], env={"COLUMNS": "120"})
    if result.exception is not None:
        raise result.exception
    return result.stdout


def document(*arguments: str | Path) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return table


def test_venti_is_its_published_numbers() -> None:
    text = run("venti")
    assert "774.8B resident against 2.976T for 4 separately merged copies." in text
    assert "Release label 748B: a name, not a count" in text
    assert text.count("7,688,042,496") == 4
    assert "≈ 744B" in text


def test_tall_is_its_published_numbers() -> None:
    table = document("tall")
    assert [part["values"] for part in table["adapters"]] == [3_775_651_840] * 4
    assert [part["rank"] for part in table["adapters"]] == [64] * 4
    assert table["resident"]["values"] == 35_000_000_000 + 4 * 3_775_651_840
    assert table["merged"] == {"copies": 4, "values": 140_000_000_000, "bytes": None, "unknown": "bytes of base"}
    assert [part["bytes"] for part in table["adapters"]] == [None, None, 4 * 3_775_651_840, None]
    assert table["release"]["label"] == "50B"


def test_what_a_machine_without_the_weights_cannot_know_is_unknown_with_the_reason() -> None:
    text = run("venti")
    assert "KV cache: unknown, as the base is." in text
    assert "Unknown of base: the weights are with vllm at http://127.0.0.1:8000" in text
    assert "Unknown of L0, L1, L2, L3: the type of its values is not published" in text


def test_published_numbers_do_not_hold_for_another_base_or_rank(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(find_profile("venti").parent, folder)
    profile = folder / "profile.toml"
    profile.write_text(profile.read_text().replace("rank = 16", "rank = 8", 1))
    assert [part["values"] is None for part in document(folder)["adapters"]] == [True, False, False, False]
    profile.write_text(profile.read_text().replace('base = "GLM-5.2"', 'base = "GLM-5.3"'))
    table = document(folder)
    assert table["base"]["values"] is None
    assert table["release"] is None


def test_demi_without_its_weights_says_how_to_fetch_them(cache: Path) -> None:
    text = run("demi")
    assert "macaron models pull demi fetches it" in text
    assert "2,442,240" in text
    assert not cache.exists()


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return new_profile("mine", GgufBase(write_base(tmp_path / "m.gguf")), tmp_path / "mine").folder


def test_a_profile_on_a_file_is_counted_from_it(mine: Path) -> None:
    table = document(mine)
    assert table["base"]["name"] == "m"
    assert table["kv_cache"]["bytes"] == 64
    assert table["merged"]["copies"] == 1
    assert "only prompts stand for L0, L1, L2, L3" in run(mine)


def test_a_profile_in_a_folder_here_needs_no_dot(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mine.parent)
    assert document("mine")["kv_cache"]["form"] == "GQA"
    assert document("mine/profile.toml")["kv_cache"]["form"] == "GQA"


def test_the_adapter_of_a_profile_is_counted_from_its_header(mine: Path) -> None:
    write_adapter(mine / "adapters" / "L2", {"x.lora_A.weight": (4, 5)}, rank=4)
    profile = mine / "profile.toml"
    text = profile.read_text()
    profile.write_text(text.replace('label = "L2"\n', 'label = "L2"\nsource = "adapters/L2"\n', 1))
    table = document(mine)
    assert [(part["label"], part["values"], part["rank"]) for part in table["adapters"] if part["values"]] == [
        ("L2", 20, 4)
    ]
    assert table["merged"]["copies"] == 2


def test_a_model_layout_is_printed(tmp_path: Path) -> None:
    text = run(write_layout(tmp_path / "model"))
    assert "1.24K resident against 4K for 4 separately merged copies." in text
    assert "KV cache: 256 bytes a token in bfloat16 (GQA: 4 layers × 2 of 8 heads × (8 key + 8 value))." in text


def test_a_name_of_a_file_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "L1", {"x": (1,)})
    config = {"peft_type": "LORA", "r": 1, "base_model_name_or_path": "\x1b]0;[red]x\x07\n[bold]y"}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    text = run(folder)
    assert "its base, ?]0;[red]x??[bold]y, is not in this folder" in text


@pytest.mark.parametrize("raw", ["base = 1", "base_values = 0", "[" * 100, "\xff", "x" * 70_000])
def test_a_broken_table_of_published_numbers_is_refused(mine: Path, raw: str) -> None:
    (mine / "published.toml").write_bytes(raw.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"published\.toml"):
        run(mine)


def test_a_profile_beside_its_weights_is_counted_from_them(tmp_path: Path) -> None:
    folder = write_layout(tmp_path / "model") / "base"
    shutil.copytree(find_profile("venti").parent, folder, dirs_exist_ok=True)
    table = document(folder)
    assert (table["base"]["name"], table["base"]["values"], table["kv_cache"]["bytes"]) == ("GLM-5.2", 1000, 256)


def test_a_specialist_on_another_model_is_unknown(tmp_path: Path) -> None:
    folder = new_profile("mine", ServerBase("http://127.0.0.1:1", "m"), tmp_path / "mine").folder
    profile = folder / "profile.toml"
    profile.write_text(profile.read_text().replace('label = "L2"\n', 'label = "L2"\nmodel = "coder"\n', 1))
    table = document(folder)
    assert "another model, coder" in table["adapters"][2]["unknown"]
    assert table["resident"]["unknown"] == "values of base, L2; bytes of base, L2"


def test_the_help_teaches_by_examples() -> None:
    runner = CliRunner()
    assert "\n  inspect " in runner.invoke(build_cli(), ["--help"]).output
    text = runner.invoke(build_cli(), ["inspect", "--help"], prog_name="macaron").output
    assert sum(line.strip().startswith("macaron inspect ") for line in text.splitlines()) == 4
    assert all(len(line) <= 80 for line in text.splitlines())


def test_an_unknown_profile_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="did you mean 'venti'"):
        run("vemti")


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no profile at"):
        run(tmp_path / "none")
