"""Writing a merged model: whole or not at all, and never over something."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from macaron.errors import ConfigError
from macaron.models.files import CHUNK, explained

Advance = Callable[[int, int], None]
"""Called as the merge goes on, with the bytes written so far and in all."""


def unwatched(done: int, total: int) -> None:
    """Progress nobody watches."""


def refuse_existing(out: Path) -> None:
    """See that nothing would be overwritten.

    Raises:
        ConfigError: there is something at `out` other than an empty folder.
    """
    if os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir())):
        raise ConfigError(f"{out} is there already and would be overwritten; choose another place", param="out")


@contextmanager
def appearing(out: Path, size: int) -> Iterator[Path]:
    """A place beside `out` to write to, with room for `size` bytes; what is there at the end becomes `out` at once.

    Raises:
        ConfigError: `out` is taken, the disk is full, or the place cannot be written; nothing is left behind.
    """
    refuse_existing(out)
    with _explained(out, size):
        out.parent.mkdir(parents=True, exist_ok=True)
        _check_room(out, size)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name[:64]}.") as scratch:
            part = Path(scratch) / "part"
            yield part
            refuse_existing(out)
            part.replace(out)


class Sink:
    """A file that is written from its beginning to its end, hashed, and reported on."""

    def __init__(self, file: IO[bytes], report: Callable[[int], None]) -> None:
        """`report` is called with the bytes written so far, about once a mebibyte."""
        self._file = file
        self._report = report
        self._digest = hashlib.sha256()
        self._told = 0
        self.position = 0

    @property
    def sha256(self) -> str:
        """Of what was written, in hex."""
        return self._digest.hexdigest()

    def write(self, raw: bytes) -> None:
        """Append."""
        self._file.write(raw)
        self._digest.update(raw)
        self.position += len(raw)
        if self.position - self._told >= CHUNK:
            self._told = self.position
            self._report(self.position)

    def copy(self, source: IO[bytes], start: int, size: int) -> None:
        """Append some bytes of another file."""
        source.seek(start)
        while size > 0:
            raw = source.read(min(size, CHUNK))
            if not raw:
                raise ConfigError(f"{source.name} changed while it was read; start again when it is complete")
            self.write(raw)
            size -= len(raw)

    def sync(self) -> None:
        """Return when the bytes are on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._report(self.position)


def _check_room(out: Path, size: int) -> None:
    free = shutil.disk_usage(out.parent).free
    if free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def _explained(out: Path, size: int) -> Iterator[None]:
    try:
        with explained(out):
            yield
    except ConfigError as error:
        if error.code != "disk_full":
            raise
        reason = f"the disk of {out.parent} is full: the merged model takes {size:,} bytes; free some space"
        raise ConfigError(f"{reason}; nothing was written", code="disk_full", param="out") from None
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error.strerror}", param="out") from None
