"""A merged model says in torch what its base says with the adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from macaron.models import Dimensions
from macaron.models.merge import merge_safetensors
from tests.models.peft_folder import tensors, write_folder
from tests.train.tiny import make_tiny

pytestmark = pytest.mark.filterwarnings("default::FutureWarning")

TINY = Dimensions(layers=2, hidden=32, feed_forward=64, heads=4, kv_heads=2, head_width=8)
PROMPTS = 100
LARGEST = 1e-4
EFFECT = 0.5


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny base."""
    tiny = make_tiny(tmp_path_factory.mktemp("tiny"))
    (folder,) = (path for path in tiny.cache.iterdir() if path.is_dir())
    return folder


def load(folder: Path) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()


@pytest.mark.parametrize("options", [{}, {"use_rslora": True}], ids=["alpha over rank", "rank-stabilised"])
def test_logits_are_those_of_base_and_adapter(options: dict[str, Any], base: Path, tmp_path: Path) -> None:
    import peft
    import torch

    adapter = write_folder(tmp_path / "adapter", tensors(TINY, 2, seed=2), target_modules="all-linear", **options)
    merge_safetensors(base, adapter, tmp_path / "merged")
    merged, adapted = load(tmp_path / "merged"), peft.PeftModel.from_pretrained(load(base), adapter).eval()
    torch.manual_seed(1)
    prompts = torch.randint(0, merged.config.vocab_size, (PROMPTS, 24))
    with torch.inference_mode():
        here, there = merged(prompts).logits, adapted(prompts).logits
        with adapted.disable_adapter():
            bare = adapted(prompts).logits
    assert (bare - there).abs().max() > EFFECT
    assert (here - there).abs().max() < LARGEST
