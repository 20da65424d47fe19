"""Makes what vLLM serves in the tests; runs inside `.venv-vllm`: `build_models.py <gguf> <chat template> <folder>`.

The folder gets `base`, the project's own weights as safetensors, and `L0` and `L1`, two LoRA adapters in PEFT's format.
The adapters are noise, strong enough that each changes what the base says.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

RANK = 16
SPREAD = 0.1
"""Standard deviation of B; at 0.02 an adapter changes next to nothing."""
SEEDS = {"L0": 1, "L1": 3}


def main(weights: Path, template: Path, folder: Path) -> None:
    """Write the base and the adapters."""
    # They are installed in this environment only, and each takes seconds to import.
    torch, transformers = import_module("torch"), import_module("transformers")
    base = folder / "base"
    given = transformers.AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name)
    config = given.config.to_dict()
    # A model read from quantised weights cannot be saved; one that never heard of it can.
    config.pop("quantization_config", None)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config))
    model.load_state_dict(given.state_dict())
    model.generation_config.eos_token_id = given.config.eos_token_id
    model.to(torch.float32).save_pretrained(base)
    tokenizer = transformers.AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
    tokenizer.chat_template = template.read_text()
    tokenizer.save_pretrained(base)
    for name, seed in SEEDS.items():
        _adapter(torch, base, seed).save_pretrained(folder / name)


def _adapter(torch: Any, base: Path, seed: int) -> Any:
    transformers, peft = import_module("transformers"), import_module("peft")
    torch.manual_seed(seed)
    model = transformers.LlamaForCausalLM.from_pretrained(base)
    config = peft.LoraConfig(r=RANK, lora_alpha=RANK, target_modules="all-linear", task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(model, config)
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=SPREAD)
    return adapted


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
