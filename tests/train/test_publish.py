"""Publishing a run's adapter: half the size, the same effect, whole or not there."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy
import pytest
from msgspec.structs import replace
from safetensors.numpy import load_file, save_file

from macaron.errors import ConfigError
from macaron.registry.check import check_adapter
from macaron.registry.revision import ADAPTER_FILES, adapter_revision
from macaron.train.folder import RunFolder
from macaron.train.publish import publish
from macaron.train.record import AdapterInfo, RunRecord, Status

LORA_A = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
LORA_B = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"


def finished(path: Path, value: float = 0.5, status: Status = "finished") -> Path:
    """A run folder with an adapter of two small tensors."""
    folder = RunFolder(path)
    folder.adapter.mkdir(parents=True)
    (folder.adapter / ADAPTER_FILES[0]).write_text("{}")
    tensors = {LORA_A: numpy.full((2, 64), value, "float32"), LORA_B: numpy.full((64, 2), 0.25, "float32")}
    save_file(tensors, folder.adapter / ADAPTER_FILES[1])
    size = (folder.adapter / ADAPTER_FILES[1]).stat().st_size
    folder.write_record(
        RunRecord(
            id="L1-x",
            kind="sft",
            status=status,
            profile="p",
            label="L1",
            base="b",
            base_fingerprint="sha256:1",
            created="2026-11-30T00:00:00Z",
            seed=1,
            adapter=AdapterInfo(adapter_revision(folder.adapter), 2, 256, size),
        )
    )
    return path


def test_values_are_halved_and_the_record_names_the_copy(tmp_path: Path) -> None:
    run, target = finished(tmp_path / "run"), tmp_path / "profile" / "adapters" / "L1"
    record = publish(run, target)
    assert {str(value.dtype) for value in load_file(target / ADAPTER_FILES[1]).values()} == {"float16"}
    assert record.adapter is not None
    assert record.adapter.revision == adapter_revision(target) != adapter_revision(run / "adapter")
    assert record.adapter.bytes == (target / ADAPTER_FILES[1]).stat().st_size
    assert msgspec.json.decode((target / "run.json").read_bytes(), type=RunRecord) == record


def test_an_earlier_copy_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "adapters" / "L1"
    publish(finished(tmp_path / "one"), target)
    (target / "stale").write_text("x")
    second = publish(finished(tmp_path / "two", value=0.125), target)
    assert sorted(path.name for path in target.iterdir()) == sorted([*ADAPTER_FILES, "run.json"])
    assert [path.name for path in target.parent.iterdir()] == ["L1"]
    assert second.adapter is not None
    assert adapter_revision(target) == second.adapter.revision


def test_a_run_that_is_not_finished_has_nothing_to_publish(tmp_path: Path) -> None:
    run = finished(tmp_path / "run", status="stopped")
    with pytest.raises(ConfigError, match="only a finished run"):
        publish(run, tmp_path / "L1")
    assert not (tmp_path / "L1").exists()


def test_values_that_do_not_fit_are_refused_and_the_earlier_copy_stays(tmp_path: Path) -> None:
    target = tmp_path / "L1"
    before = publish(finished(tmp_path / "one"), target)
    with pytest.raises(ConfigError, match="float16"):
        publish(finished(tmp_path / "two", value=1e6), target)
    assert before.adapter is not None
    assert adapter_revision(target) == before.adapter.revision


def test_a_record_without_an_adapter_is_refused(tmp_path: Path) -> None:
    folder = RunFolder(finished(tmp_path / "run"))
    folder.write_record(replace(folder.read_record(), adapter=None))
    with pytest.raises(ConfigError, match="only a finished run"):
        publish(folder.path, tmp_path / "L1")


def test_a_licence_makes_a_card_that_a_check_reads(tmp_path: Path) -> None:
    target = tmp_path / "adapters" / "L1"
    publish(finished(tmp_path / "run"), target, licence="Apache-2.0")
    assert check_adapter(target, None).licence == "Apache-2.0"
