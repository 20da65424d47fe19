"""A finished run's adapter as it ships: half precision, half the size, beside the record of its run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
from msgspec.structs import replace

from macaron.errors import ConfigError
from macaron.registry.revision import ADAPTER_FILES, adapter_revision
from macaron.train.checkpoint import sync_tree, whole
from macaron.train.folder import RunFolder
from macaron.train.record import RunRecord


def publish(run: Path, target: Path, licence: str = "") -> RunRecord:
    """Copy the adapter of a finished run to `target`, its values as float16; what was there is replaced at once.

    The record beside it names the revision of the copy, which is another one than that of the run's own adapter.

    Args:
        licence: its SPDX name, for a card beside the adapter; without one there is no card.

    Raises:
        ConfigError: the run is not finished, a value does not fit into float16, or the disk is full.
    """
    folder = RunFolder(run)
    record = folder.read_record()
    if record.status != "finished" or record.adapter is None or not folder.adapter.is_dir():
        raise ConfigError(f"run {record.id} is {record.status}; only a finished run has an adapter", param="run")
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole(part):
        part.mkdir()
        shutil.copyfile(folder.adapter / ADAPTER_FILES[0], part / ADAPTER_FILES[0])
        _halve(folder.adapter / ADAPTER_FILES[1], part / ADAPTER_FILES[1])
        size = (part / ADAPTER_FILES[1]).stat().st_size
        record = replace(record, adapter=replace(record.adapter, revision=adapter_revision(part), bytes=size))
        if licence:
            (part / "README.md").write_text(_card(record, licence), "utf-8")
        (part / "run.json").write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
        sync_tree(part)
        _swap(part, target)
    return record


def _card(record: RunRecord, licence: str) -> str:
    return (
        f"---\nlicense: {licence}\nbase_model: {record.base}\nlibrary_name: peft\n---\n"
        f"LoRA adapter {record.label} of `{record.profile}`, from run `{record.id}`.\n"
        "`run.json` has its data and settings.\n"
    )


def _halve(source: Path, target: Path) -> None:
    import numpy
    from safetensors.numpy import load_file, save_file

    with numpy.errstate(over="ignore"):
        tensors = {name: value.astype(numpy.float16) for name, value in load_file(source).items()}
    broken = [name for name, value in tensors.items() if not numpy.isfinite(value).all()]
    if broken:
        raise ConfigError(f"{broken[0]} of {source} holds values that float16 cannot; train with a lower --lr")
    save_file(tensors, target, metadata={"format": "pt"})


def _swap(part: Path, target: Path) -> None:
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        os.replace(target, old)
    os.replace(part, target)
    shutil.rmtree(old, ignore_errors=True)
