"""A run copied to MLflow, for those who keep their experiments there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from macaron.errors import ConfigError, Unavailable
from macaron.train.runs.compare import settings
from macaron.train.runs.read import Run

MAX_VALUE = 5000
Item = TypeVar("Item")

_STATES = {"finished": "FINISHED", "running": "RUNNING", "failed": "FAILED"}


def export_run(run: Run, passed: Mapping[str, float], uri: str, experiment: str) -> str:
    """Copy settings, curves, last values and shares of passed cases. Returns MLflow's id of the new run.

    Args:
        passed: by evaluation and subject, such as `tools/L1`.

    Raises:
        ConfigError: MLflow is not installed, or does not accept the run.
        Unavailable: the server cannot be reached.
    """
    try:
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.exceptions import MlflowException
    except ImportError:
        raise ConfigError("MLflow is not installed; pip install 'macaron[mlflow]', or pip install mlflow") from None
    try:
        client = MlflowClient(uri)
        known = client.get_experiment_by_name(experiment)
        parent = known.experiment_id if known is not None else client.create_experiment(experiment)
        made: str = client.create_run(parent, run_name=run.name).info.run_id
        params = [Param(_key(name), _value(value)) for name, value in settings(run).items()]
        tags = [RunTag(f"macaron.{name}", _value(value)) for name, value in _tags(run).items()]
        metrics = [Metric(_key(name), value, 0, step) for name, value, step in _metrics(run, passed)]
        client.log_batch(made, tags=tags)
        # A server takes no more than these in one request.
        for some in _batches(params, 100):
            client.log_batch(made, params=some)
        for some in _batches(metrics, 500):
            client.log_batch(made, metrics=some)
        client.set_terminated(made, _STATES.get(run.state, "KILLED"))
    except MlflowException as error:
        raise ConfigError(
            f"MLflow at {_without_password(uri)} did not take the run: {str(error)[:300]}", param="mlflow"
        ) from None
    except OSError as error:
        raise Unavailable(f"MLflow at {_without_password(uri)} cannot be reached: {str(error)[:300]}") from None
    return made


def _batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def _without_password(uri: str) -> str:
    return re.sub(r"//[^/]*@", "//***@", uri)[:200]


def _tags(run: Run) -> dict[str, Any]:
    record = run.record
    if record is None:
        return {"state": run.state}
    revision = record.adapter.revision if record.adapter is not None else ""
    return {
        "state": run.state, "id": record.id, "label": record.label, "profile": record.profile, "parent": record.parent,
        "base": record.base_fingerprint, "revision": revision, "data": [use.sha256 for use in record.data],
    }  # fmt: skip


def _metrics(run: Run, passed: Mapping[str, float]) -> Iterator[tuple[str, float, int]]:
    for name, points in run.curves.items():
        for point in points:
            yield name, point.value, int(point.step)
    steps = run.record.steps if run.record is not None else 0
    for name, value in (run.record.metrics if run.record is not None else {}).items():
        yield f"final_{name}", value, steps
    for name, value in passed.items():
        yield f"passed/{name}", value, steps


def _key(name: str) -> str:
    """A name that MLflow accepts."""
    return "".join(char if char.isalnum() or char in "_-./ " else "_" for char in name)[:250]


def _value(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:MAX_VALUE]
