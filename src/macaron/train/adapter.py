"""The adapter that comes out of a run: a folder in PEFT's format that is whole or not there."""

from __future__ import annotations

import json
import shutil
from typing import Any

import msgspec
from msgspec.structs import replace

from macaron.registry.revision import ADAPTER_FILES, adapter_revision
from macaron.train.checkpoint import sync_tree, whole
from macaron.train.failure import TrainingFailed
from macaron.train.folder import RunFolder
from macaron.train.record import AdapterInfo, RunRecord


def save_adapter(model: Any, folder: RunFolder, record: RunRecord) -> RunRecord:
    """Write the adapter of a PEFT model, with the record of its run, and return that record with the adapter in it.

    Raises:
        TrainingFailed: a value is not finite.
        ConfigError: the disk is full.
    """
    weights = {name: value for name, value in model.named_parameters() if ".default." in name}
    broken = [name for name, value in weights.items() if not bool(value.isfinite().all())]
    if broken:
        raise TrainingFailed(f"{broken[0]} holds values that are not finite; lower --lr and train again")
    part = folder.path / ".adapter.part"
    shutil.rmtree(part, ignore_errors=True)
    with whole(part):
        model.save_pretrained(str(part), selected_adapters=["default"])
        (part / "README.md").unlink(missing_ok=True)
        _name_base(part / ADAPTER_FILES[0], record.base)
        info = AdapterInfo(
            revision=adapter_revision(part),
            rank=int(model.peft_config["default"].r),
            parameters=sum(value.numel() for value in weights.values()),
            bytes=(part / ADAPTER_FILES[1]).stat().st_size,
        )
        record = replace(record, adapter=info)
        (part / "run.json").write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
        sync_tree(part)
        shutil.rmtree(folder.adapter, ignore_errors=True)
        part.replace(folder.adapter)
    return record


def _name_base(path: Any, base: str) -> None:
    """The base by its name, as PEFT writes the place where it lay on this machine; and the modules in order."""
    table = json.loads(path.read_text("utf-8"))
    table["base_model_name_or_path"] = base
    # PEFT writes a set; in its order the same adapter would have another revision each time.
    table["target_modules"] = sorted(table["target_modules"])
    path.write_text(json.dumps(table, indent=2, sort_keys=True) + "\n", "utf-8")
