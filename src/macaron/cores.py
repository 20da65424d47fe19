"""How many processor cores this process may use: a worker thread more than that only waits for the others."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def usable_cores(cgroup: Path = CGROUP) -> int:
    """Cores of this process: of its affinity (`taskset`, a container's cpuset), and no more than its quota pays for.

    Args:
        cgroup: mount point of the control groups, as a container sees its own; version 2 or 1.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroup)
    return max(1, min(cores, int(quota))) if quota is not None else cores


def _quota(cgroup: Path) -> float | None:
    """Cores that the control group's quota pays for; None without one."""
    try:
        numbers = (cgroup / "cpu.max").read_text("ascii").split()
    except (OSError, ValueError):
        numbers = [_first_line(cgroup / "cpu" / name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
    try:
        quota, period = (int(number) for number in numbers)
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def _first_line(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
