"""LoRA adapters as PEFT writes them, made into what the embedded engine reads."""

from __future__ import annotations

from macaron.models.lora.convert import FORMAT, write_gguf

__all__ = ["FORMAT", "write_gguf"]
