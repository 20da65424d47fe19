"""Perplexity of two models on the same dialogues."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.evals.perplexity import RowLoss, dialogue_losses, summarise_losses
from macaron.hcp import Loaded, load
from macaron.profiles import find_profile
from macaron.train.base import find_base, load_model
from macaron.train.data.rows import SftRow
from macaron.train.quiet import quiet_libraries

DIALOGUE = SftRow(
    id="d", source="s",
    messages=({"role": "user", "content": "Good morning!"}, {"role": "assistant", "content": "Good morning to you."}),
)  # fmt: skip


def silent(subject: str, done: int, total: int) -> None:
    """No progress."""


def test_perplexity_is_of_all_tokens_and_the_ratio_of_both() -> None:
    losses = [RowLoss("a", 10, 20.0, 21.0), RowLoss("b", 30, 60.0, 63.0)]
    found = summarise_losses(losses)
    assert found.base == pytest.approx(math.exp(2))
    assert found.ratio == pytest.approx(math.exp(0.1)) == pytest.approx(found.adapter / found.base)
    assert (found.n, found.tokens, found.groups) == (2, 40, 2)
    assert found.interval.low <= found.ratio <= found.interval.high


def test_the_same_model_has_a_ratio_of_one() -> None:
    found = summarise_losses([RowLoss(name, 5, 9.0, 9.0) for name in "abc"])
    assert (found.ratio, found.interval) == (1.0, (1.0, 1.0))


def test_an_adapter_in_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="PEFT's format"):
        dialogue_losses(load(find_profile("demi")), "L0", tmp_path / "a.gguf", [DIALOGUE], silent)


def write_adapters(loaded: Loaded, folder: Path) -> None:
    """`fresh`, which changes nothing yet, and `disturbed`."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    model = get_peft_model(load_model(find_base(loaded)), LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
    model.save_pretrained(folder / "fresh")
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "lora_B" in name:
                value.normal_(0.0, 0.3)
    model.save_pretrained(folder / "disturbed")


@pytest.mark.slow
def test_a_fresh_adapter_changes_nothing_and_a_disturbed_one_does(tmp_path: Path) -> None:
    loaded = load(find_profile("demi"))
    with quiet_libraries():
        write_adapters(loaded, tmp_path)
    fresh = summarise_losses(dialogue_losses(loaded, "L0", tmp_path / "fresh", [DIALOGUE], silent))
    disturbed = summarise_losses(dialogue_losses(loaded, "L0", tmp_path / "disturbed", [DIALOGUE], silent))
    assert fresh.ratio == pytest.approx(1.0, abs=1e-6)
    assert disturbed.base == pytest.approx(fresh.base, rel=1e-5)
    assert abs(disturbed.ratio - 1) > 0.01
