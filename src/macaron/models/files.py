"""Files on this machine: hashing with progress, remembering a hash, locking, and errors in words."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import msgspec
from msgspec import Struct

from macaron.errors import ConfigError
from macaron.models.progress import Progress

CHUNK = 1_048_576


class Seal(Struct, frozen=True):
    """What was found when a file was hashed; it holds as long as size and time of change are the same."""

    size: int
    mtime_ns: int
    sha256: str


def sha256_of(path: Path, progress: Progress) -> str:
    """The SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    total = path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            progress("check", file.tell(), total)
    return digest.hexdigest()


def sha256_of_listing(hashes: Iterable[tuple[str, str]]) -> str:
    """One SHA-256, in hex, for several files: over lines `<hash>  <name>` as `sha256sum` writes them.

    Args:
        hashes: name and SHA-256 of each file, in an order that is always the same.
    """
    return hashlib.sha256("".join(f"{sha256}  {name}\n" for name, sha256 in hashes).encode()).hexdigest()


def seal(path: Path, seal_path: Path, sha256: str) -> None:
    """Remember the hash of a file, so that a later start need not read it; several processes may do so at once."""
    status = path.stat()
    with NamedTemporaryFile(dir=seal_path.parent, prefix=f"{seal_path.name}.", suffix=".part", delete=False) as part:
        part.write(msgspec.json.encode(Seal(status.st_size, status.st_mtime_ns, sha256)))
    os.replace(part.name, seal_path)


def sealed_hash(path: Path, seal_path: Path) -> str | None:
    """The remembered hash of a file that has not changed since; None where it must be read again."""
    try:
        held = msgspec.json.decode(seal_path.read_bytes(), type=Seal)
        status = path.stat()
    except (OSError, msgspec.MsgspecError):
        return None
    return held.sha256 if (held.size, held.mtime_ns) == (status.st_size, status.st_mtime_ns) else None


@contextmanager
def locked(path: Path, progress: Progress) -> Iterator[None]:
    """Hold an exclusive lock between processes; it is released by the system if its holder dies."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("wait", 0, None)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the system's refusals to write at `path` into errors that say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = f"the disk of {path.parent} is full; free some space and run it again, what is there is kept"
            raise ConfigError(reason, code="disk_full") from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENOENT):
            raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
        raise


def settle(part: Path, target: Path, file: IO[bytes]) -> None:
    """Make a finished part the file itself, atomically, once its bytes are on the disk."""
    file.flush()
    os.fsync(file.fileno())
    part.replace(target)
