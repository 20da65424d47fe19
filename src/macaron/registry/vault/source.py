"""A folder under one of the operator's roots, opened part by part so that no link on the way is ever followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from macaron.models.files import CHUNK
from macaron.registry.check.folder import Folder
from macaron.registry.check.report import Refused
from macaron.registry.vault.errors import Unsuitable
from macaron.registry.vault.layout import KNOWN, require_files
from macaron.registry.vault.stage import Stage

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_AGAIN = "bring it again when nothing writes to it"


class _Place(NamedTuple):
    """A folder as the names that lead to it from a resolved root."""

    root: Path
    names: tuple[str, ...]


@contextmanager
def open_source(source: Path, roots: Sequence[Path]) -> Iterator[int]:
    """A descriptor of an adapter's folder.

    Args:
        source: absolute; by the root's own name or its resolved one.
        roots: folders of the operator's; links that lead to them are followed, those below are not.

    Raises:
        Unsuitable: it lies under no root, is not there, or a link or no folder is on the way.
    """
    place = _place(source, roots)
    descriptor = _enter(None, str(place.root))
    try:
        for name in place.names:
            inner = _enter(descriptor, name)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def sizes_in(descriptor: int) -> Mapping[str, int]:
    """The known files of a folder and their sizes, before any of them is opened: opening a device can already act.

    Raises:
        Unsuitable: one is a link or no file, or the adapter is not complete.
    """
    sizes = {}
    for name in KNOWN:
        try:
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError as problem:
            raise _unreadable(name, problem) from None
        if not stat.S_ISREG(status.st_mode):
            raise _no_file(name, status.st_mode)
        sizes[name] = status.st_size
    require_files(frozenset(sizes))
    return sizes


def copy_file(descriptor: int, name: str, size: int, stage: Stage) -> None:
    """Copy a file of the folder that has exactly `size` bytes when its copy ends.

    Raises:
        Unsuitable: it is another file by now, or changes.
        MacaronError: the stage refuses it.
    """
    try:
        with Folder(descriptor).file(name) as (file, _):
            part = stage.begin(name, size)
            left = size
            while left and (raw := _read(file, name, min(left, CHUNK))):
                part.write(memoryview(raw))
                left -= len(raw)
            if left or _read(file, name, 1):
                raise _changed(name)
            part.end()
    except Refused as problem:
        reason = f"it is another file than a moment ago, or cannot be opened: {problem.finding.message.rstrip('.')}"
        raise Unsuitable(name, "", reason, _AGAIN, code="changed") from None


def _read(file: IO[bytes], name: str, count: int) -> bytes:
    try:
        return file.read(count)
    except OSError as problem:
        raise _unreadable(name, problem) from None


def _place(source: Path, roots: Sequence[Path]) -> _Place:
    if not source.is_absolute() or ".." in source.parts or "\0" in str(source):
        reason = "it is no full path without `..`"
        raise Unsuitable("source", source, reason, "name the folder by its full path", code="escape")
    resolved = [(root.absolute(), root.resolve()) for root in roots]
    places = [
        _Place(real, source.relative_to(start).parts)
        for given, real in resolved
        for start in (given, real)
        if source.is_relative_to(start) and source != start
    ]
    if not places:
        remedy = "put the adapter's folder below one of them, or upload it"
        raise Unsuitable("source", source, "it lies below none of [registry] roots", remedy, code="outside_roots")
    return min(places, key=lambda place: len(place.names))


def _enter(descriptor: int | None, name: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=descriptor)
    except OSError as problem:
        if _is_link(descriptor, name):
            reason, remedy = "it is a link, and what it leads to may change", "put a copy in its place: cp -rL"
            raise Unsuitable("source", name, reason, remedy, code="link") from None
        reason = f"it cannot be opened as a folder: {problem.strerror}"
        raise Unsuitable("source", name, reason, "name an adapter's folder", code="unreadable") from None


def _is_link(descriptor: int | None, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _no_file(name: str, mode: int) -> Unsuitable:
    if stat.S_ISLNK(mode):
        return Unsuitable(name, "", "it is a link", "put a copy in its place: cp -L", code="link")
    return Unsuitable(name, "", "it is not a file", "put the adapter's file there", code="special_file")


def _unreadable(name: str, problem: OSError) -> Unsuitable:
    reason = f"it cannot be read: {problem.strerror}"
    return Unsuitable(name, "", reason, "see that the folder and its files may be read", code="unreadable")


def _changed(name: str) -> Unsuitable:
    return Unsuitable(name, "", "it changed while it was copied", _AGAIN, code="changed")
