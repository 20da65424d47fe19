"""An adapter's folder: what lies in it, and opening its files without ever following a link."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from macaron.models.peft import CONFIG_FILE, WEIGHTS_FILE
from macaron.models.safetensors import looks_pickled
from macaron.registry.check.report import Fault, Finding, Refused, error, grouped

RUN_FILE, CARD_FILE = "run.json", "README.md"
LICENCE_FILES = ("LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE", "LICENCE.md", "LICENCE.txt", "COPYING")
KNOWN_FILES = frozenset({CONFIG_FILE, WEIGHTS_FILE, RUN_FILE, CARD_FILE, *LICENCE_FILES})
MAX_ENTRIES = 256
PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_PICKLE = Fault(
    "pickle",
    "A pickle can run code when it is read, and is never opened here.",
    f"Delete it; save the weights as {WEIGHTS_FILE}, with safe_serialization=True in PEFT.",
)
_LINK = Fault(
    "link", "It is a link, and what it leads to may change or lie elsewhere.", "Put a copy in its place: cp -rL."
)
_SPECIAL = Fault("special_file", "It is neither a file nor a folder.", "Remove it from the adapter's folder.")
_NAME = Fault(
    "unsafe_name", "Its name has characters that lead out of a folder or steer a terminal.", "Rename or remove it."
)
_COLLISION = Fault(
    "name_collision", "Its name differs from another one only in case or Unicode form.", "Keep one of the two."
)
_SUBFOLDER = Fault("extra_file", "It is a folder; nothing in it is read.", "Move it elsewhere.", "note")
_EXTRA = Fault("extra_file", "It is not read and is no part of the revision.", "", "note")


class Folder:
    """An open folder. Its files are opened by plain names relative to it, so that replacing the folder itself while it
    is checked changes nothing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @contextmanager
    def file(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        """A regular file and its size.

        Raises:
            Refused: it is not there, is a link or no file, or cannot be read.
        """
        try:
            opened = open(name, "rb", buffering=0, opener=self._open)  # noqa: SIM115
        except OSError as problem:
            raise Refused(_unreadable(name, problem)) from None
        with opened as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Refused(error("special_file", name, "", "It is not a file.", "Put the adapter's file there."))
            yield file, status.st_size

    def _open(self, name: str, flags: int) -> int:
        return os.open(name, _FLAGS | os.O_NONBLOCK, dir_fd=self._descriptor)

    def read(self, name: str, limit: int) -> bytes:
        """A whole small file.

        Raises:
            Refused: as from `file`, or it has more than `limit` bytes.
        """
        with self.file(name) as (file, size):
            raw = file.read(limit + 1) if size <= limit else b""
            if size > limit or len(raw) > limit:
                reason = f"It has more than the {limit} bytes that such a file may have."
                raise Refused(error("too_large", name, size, reason, "Put the adapter's own file there."))
            return raw

    def names(self) -> tuple[frozenset[str], list[Finding]]:
        """The names of all entries, and what is wrong with them.

        Raises:
            Refused: there are more than `MAX_ENTRIES`.
        """
        entries = self._entries()
        faults = [(entry.name, fault) for entry in entries for fault in self._faults(entry)]
        folded = Counter(_folded(entry.name) for entry in entries)
        faults += [(entry.name, _COLLISION) for entry in entries if folded[_folded(entry.name)] > 1]
        return frozenset(entry.name for entry in entries), grouped("folder", faults)

    def _entries(self) -> list[os.DirEntry[str]]:
        found: list[os.DirEntry[str]] = []
        with os.scandir(self._descriptor) as entries:
            for entry in entries:
                found.append(entry)
                if len(found) > MAX_ENTRIES:
                    reason = f"It has more than {MAX_ENTRIES} entries, so it is no adapter's folder."
                    remedy = f"Name a folder with {CONFIG_FILE} and {WEIGHTS_FILE}."
                    raise Refused(error("too_many_files", "folder", "", reason, remedy))
        return sorted(found, key=lambda entry: entry.name)

    def _faults(self, entry: os.DirEntry[str]) -> Iterator[Fault]:
        name = entry.name
        if not name.isprintable() or "\\" in name or ":" in name:
            yield _NAME
        if entry.is_symlink():
            yield _LINK
        elif entry.is_dir(follow_symlinks=False):
            yield _SUBFOLDER
        elif not entry.is_file(follow_symlinks=False):
            yield _SPECIAL
        elif name.lower().endswith(PICKLE_SUFFIXES) or self._pickled(name):
            yield _PICKLE
        elif name not in KNOWN_FILES:
            yield _EXTRA

    def _pickled(self, name: str) -> bool:
        try:
            with self.file(name) as (file, _):
                return looks_pickled(file.read(9))
        except (Refused, OSError):
            # The file is no adapter's, or whoever needs it says that it cannot be read.
            return False


@contextmanager
def open_folder(path: Path) -> Iterator[Folder]:
    """Hold an adapter's folder open.

    Raises:
        Refused: it is not there, is a link or no folder, its path has `..` in it, or it cannot be read.
    """
    if ".." in path.parts:
        reason = "A path with `..` in it can lead out of the folder it seems to lie in."
        raise Refused(error("escape", "folder", path, reason, "Name the folder by its full path."))
    if path.is_symlink():
        raise Refused(error("link", "folder", path, "It is a link.", "Name the folder that it leads to."))
    try:
        descriptor = os.open(path, _FLAGS | os.O_DIRECTORY)
    except (OSError, ValueError) as problem:
        raise Refused(_unreadable(str(path), problem)) from None
    try:
        yield Folder(descriptor)
    finally:
        os.close(descriptor)


def missing(names: frozenset[str]) -> Iterator[Finding]:
    """The files an adapter needs and does not have."""
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        if name not in names:
            remedy = "Name a folder in PEFT's format, such as RUN/adapter of a finished run."
            yield error("missing_file", name, "", "It is not there.", remedy)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _unreadable(name: str, problem: OSError | ValueError) -> Finding:
    reason = (problem.strerror if isinstance(problem, OSError) else None) or "it is no usable path"
    return error("unreadable", name, "", f"It cannot be read: {reason}.", "Name an adapter's folder that you may read.")
