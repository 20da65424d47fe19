"""Small real adapters and the base they fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from macaron.registry.check import BaseFingerprint, Finding, Limits, check_adapter
from tests.models.peft_folder import BLOCK, TINY, Tensors, tensors, write_folder

FIRST_A = f"{BLOCK}.0.self_attn.q_proj.lora_A.weight"
FIRST_B = f"{BLOCK}.0.self_attn.q_proj.lora_B.weight"
FULL = "sha256:" + "b" * 64
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def tiny_base() -> BaseFingerprint:
    """The base of `peft_folder.TINY`."""
    sizes = {name: weights.shape for name, weights in tensors().items()}
    modules = {
        name.removeprefix("base_model.model.").removesuffix(".lora_A.weight"): (
            sizes[name.replace("lora_A", "lora_B")][0],
            shape[1],
        )
        for name, shape in sizes.items()
        if "lora_A" in name
    }
    return BaseFingerprint(
        name="tiny", architecture="llama", layers=TINY.layers, hidden=TINY.hidden, feed_forward=TINY.feed_forward,
        heads=TINY.heads, kv_heads=TINY.kv_heads, vocabulary=32, tokenizer="", modules=modules,
        sample="sample1:" + "a" * 64, full=FULL,
    )  # fmt: skip


def adapter(folder: Path, weights: Tensors | None = None, **options: Any) -> Path:
    """In order, but for `weights` and `options`."""
    return write_folder(folder, weights, **{"target_modules": TARGETS, "base_model_name_or_path": "tiny", **options})


def found(folder: Path, limits: Limits | None = None, *, base: BaseFingerprint | None = None) -> dict[str, Finding]:
    """The findings by code; only one of each is expected."""
    report = check_adapter(folder, base or tiny_base(), limits)
    by_code = {item.code: item for item in report.findings}
    assert len(by_code) == len(report.findings), report.findings
    assert all(item.remedy for item in report.findings if item.severity != "note")
    return by_code


def errors(folder: Path, limits: Limits | None = None) -> dict[str, Finding]:
    """Those that forbid registration."""
    return {code: item for code, item in found(folder, limits).items() if item.severity == "error"}


def changed(values: Mapping[str, Any]) -> Tensors:
    """All tensors, with some replaced, and without those that are None."""
    return {name: value for name, value in {**tensors(), **values}.items() if value is not None}
