"""How many threads are worth starting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from macaron.cores import usable_cores


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def version_2(folder: Path, line: str) -> Path:
    (folder / "cpu.max").write_text(line)
    return folder


def version_1(folder: Path, quota: str, period: str) -> Path:
    (folder / "cpu").mkdir()
    (folder / "cpu" / "cpu.cfs_quota_us").write_text(quota)
    (folder / "cpu" / "cpu.cfs_period_us").write_text(period)
    return folder


def test_the_affinity_counts_where_there_is_no_quota(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == 8


@pytest.mark.parametrize(
    ("line", "cores"), [("200000 100000\n", 2), ("350000 100000\n", 3), ("50000 100000\n", 1), ("max 100000\n", 8)]
)
def test_a_quota_is_not_exceeded(tmp_path: Path, line: str, cores: int) -> None:
    assert usable_cores(version_2(tmp_path, line)) == cores


@pytest.mark.parametrize(("quota", "cores"), [("400000\n", 4), ("-1\n", 8)])
def test_a_quota_of_the_older_control_groups_is_not_exceeded(tmp_path: Path, quota: str, cores: int) -> None:
    assert usable_cores(version_1(tmp_path, quota, "100000\n")) == cores


@pytest.mark.parametrize("line", ["", "nonsense", "0 0", "1 2 3", "\xff"])
def test_what_cannot_be_read_is_no_quota(tmp_path: Path, line: str) -> None:
    (tmp_path / "cpu.max").write_bytes(line.encode("latin-1"))
    assert usable_cores(tmp_path) == 8
