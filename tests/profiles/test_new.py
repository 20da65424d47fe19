"""New profiles on any model."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.hcp import load
from macaron.models import fetch_weights
from macaron.profiles.base import GgufBase, HubBase, ServerBase, parse_base
from macaron.profiles.new import new_profile
from macaron.registry import registry_from


def test_a_base_is_a_file_a_model_id_or_a_server(model_file: Path) -> None:
    assert parse_base(str(model_file)) == GgufBase(model_file.resolve())
    assert parse_base("hf:Qwen/Qwen3-8B") == HubBase("Qwen/Qwen3-8B")
    assert parse_base("http://127.0.0.1:1/v1/", "m") == ServerBase("http://127.0.0.1:1", "m")


@pytest.mark.parametrize(
    ("text", "model", "reason"),
    [
        ("none.gguf", "", "there is no file"),
        ("hf:../x", "", "is not hf:OWNER/NAME"),
        ("hf:a/b", "m", "--model is for a server's address"),
        ("http://h", "", "needs --model"),
        ("http://h/path", "m", "takes a server's origin"),
        ("http://me:hunter2@h", "m", "takes a server's origin"),
    ],
)
def test_an_unusable_base_is_refused(text: str, model: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        parse_base(text, model)
    assert "hunter2" not in caught.value.message


def test_a_profile_on_a_model_file_takes_what_the_file_says(model_file: Path, tmp_path: Path) -> None:
    loaded = new_profile("mine", GgufBase(model_file), tmp_path / "out" / "mine")
    engine = loaded.contract.engine
    assert engine.kind == "llamacpp"
    assert engine.special_tokens == ("<|im_start|>", '<|"q"\\|>')
    assert engine.llamacpp.slot_context == 2048
    assert engine.llamacpp.chat_template_path == ""
    assert engine.weights is not None
    assert engine.weights.sha256 == hashlib.sha256(model_file.read_bytes()).hexdigest()
    assert fetch_weights(engine.weights, folder=loaded.folder, cache_dir=tmp_path / "cache") == model_file
    assert not loaded.contract.mol.speculate


def test_a_profile_on_a_model_id_is_for_vllm(tmp_path: Path) -> None:
    contract = new_profile("mine", HubBase("Qwen/Qwen3-8B"), tmp_path / "mine").contract
    assert (contract.engine.kind, contract.engine.base_model) == ("vllm", "Qwen/Qwen3-8B")


def test_a_profile_on_a_server_has_four_prompt_only_specialists(tmp_path: Path) -> None:
    loaded = new_profile("mine", ServerBase("http://127.0.0.1:9", 'llama"3'), tmp_path / "mine")
    registry = registry_from(loaded)
    assert registry.prompt_only
    assert registry.labels == ("L0", "L1", "L2", "L3")
    assert loaded.contract.mol.served_model == "mine"
    assert loaded.contract.engine.base_model == 'llama"3'
    assert "{" not in registry.fill(loaded.text("mol.route.prompt_path"))


def test_nothing_that_is_there_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    with pytest.raises(ConfigError, match="is there already and not empty"):
        new_profile("mine", HubBase("a/b"), tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]


def test_a_profile_that_would_not_hold_together_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"engine\.address"):
        new_profile("mine", ServerBase("http://h:99999", "m"), tmp_path / "mine")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../x", "a b", ".hidden"])
def test_a_name_is_a_plain_word(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is not a name"):
        new_profile(name, HubBase("a/b"), tmp_path / "out")


def test_a_written_profile_is_loaded_from_where_it_was_put(tmp_path: Path) -> None:
    loaded = new_profile("mine", HubBase("a/b"), tmp_path / "mine")
    assert load(tmp_path / "mine" / "profile.toml").digest == loaded.digest
    assert loaded.path == (tmp_path / "mine" / "profile.toml").resolve()
