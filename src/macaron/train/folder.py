"""The folder of a run, laid out as `macaron.train.record` says: one process works in it, and its files are whole."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from macaron.errors import ConfigError
from macaron.models.files import explained
from macaron.registry.revision import ADAPTER_FILES
from macaron.train.record import RunRecord

_CHECKPOINT = re.compile(r"checkpoint-(\d+)")


class RunFolder:
    """A run folder at `path`, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = path / "metrics.jsonl"
        self.checkpoints = path / "checkpoints"
        self.adapter = path / "adapter"

    @property
    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / "run.json").is_file()

    def read_record(self) -> RunRecord:
        """`run.json`.

        Raises:
            ConfigError: there is none, or it cannot be read.
        """
        path = self.path / "run.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=RunRecord)
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(f"{path} is no record of a run: {error}", param="run") from None

    def write_record(self, record: RunRecord) -> None:
        """Replace `run.json`."""
        self.write_json("run.json", record)

    def read_json(self, name: str) -> Any:
        """A file of the run.

        Raises:
            ConfigError: there is none, or it is not JSON.
        """
        path = self.path / name
        try:
            return msgspec.json.decode(path.read_bytes())
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(f"{path} cannot be read: {error}", param="run") from None

    def write_json(self, name: str, value: Any) -> None:
        """Replace a file of the run atomically.

        Raises:
            ConfigError: the disk is full or may not be written.
        """
        write_atomically(self.path / name, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")

    def checkpoint_steps(self) -> list[int]:
        """The steps of which there is a checkpoint, ascending."""
        found = self.checkpoints.iterdir() if self.checkpoints.is_dir() else ()
        return sorted(int(match[1]) for path in found if (match := _CHECKPOINT.fullmatch(path.name)))

    def checkpoint(self, step: int) -> Path:
        """The folder of a checkpoint."""
        return self.checkpoints / f"checkpoint-{step}"

    def cut_metrics(self, step: int) -> dict[str, Any]:
        """Drop what was logged after `step`, and return the last line that stays; empty if there is none."""
        lines = self.metrics.read_bytes().splitlines() if self.metrics.is_file() else []
        kept: list[dict[str, Any]] = []
        for line in lines:
            try:
                entry = msgspec.json.decode(line)
            except msgspec.MsgspecError:
                # The process died while it wrote this line.
                break
            if entry["step"] > step:
                break
            kept.append(entry)
        write_atomically(self.metrics, b"".join(msgspec.json.encode(entry) + b"\n" for entry in kept))
        return kept[-1] if kept else {}

    def log(self, entry: dict[str, Any]) -> None:
        """Append one line of metrics."""
        with explained(self.metrics), self.metrics.open("ab") as file:
            file.write(msgspec.json.encode(entry) + b"\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder; the system lets go of it when this process ends, however it ends.

        Raises:
            ConfigError: another process works in it.
        """
        with explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            file = (self.path / "lock").open("a+b")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.pread(file.fileno(), 32, 0).decode("ascii", "replace").strip() or "unknown"
                raise ConfigError(
                    f"process {owner} works in {self.path}; wait for it, or give this run another --out",
                    param="out",
                    code="run_locked",
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            file.flush()
            yield


def adapter_in(path: Path) -> Path:
    """The adapter of a run's folder, or the folder itself where a published adapter lies in it beside its record."""
    return path if (path / ADAPTER_FILES[1]).is_file() else RunFolder(path).adapter


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file by a whole one.

    Raises:
        ConfigError: the disk is full or may not be written.
    """
    part = path.with_name(f".{path.name}.part")
    with explained(path):
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)


def new_run_id(label: str) -> str:
    """`<label>-<utc time>-<4 hex>`."""
    return f"{label}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"


def now() -> str:
    """The time, RFC 3339 in UTC."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
