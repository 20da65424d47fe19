"""The staging folder: where an adapter lies while it is brought in and checked.

Each stage is a folder beside a file that its process keeps locked. The system releases the lock when the process dies,
so a stage whose file can be locked is nobody's.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol

import msgspec
from msgspec import Struct

from macaron.models.peft import CONFIG_FILE, WEIGHTS_FILE
from macaron.registry.revision import folder_revision
from macaron.registry.vault.errors import Oversize
from macaron.registry.vault.layout import (
    FILE_MODE,
    FOLDER_MODE,
    VaultLimits,
    bytes_in,
    largest,
    require_files,
    sync_folder,
)
from macaron.registry.vault.steps import Watch

_LOCK = ".lock"


class Claim(Struct, frozen=True):
    """What a live stage wants of the vault: bytes that it holds or will hold, then the revision it admits for whom."""

    bytes: int = 0
    revision: str = ""
    tenant: str = ""


class Part(Protocol):
    """A file on its way in."""

    def write(self, raw: memoryview) -> None:
        """Append."""
        ...

    def end(self) -> None:
        """Return when its bytes are on the disk."""
        ...


class Stage:
    """One adapter on its way in. Making it touches nothing; `open` does, under the vault's lock."""

    def __init__(self, area: Path, limits: VaultLimits, reserve: Callable[[Stage, int], None], watch: Watch) -> None:
        self.token = secrets.token_hex(16)
        self.path = area / self.token
        self.bytes = 0
        self._lock_path = area / f"{self.token}{_LOCK}"
        self._lock: int | None = None
        self._limits = limits
        self._reserve = reserve
        self._watch = watch
        self._hashes: dict[str, str] = {}
        self._part: _StagedFile | None = None

    def open(self) -> None:
        """Make the folder and lock its file; the caller holds the vault's lock."""
        self._lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._watch("stage.locked")
        self.claim(Claim())
        self.path.mkdir(mode=FOLDER_MODE)
        self._watch("stage.opened")

    def claim(self, claim: Claim) -> None:
        """Say what this stage wants; the caller holds the vault's lock."""
        if self._lock is None:
            raise RuntimeError("a stage was used after it was closed")
        raw = msgspec.json.encode(claim)
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, raw, 0)

    def begin(self, name: str, size: int) -> Part:
        """A file of exactly `size` bytes, which are reserved before the first is written.

        Raises:
            Oversize: it, or the adapter with it, would be too large.
            VaultFull: there is no room.
        """
        limit = largest(name, self._limits)
        if size > limit:
            raise Oversize(name, size, f"it has more than the {limit} bytes it may have", _smaller(name))
        self._reserve(self, size)
        self.bytes += size
        self._part = _StagedFile(self.path / name, self._watch, lambda sha256: self._hashes.update({name: sha256}))
        self._watch("file.opened")
        return self._part

    def seal(self) -> Staged:
        """Return when the whole adapter is on the disk.

        Raises:
            Unsuitable: one of its two files was not brought.
        """
        require_files(frozenset(self._hashes))
        sync_folder(self.path)
        self._watch("stage.sealed")
        return Staged(self, folder_revision(self._hashes[CONFIG_FILE], self._hashes[WEIGHTS_FILE]))

    def close(self) -> None:
        """Remove what is left of it. May be called again."""
        if self._lock is None:
            return
        try:
            if self._part is not None:
                self._part.close()
            shutil.rmtree(self.path, ignore_errors=True)
            self._lock_path.unlink(missing_ok=True)
        finally:
            os.close(self._lock)
            self._lock = None


class Staged:
    """An adapter that lies whole in the staging folder, for its owner to check and admit.

    Keep it open until the registry has committed what was admitted: until then the vault takes this revision from its
    tenant by no `remove`. Closing it removes what was not admitted; where the process dies, `Vault.tidy` does.

    Attributes:
        path: the folder for `check_adapter`.
        revision: of exactly the bytes that were copied.
        bytes: of all its files.
    """

    def __init__(self, stage: Stage, revision: str) -> None:
        self.stage = stage
        self.path = stage.path
        self.revision = revision
        self.bytes = stage.bytes

    def close(self) -> None:
        """Remove the copy, unless it was admitted. May be called again; blocks."""
        self.stage.close()

    def __enter__(self) -> Staged:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def live_claims(area: Path, without: str = "") -> Iterator[Claim]:
    """What the live stages want, except for one token; the caller holds the vault's lock."""
    for path in area.glob(f"*{_LOCK}"):
        if path.stem != without and not _abandoned(path):
            # Closing a stage takes no lock of the vault, so its file may be gone by now.
            with suppress(FileNotFoundError):
                yield msgspec.json.decode(path.read_bytes(), type=Claim)


def sweep(area: Path) -> tuple[int, int]:
    """Remove what is no live stage's; the caller holds the vault's lock.

    Returns:
        How many stages, and their bytes.
    """
    kept = {path.stem for path in area.glob(f"*{_LOCK}") if not _abandoned(path)}
    stale = [path for path in area.iterdir() if path.stem not in kept]
    folders = [path for path in stale if path.is_dir() and not path.is_symlink()]
    size = sum(map(bytes_in, folders))
    for path in folders:
        shutil.rmtree(path)
    for path in stale:
        if path not in folders:
            path.unlink(missing_ok=True)
    return len(folders), size


def _abandoned(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


class _StagedFile:
    """A file being written and hashed."""

    def __init__(self, path: Path, watch: Watch, done: Callable[[str], None]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor: int | None = os.open(path, flags, FILE_MODE)
        self._watch = watch
        self._done = done
        self._digest = hashlib.sha256()

    def write(self, raw: memoryview) -> None:
        if self._descriptor is None:
            raise RuntimeError("a staged file was written after it was closed")
        self._digest.update(raw)
        while raw:
            raw = raw[os.write(self._descriptor, raw) :]
        self._watch("file.written")

    def end(self) -> None:
        if self._descriptor is None:
            raise RuntimeError("a staged file was ended after it was closed")
        os.fsync(self._descriptor)
        self._watch("file.synced")
        self.close()
        self._done(self._digest.hexdigest())

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _smaller(name: str) -> str:
    return "train with a lower rank, or save as F16" if name == WEIGHTS_FILE else "bring the adapter's own file"
