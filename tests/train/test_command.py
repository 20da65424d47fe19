"""`macaron train` as a command: killed, without room on the disk, and dry."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from macaron.train.folder import RunFolder
from tests.train.tiny import Tiny, route_rows, sft_rows, write_set

SECONDS = 150.0
OPTIONS = ("--adapter", "L0", "--epochs", "6", "--lr", "1e-3", "--rank", "4", "--threads", "1", "--batch-tokens", "300")


@pytest.fixture
def home(tiny: Tiny, tmp_path: Path) -> Path:
    """A cache in which the command finds the tiny base."""
    (tmp_path / "cache" / "macaron").mkdir(parents=True)
    (tmp_path / "cache" / "macaron" / "bases").symlink_to(tiny.cache)
    return tmp_path / "cache"


@pytest.fixture
def data(tmp_path: Path) -> str:
    return write_set(tmp_path / "data", [*sft_rows(8), *route_rows(8)], sft_rows(2, name="d"))


def command(*arguments: str, limit: int = 0) -> list[str]:
    """The command, with no file larger than `limit` bytes if there is one."""
    cap = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); " if limit else ""
    return [sys.executable, "-c", f"{cap}from macaron.cli import main; main()", "train", "sft", *arguments]


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": str(home), "COLUMNS": "200"}


def call(home: Path, *arguments: str, limit: int = 0) -> subprocess.CompletedProcess[str]:
    line = command(*arguments, limit=limit)
    return subprocess.run(line, env=environment(home), capture_output=True, text=True, timeout=SECONDS, check=False)


def weights_of(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(folder / "adapter" / "adapter_model.safetensors"))


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_killed_and_resumed_equals_uninterrupted(tiny: Tiny, home: Path, data: str, tmp_path: Path) -> None:
    recipe = tmp_path / "often.toml"
    recipe.write_text("[checkpoint]\nsteps = 2\n[batch]\nrows = 3\n")
    given = ("--profile", tiny.profile, "--data", data, "--config", str(recipe), *OPTIONS)
    whole = call(home, *given, "--out", str(tmp_path / "whole"))
    assert whole.returncode == 0, whole.stderr
    folder = RunFolder(tmp_path / "killed")
    running = subprocess.Popen(command(*given, "--out", str(folder.path)), env=environment(home))
    deadline = time.monotonic() + SECONDS
    while len(folder.checkpoint_steps()) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    assert running.wait(SECONDS) == -signal.SIGKILL
    assert folder.read_record().status == "running"
    assert not folder.adapter.exists()
    resumed = call(home, "--resume", "--out", str(folder.path))
    assert resumed.returncode == 0, resumed.stderr
    one, other = weights_of(tmp_path / "whole"), weights_of(folder.path)
    assert max(float((one[name] - other[name]).abs().max()) for name in one) < 1e-6
    again = call(home, "--resume", "--out", str(folder.path))
    assert again.returncode == 0
    assert folder.read_record().seconds > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_processes_train_one_adapter_together(tiny: Tiny, home: Path, data: str, tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "macaron"]
    given = ["train", "sft", "--profile", tiny.profile, "--data", data, *OPTIONS, "--out", str(tmp_path / "run")]
    variables = {**environment(home), "ACCELERATE_USE_CPU": "1"}
    found = subprocess.run(
        [*launch, *given], env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert found.returncode == 0, found.stderr
    record = RunFolder(tmp_path / "run").read_record()
    steps = [json.loads(line)["step"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert record.status == "finished"
    assert steps == list(range(1, record.steps + 1))
    assert record.tokens == 6 * record.data[0].tokens
    assert (tmp_path / "run" / "adapter" / "adapter_model.safetensors").is_file()


@pytest.mark.slow
def test_a_full_disk_is_an_error_and_leaves_no_part_of_a_checkpoint(
    tiny: Tiny, home: Path, data: str, tmp_path: Path
) -> None:
    found = call(
        home, "--profile", tiny.profile, "--data", data, *OPTIONS, "--out", str(tmp_path / "run"), limit=30_000
    )
    assert found.returncode == 1
    assert "is full; free some space and go on with --resume" in found.stderr
    folder = RunFolder(tmp_path / "run")
    assert folder.read_record().status == "failed"
    assert folder.checkpoint_steps() == []
    assert not folder.adapter.exists()
    assert not (folder.checkpoints / ".part").exists()


@pytest.mark.slow
def test_a_dry_run_shows_rows_counts_and_time_and_writes_nothing(
    tiny: Tiny, home: Path, data: str, tmp_path: Path
) -> None:
    given = ("--profile", tiny.profile, "--data", data, *OPTIONS, "--out", str(tmp_path / "run"))
    found = call(home, *given, "--dry-run")
    assert found.returncode == 0, found.stderr
    assert "loss on the marked tokens" in found.stdout
    assert "steps," in found.stdout
    assert not (tmp_path / "run").exists()


def test_resuming_needs_a_folder(home: Path) -> None:
    found = call(home, "--resume")
    assert found.returncode == 1
    assert "--resume needs --out" in found.stderr
