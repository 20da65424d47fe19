"""Run folders as training leaves them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from macaron.evals.record import CaseResult
from macaron.train.record import AdapterInfo, DataUse, RunRecord

RECORD = RunRecord(
    id="L2-20261130T141500-ab12", kind="sft", status="finished", profile="demi", label="L2", base="SmolLM2",
    base_fingerprint="sha256:b179", created="2026-11-30T14:15:00Z", seed=1, finished="2026-11-30T14:40:00Z",
    data=(DataUse("data/code", "aa" * 32, 100, 20_000),), seconds=1500.0, tokens=300_000, steps=40,
    versions={"torch": "2.13.0"}, metrics={"loss": 1.25, "dev_loss": 1.5},
    adapter=AdapterInfo("sha256:cd", 8, 2_400_000, 4_900_000),
)  # fmt: skip
CONFIG: dict[str, Any] = {"kind": "sft", "adapter": "L2", "lora": {"rank": 8, "alpha": 16}, "optimizer": {"lr": 2e-4}}


def write_run(
    folder: Path, *, config: Mapping[str, Any] = CONFIG, losses: Iterable[float] = (), **changes: Any
) -> Path:
    """A whole run; `changes` are of its record."""
    (folder / "evals").mkdir(parents=True)
    (folder / "adapter").mkdir()
    (folder / "run.json").write_bytes(msgspec.json.encode(replace(RECORD, **changes)))
    (folder / "config.json").write_bytes(msgspec.json.encode(config))
    (folder / "data.json").write_bytes(b'{"data": ["data/code"], "manifests": []}')
    steps = ({"step": at, "loss": loss, "tokens": 100 * at} for at, loss in enumerate(losses or _falling(), 1))
    (folder / "metrics.jsonl").write_bytes(b"".join(msgspec.json.encode(step) + b"\n" for step in steps))
    return folder


def write_results(run: Path, name: str, subject: str, passed: Mapping[str, bool], **more: Any) -> None:
    """Results of an evaluation, added to those that are there."""
    with (run / "evals" / f"{name}.jsonl").open("ab") as file:
        for case, right in passed.items():
            reason = "" if right else "no tool call"
            result = CaseResult(case, "bfcl", subject, right, reason=reason, output=f"{subject} says {case}", **more)
            file.write(msgspec.json.encode(result) + b"\n")


def _falling() -> list[float]:
    return [1 + 2 / step for step in range(1, 41)]
