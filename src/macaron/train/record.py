"""The run folder: where each thing of a training run is, and `run.json`, which says what the run was.

RUN/run.json               this record, replaced atomically
RUN/config.json            the resolved configuration
RUN/data.json              the manifests of the data sets that were read
RUN/metrics.jsonl          one object a logged step: step, epoch, loss, learning_rate, tokens, seconds
RUN/checkpoints/           `checkpoint-<step>` folders
RUN/adapter/               `adapter_config.json`, `adapter_model.safetensors`, `run.json`; only there once complete
RUN/evals/<name>.jsonl     one `CaseResult` a line; `<name>.json` is the summary
RUN/lock                   held while a process works in the folder
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Status = Literal["running", "stopped", "failed", "finished"]
RunKind = Literal["sft", "dpo"]


class DataUse(Struct, frozen=True):
    """One data set of a run: where it was, the SHA-256 of its manifest, the rows and tokens read from it."""

    path: str
    sha256: str
    rows: int
    tokens: int


class AdapterInfo(Struct, frozen=True):
    """The adapter that came out: its revision (`sha256:<hex>`), rank, number of values, and size of its file."""

    revision: str
    rank: int
    parameters: int
    bytes: int


class RunRecord(Struct, frozen=True, omit_defaults=True):
    """`run.json`.

    Attributes:
        id: `<label>-<utc time>-<4 hex>`.
        parent: id of the run it went on from (`--from`), empty if from the base.
        base_fingerprint: `sha256:<hex>` of the weights file that was trained on.
        created, finished: RFC 3339 in UTC.
        seconds, tokens: of all processes that worked on the run together.
        versions: of the packages that decide the result.
        machine: processor and number of threads.
        metrics: last values, such as `loss` and `dev_loss`.
        reason: why it failed or stopped.
    """

    id: str
    kind: RunKind
    status: Status
    profile: str
    label: str
    base: str
    base_fingerprint: str
    created: str
    seed: int
    data: tuple[DataUse, ...] = ()
    parent: str = ""
    finished: str = ""
    seconds: float = 0.0
    tokens: int = 0
    steps: int = 0
    versions: dict[str, str] = {}
    machine: str = ""
    metrics: dict[str, float] = {}
    adapter: AdapterInfo | None = None
    reason: str = ""
    config: dict[str, Any] = {}
