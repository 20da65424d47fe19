"""Loading a contract: what is accepted, and how what is wrong is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.hcp import load
from tests.hcp.conftest import Write


def refusal(path: Path, **kwargs: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, **kwargs)
    return caught.value.message


def test_a_document_gives_its_values_with_defaults_filled_in(write: Write) -> None:
    contract = load(write()).contract
    assert [entry.label for entry in contract.mol.adapters] == ["L0", "L2"]
    assert contract.engine.kind == "vllm"
    assert contract.mol.route_tokens == 24


def test_every_referenced_text_is_read_under_its_key_path(write: Write) -> None:
    loaded = load(write())
    assert dict(loaded.texts) == {
        "mol.route.prompt_path": "The route prompt.\n",
        "mol.summary_prompt_path": "The summary prompt.\n",
        "mol.adapters.L0.prompt_path": "The chat prompt.\n",
        "mol.adapters.L2.prompt_path": "The code prompt.\n",
    }
    assert loaded.text("mol.route.prompt_path") == "The route prompt.\n"
    assert loaded.text("engine.llamacpp.chat_template_path", "") == ""
    with pytest.raises(KeyError):
        loaded.text("engine.llamacpp.chat_template_path")


def test_a_missing_version_means_one_and_another_is_refused(write: Write) -> None:
    assert load(write(("version = 1\n", ""))).contract.version == 1
    assert "reads version 1" in refusal(write(("version = 1", "version = 2")))


def test_all_problems_are_listed_at_once_each_with_its_line(write: Write) -> None:
    path = write(
        ('base = "Base"\ndefault', 'bse = "Base"\ndefault'),
        ('[mol.route]\nprompt_path = "prompts/route.md"', '[mol.route]\nprompt_path = 7\nshpe = "x"'),
        ('address = "http://127.0.0.1:8000"', 'address = "ftp://x"'),
        extra="[store]\nmax_sessions = 0\n[mcp]\n",
    )
    message = refusal(path)
    lines = path.read_text().split("\n")
    assert "7 problems" in message
    for place, text in (
        ("mol.bse", 'bse = "Base"'),
        ("mol.route.prompt_path", "prompt_path = 7"),
        ("mol.route.shpe", 'shpe = "x"'),
        ("engine.address", 'address = "ftp://x"'),
        ("store.max_sessions", "max_sessions = 0"),
        ("mcp", "[mcp]"),
    ):
        assert f"line {lines.index(text) + 1}: {place}: " in message
    assert "mol.base: is missing in [mol]" in message


def test_an_unknown_key_is_met_with_the_nearest_one(write: Write) -> None:
    message = refusal(write(('default = "L0"', 'defualt = "L0"')))
    assert "mol.defualt: unknown key; did you mean 'default'?" in message


def test_a_key_of_another_section_is_sent_home(write: Write) -> None:
    assert "it belongs into [engine.llamacpp]" in refusal(write(extra="slots_per_adapter = 2\n"))


def test_an_unknown_key_of_an_adapter_is_found_at_its_line(write: Write) -> None:
    path = write(('name = "Code"', 'name = "Code"\ncolour = "red"'))
    line = path.read_text().split("\n").index('colour = "red"') + 1
    assert f"line {line}: mol.adapters.1.colour: unknown key in [mol.adapters.1]" not in (message := refusal(path))
    assert f"line {line}: mol.adapters.1.colour: unknown key; allowed here: label," in message


@pytest.mark.parametrize("section", ["run", "tools", "mcp", "hooks", "env", "session", "workspace", "policy", "ui"])
def test_a_section_of_hcp_that_is_not_run_yet_is_refused_by_name(write: Write, section: str) -> None:
    message = refusal(write(extra=f"[{section}]\n"))
    assert f"{section}: is defined by HCP, but this version of Macaron does not run it yet" in message


def test_operating_points_are_refused_by_name(write: Write) -> None:
    message = refusal(write(extra="[[engine.operating_points]]\ngpus = 8\n"))
    assert "engine.operating_points: is defined by HCP" in message


def test_a_wrong_type_shows_what_is_expected_and_what_was_there(write: Write) -> None:
    message = refusal(write(('default = "L0"', 'default = "L0"\nroute_tokens = "many"')))
    assert "mol.route_tokens: expected `int`, got `str`, the value is 'many'" in message


def test_a_wrong_choice_names_the_value(write: Write) -> None:
    assert "engine.kind: invalid enum value 'vlm'" in refusal(write(('kind = "vllm"', 'kind = "vlm"')))


@pytest.mark.parametrize("value", ["2026-01-01", "inf", "nan", "9007199254740993"])
def test_a_value_without_canonical_json_is_refused(write: Write, value: str) -> None:
    path = write(("[[mol.adapters]]", f"chat_template_kwargs = {{ x = [{value}] }}\n[[mol.adapters]]"))
    assert "mol.route.chat_template_kwargs: " in refusal(path)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('default = "L0"', 'default = "L0"\nroute_tokens = 0', "mol.route_tokens"),
        ('default = "L0"', 'default = "L0"\nsummary_wait = -1', "mol.summary_wait"),
        ('base_model = "Base"', 'base_model = "Base"\nconnections = 0', "engine.connections"),
        ('base_model = "Base"', 'base_model = "Base"\n[engine.timeouts]\nidle = 0', "engine.timeouts.idle"),
        ('base_model = "Base"', 'base_model = "Base"\n[service]\ntenant_share = 1.5', "service.tenant_share"),
        ('name = "Code"', 'name = "Code"\nrank = 0', "mol.adapters.1.rank"),
    ],
)
def test_a_number_out_of_range_is_refused(write: Write, old: str, new: str, place: str) -> None:
    assert f"{place}: must be between" in refusal(write((old, new)))


def test_malformed_toml_names_the_line(write: Write) -> None:
    assert "is not TOML" in (message := refusal(write(("[mol]", "[mol"))))
    assert "line 3" in message


def test_a_document_that_is_too_large_or_not_utf8_is_refused(write: Write, tmp_path: Path) -> None:
    assert "is over 262144 bytes" in refusal(write(extra="#" * 262_144))
    path = tmp_path / "latin.toml"
    path.write_bytes(b"# caf\xe9\n")
    assert "is not UTF-8: byte 5" in refusal(path)


def test_a_deeply_nested_document_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("a = " + "[" * 50_000)
    assert "nested too deeply" in refusal(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "none.toml")
    assert "is not a regular file" in refusal(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in refusal(tmp_path / "pipe")


def test_the_environment_must_hold_the_names_the_document_relies_on(write: Write) -> None:
    path = write(('base_model = "Base"', 'base_model = "Base"\napi_key_env = "ENGINE_KEY"'))
    assert "names the environment variable ENGINE_KEY, which is not set" in refusal(path, env={})
    assert load(path, env={"ENGINE_KEY": "x"}).contract.engine.api_key_env == "ENGINE_KEY"
    assert load(path).contract.engine.api_key_env == "ENGINE_KEY"
