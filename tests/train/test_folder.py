"""A run folder: files that are whole, metrics that end where the checkpoint is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.train.folder import RunFolder, new_run_id


def test_metrics_after_a_step_and_a_torn_last_line_are_dropped(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for step in range(1, 6):
        folder.log({"step": step, "tokens": step * 10})
    with folder.metrics.open("ab") as file:
        file.write(b'{"step":6,"tok')
    assert folder.cut_metrics(9) == {"step": 5, "tokens": 50}
    assert folder.cut_metrics(3) == {"step": 3, "tokens": 30}
    assert len(folder.metrics.read_bytes().splitlines()) == 3
    assert folder.cut_metrics(0) == {}


def test_checkpoints_are_listed_by_step_and_unfinished_ones_are_not(tmp_path: Path) -> None:
    for name in ("checkpoint-10", "checkpoint-9", ".part", "checkpoint-x"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    assert RunFolder(tmp_path).checkpoint_steps() == [9, 10]


def test_a_folder_is_free_again_when_its_holder_is_done(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder.locked():
        with pytest.raises(ConfigError, match=r"process \d+ works in"), folder.locked():
            pass
    with folder.locked():
        assert (folder.path / "lock").exists()


def test_a_record_that_is_no_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"id": 3}')
    with pytest.raises(ConfigError, match="is no record of a run"):
        RunFolder(tmp_path).read_record()


def test_an_id_has_label_time_and_four_hex_digits() -> None:
    assert re.fullmatch(r"L2-\d{8}T\d{6}-[0-9a-f]{4}", new_run_id("L2"))
