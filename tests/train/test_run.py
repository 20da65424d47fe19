"""Runs from beginning to end, on a tiny base."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from macaron.errors import ConfigError
from macaron.registry.revision import adapter_revision
from macaron.train.base import find_base, load_model
from macaron.train.config import TrainConfig, build_config
from macaron.train.failure import TrainingFailed
from macaron.train.folder import RunFolder
from macaron.train.progress import Tick
from macaron.train.quiet import quiet_libraries
from macaron.train.record import RunRecord
from macaron.train.trainer import prepare_run, resumed_config, train
from tests.train.tiny import Tiny, preference_rows, route_rows, sft_rows, write_set

SMALL = {"batch": {"tokens": 600, "rows": 4, "window": 16}, "lora": {"rank": 4, "alpha": 8}, "threads": 1}


@pytest.fixture
def data(tmp_path: Path) -> str:
    """Both kinds that an entry specialist is trained on."""
    return write_set(
        tmp_path / "data", [*sft_rows(8), *route_rows(8)], [*sft_rows(3, name="d"), *route_rows(4, name="e")]
    )


def config_of(tiny: Tiny, *data: str, **overrides: Any) -> TrainConfig:
    table = {"kind": "sft", "profile": tiny.profile, "adapter": "L0", "data": list(data), **SMALL}
    return build_config(table, {"optimizer.lr": 1e-3, **overrides})


def run(tiny: Tiny, config: TrainConfig, folder: Path, **options: Any) -> RunRecord:
    return train(prepare_run(config, cache_dir=tiny.cache), RunFolder(folder), **options)


def weights_of(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(folder / "adapter_model.safetensors"))


def logs_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_run_leaves_an_adapter_that_changes_the_base(tiny: Tiny, data: str, tmp_path: Path) -> None:
    import torch
    from peft import PeftModel

    config = config_of(tiny, data, epochs=2, **{"route.vary": 0.5})
    prepared = prepare_run(config, cache_dir=tiny.cache)
    record = train(prepared, RunFolder(tmp_path / "run"))
    assert record.status == "finished"
    assert record.adapter is not None
    assert record.adapter.revision == adapter_revision(tmp_path / "run" / "adapter")
    assert msgspec.json.decode((tmp_path / "run" / "adapter" / "run.json").read_bytes(), type=RunRecord) == record
    assert sorted(os.listdir(tmp_path / "run" / "adapter")) == [
        "adapter_config.json", "adapter_model.safetensors", "run.json",
    ]  # fmt: skip
    assert set(record.metrics) >= {"loss", "dev_loss", "dev_loss_sft", "dev_loss_route", "dev_accuracy"}
    assert record.steps == len(prepared.steps) == len(logs_of(tmp_path / "run"))
    assert record.tokens == logs_of(tmp_path / "run")[-1]["tokens"] > record.data[0].tokens > 0
    base = load_model(find_base(prepared.loaded, cache_dir=tiny.cache))
    ids = torch.tensor([prepared.material.dev.sft[0].ids])
    before = base(ids).logits
    with quiet_libraries():
        adapted = PeftModel.from_pretrained(base, str(tmp_path / "run" / "adapter"))
    assert (adapted(ids).logits - before).abs().max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_training_lowers_the_loss_on_what_it_is_trained_on(tiny: Tiny, tmp_path: Path, precision: str) -> None:
    data = write_set(tmp_path / "data", sft_rows(4))
    run(tiny, config_of(tiny, data, epochs=30, precision=precision, **{"optimizer.lr": 2e-2}), tmp_path / "run")
    losses = [entry["loss"] for entry in logs_of(tmp_path / "run")]
    assert losses[-1] < losses[0] - 0.5


class StopAfter:
    """Asks the run to stop, as Ctrl-C does, once a step is done."""

    def __init__(self, step: int) -> None:
        self._step = step

    def __call__(self, tick: Tick) -> None:
        if tick.step == self._step:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_stopped_and_resumed_equals_uninterrupted(tiny: Tiny, data: str, tmp_path: Path, precision: str) -> None:
    config = config_of(tiny, data, epochs=3, precision=precision, **{"lora.dropout": 0.1})
    whole = run(tiny, config, tmp_path / "whole")
    stopped = run(tiny, config, tmp_path / "parts", report=StopAfter(4))
    assert stopped.status == "stopped"
    assert 4 <= stopped.steps < whole.steps
    assert not (tmp_path / "parts" / "adapter").exists()
    resumed = run(tiny, config, tmp_path / "parts", resume=True)
    assert (resumed.status, resumed.id, resumed.tokens) == ("finished", stopped.id, whole.tokens)
    one, other = weights_of(tmp_path / "whole" / "adapter"), weights_of(tmp_path / "parts" / "adapter")
    assert {str(value.dtype) for value in one.values()} == {"torch.float32"}
    assert max(float((one[name] - other[name]).abs().max()) for name in one) < 1e-6
    assert [entry["step"] for entry in logs_of(tmp_path / "parts")] == list(range(1, whole.steps + 1))


@pytest.mark.slow
def test_resuming_with_a_cold_optimizer_would_give_other_weights(tiny: Tiny, data: str, tmp_path: Path) -> None:
    import torch

    config = config_of(tiny, data, epochs=3)
    run(tiny, config, tmp_path / "whole")
    run(tiny, config, tmp_path / "cold", report=StopAfter(4))
    step = RunFolder(tmp_path / "cold").checkpoint_steps()[-1]
    path = RunFolder(tmp_path / "cold").checkpoint(step) / "optimizer.pt"
    state = torch.load(path, weights_only=True)
    torch.save({**state, "state": {}}, path)
    run(tiny, config, tmp_path / "cold", resume=True)
    one, other = weights_of(tmp_path / "whole" / "adapter"), weights_of(tmp_path / "cold" / "adapter")
    assert max(float((one[name] - other[name]).abs().max()) for name in one) > 1e-5


@pytest.mark.slow
def test_a_checkpoint_that_lacks_a_file_is_refused(tiny: Tiny, data: str, tmp_path: Path) -> None:
    config = config_of(tiny, data, epochs=2)
    folder = RunFolder(tmp_path / "run")
    run(tiny, config, folder.path, report=StopAfter(2))
    (folder.checkpoint(folder.checkpoint_steps()[-1]) / "optimizer.pt").unlink()
    with pytest.raises(ConfigError, match=r"has no optimizer\*"):
        run(tiny, config, folder.path, resume=True)


@pytest.mark.slow
def test_data_or_settings_that_changed_are_not_resumed(tiny: Tiny, data: str, tmp_path: Path) -> None:
    config = config_of(tiny, data, epochs=2)
    folder = RunFolder(tmp_path / "run")
    run(tiny, config, folder.path, report=StopAfter(2))
    with pytest.raises(ConfigError, match=r"other settings for optimizer\.lr"):
        resumed_config(folder, {"optimizer.lr": 0.5})
    with (Path(data) / "train.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(sft_rows(1, name="new")[0]) + b"\n")
    with pytest.raises(ConfigError, match="has changed since"):
        run(tiny, resumed_config(folder, {"threads": 2}), folder.path, resume=True)


@pytest.mark.slow
def test_only_the_newest_checkpoints_are_kept(tiny: Tiny, data: str, tmp_path: Path) -> None:
    config = config_of(tiny, data, epochs=2, **{"checkpoint.steps": 1, "checkpoint.keep": 2})
    record = run(tiny, config, tmp_path / "run")
    assert RunFolder(tmp_path / "run").checkpoint_steps() == [record.steps - 1, record.steps]
    assert sorted(os.listdir(tmp_path / "run" / "checkpoints"))[:-2] in ([], [".part"])


@pytest.mark.slow
def test_a_loss_that_is_not_a_number_ends_the_run_without_an_adapter(tiny: Tiny, data: str, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    cache = shutil.copytree(tiny.cache, tmp_path / "bases")
    weights = next(cache.glob("*/model.safetensors"))
    values = load_file(weights)
    values["model.norm.weight"][3] = float("nan")
    save_file(values, weights, {"format": "pt"})
    with pytest.raises(TrainingFailed, match="the loss of step 1 is nan"):
        run(tiny._replace(cache=cache), config_of(tiny, data), tmp_path / "run")
    record = RunFolder(tmp_path / "run").read_record()
    assert record.status == "failed"
    assert "the loss of step" in record.reason
    assert not (tmp_path / "run" / "adapter").exists()


@pytest.mark.slow
def test_a_run_goes_on_from_another(tiny: Tiny, data: str, tmp_path: Path) -> None:
    parent = run(tiny, config_of(tiny, data), tmp_path / "parent")
    config = config_of(tiny, data, start=str(tmp_path / "parent"), **{"optimizer.lr": 1e-9})
    child = run(tiny, config, tmp_path / "child")
    assert child.parent == parent.id
    one, other = weights_of(tmp_path / "parent" / "adapter"), weights_of(tmp_path / "child" / "adapter")
    assert max(float((one[name] - other[name]).abs().max()) for name in one) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_preference_run_resumes_and_leaves_one_adapter(tiny: Tiny, data: str, tmp_path: Path, precision: str) -> None:
    run(tiny, config_of(tiny, data), tmp_path / "parent")
    pairs = write_set(tmp_path / "pairs", preference_rows(9), preference_rows(3, "q"))
    config = config_of(tiny, pairs, kind="dpo", start=str(tmp_path / "parent"), epochs=2, precision=precision)
    whole = run(tiny, config, tmp_path / "whole")
    run(tiny, config, tmp_path / "parts", report=StopAfter(2))
    record = run(tiny, config, tmp_path / "parts", resume=True)
    assert set(record.metrics) >= {"dev_loss", "dev_accuracy"}
    assert record.steps == whole.steps
    one, other = weights_of(tmp_path / "whole" / "adapter"), weights_of(tmp_path / "parts" / "adapter")
    assert max(float((one[name] - other[name]).abs().max()) for name in one) < 1e-6
    assert len(os.listdir(tmp_path / "parts" / "adapter")) == 3


def test_a_folder_that_another_process_works_in_is_refused(tiny: Tiny, data: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with (folder / "lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="works in") as caught:
            run(tiny, config_of(tiny, data), folder)
    assert caught.value.code == "run_locked"


def test_a_folder_with_a_run_is_not_begun_again(tiny: Tiny, data: str, tmp_path: Path) -> None:
    record = RunRecord("L0-1", "sft", "stopped", "demi", "L0", "base", "sha256:0", "2026-01-01T00:00:00Z", 1)
    RunFolder(tmp_path).write_record(record)
    with pytest.raises(ConfigError, match="go on with --resume"):
        run(tiny, config_of(tiny, data), tmp_path)


def test_rows_that_are_trained_on_and_held_out_are_refused(tiny: Tiny, tmp_path: Path) -> None:
    rows = sft_rows(3)
    data = write_set(tmp_path / "data", rows, [msgspec.structs.replace(rows[1], id="other", source="elsewhere")])
    with pytest.raises(ConfigError, match="1 rows are trained on and held out"):
        prepare_run(config_of(tiny, data), cache_dir=tiny.cache)


def test_rows_that_are_too_long_are_named_or_counted(tiny: Tiny, tmp_path: Path) -> None:
    data = write_set(tmp_path / "data", sft_rows(6))
    lengths = sorted(
        len(row.ids) for row in prepare_run(config_of(tiny, data), cache_dir=tiny.cache).material.train.sft
    )
    with pytest.raises(ConfigError, match=r"1 rows cannot be used(.|\n)*more than|max_tokens"):
        prepare_run(config_of(tiny, data, max_tokens=lengths[-1] - 1), cache_dir=tiny.cache)
    kept = prepare_run(config_of(tiny, data, max_tokens=lengths[-1] - 1, skip_broken=True), cache_dir=tiny.cache)
    assert len(kept.material.bad) == sum(length == lengths[-1] for length in lengths)


def test_data_of_several_specialists_is_shown_under_the_prompt_of_each(tiny: Tiny, tmp_path: Path) -> None:
    one = write_set(tmp_path / "one", sft_rows(2), [])
    two = write_set(tmp_path / "two", sft_rows(2, name="b"), [])
    prepared = prepare_run(config_of(tiny, f"L0={one}", f"L1={two}", adapter="control"), cache_dir=tiny.cache)
    shown = [prepared.tokenizer.decode(row.ids) for row in prepared.material.train.sft]
    identities = [prepared.loaded.text(f"mol.adapters.{label}.prompt_path").strip() for label in ("L0", "L1")]
    own = [[identity in text for identity in identities] for text in shown]
    assert own == [[True, False]] * 2 + [[False, True]] * 2


def test_data_of_no_specialist_is_refused(tiny: Tiny, data: str) -> None:
    with pytest.raises(ConfigError, match="'control' is no label of this profile"):
        prepare_run(config_of(tiny, data, adapter="control"), cache_dir=tiny.cache)
