"""One service a store: a lock beside the file, held by the supervisor; its workers share the store without it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from macaron.errors import ConfigError
from macaron.store.failures import config_error
from macaron.store.migrations import create_private

_PID_BYTES = 32
"""Enough for any process id."""


class ServiceLock:
    """The right to run a service on one store, until it is released or the process and its forks have ended."""

    def __init__(self, file: int) -> None:
        self._file: int | None = file

    def release(self) -> None:
        """Let another service take the store. The lock's file stays: removing it would race with the next owner."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> ServiceLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def lock_file(path: Path) -> Path:
    """The lock's file of a store."""
    return path.with_name(path.name + ".lock")


def acquire(path: Path) -> ServiceLock:
    """Take the store at `path` for this service.

    Raises:
        ConfigError: another service has it, or the folder may not be written.
    """
    try:
        create_private(lock_file(path))
        file = os.open(lock_file(path), os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise config_error(path, error) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(file, _PID_BYTES, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(file)
        raise ConfigError(
            f"store {path} is in use by another service, process {owner}: stop it, or give [store] url another file",
            param="store.url",
        ) from None
    os.ftruncate(file, 0)
    os.pwrite(file, f"{os.getpid()}\n".encode("ascii"), 0)
    return ServiceLock(file)
