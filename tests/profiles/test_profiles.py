"""The profiles that ship, and how they are found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.hcp import load
from macaron.profiles import find_profile, profile_names
from macaron.registry import registry_from


def test_the_profiles_that_ship() -> None:
    assert profile_names() == ("demi", "tall", "venti")


@pytest.mark.parametrize("name", ["demi", "tall", "venti"])
def test_a_profile_that_ships_is_in_order(name: str) -> None:
    loaded = load(find_profile(name), env={})
    registry = registry_from(loaded)
    assert registry.labels == ("L0", "L1", "L2", "L3")
    assert (registry.entry, registry.default) == ("L0", "L2")
    instruction = registry.fill(loaded.text("mol.route.prompt_path"))
    assert "{" not in instruction
    assert all(item.card in instruction for item in registry.specialists)


def test_demi_is_four_trained_specialists_on_the_embedded_engine() -> None:
    loaded = load(find_profile("demi"))
    contract = loaded.contract
    assert (contract.mol.served_model, contract.engine.kind) == ("macaron-demi", "llamacpp")
    assert (contract.mol.speculate, contract.mol.summary) == (False, "idle")
    assert contract.engine.llamacpp.slot_context == 8192
    assert {item.state for item in registry_from(loaded).specialists} == {"verified"}
    assert "<|im_start|>" in loaded.text("engine.llamacpp.chat_template_path")


@pytest.mark.parametrize(
    ("name", "rank", "model"), [("tall", 64, "macaron-v1-tall"), ("venti", 16, "macaron-v1-venti")]
)
def test_tall_and_venti_ask_as_their_adapters_were_evaluated(name: str, rank: int, model: str) -> None:
    loaded = load(find_profile(name))
    mol = loaded.contract.mol
    assert (mol.served_model, mol.route.shape, mol.route.prefill) == (
        f"macaron-v1-{name}",
        "instruction_last",
        "model_id=",
    )
    assert mol.route.chat_template_kwargs == {"enable_thinking": False}
    assert (mol.speculate, mol.summary, mol.route_tokens, mol.summary_tokens) == (True, "eager", 24, 192)
    assert {entry.rank for entry in mol.adapters} == {rank}
    assert [item.engine_name for item in registry_from(loaded).specialists] == ["L0", "L1", "L2", "L3"]


def test_the_route_prompt_of_the_small_model_is_short() -> None:
    loaded = load(find_profile("demi"))
    assert len(registry_from(loaded).fill(loaded.text("mol.route.prompt_path"))) < 1000


def test_a_misspelt_profile_is_met_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no profile 'demmi'; did you mean 'demi'"):
        find_profile("demmi")
    with pytest.raises(ConfigError, match="profiles that ship: demi, tall, venti"):
        find_profile("grande")


def test_a_profile_is_found_by_folder_and_by_document(tmp_path: Path) -> None:
    document = tmp_path / "profile.toml"
    document.write_text("")
    assert find_profile(tmp_path) == find_profile(str(document)) == document
    with pytest.raises(ConfigError, match="there is no profile at"):
        find_profile(tmp_path / "none")


def test_a_folder_beside_us_is_never_taken_for_a_name(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "profile.toml").write_text("")
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        with pytest.raises(ConfigError, match=r"for the folder of that name write \./mine"):
            find_profile("mine")
        assert find_profile("./mine") == Path("mine/profile.toml")
    finally:
        os.chdir(before)
