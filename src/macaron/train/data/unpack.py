"""Unpacking a wheel that nobody vouches for: nothing outside the folder, nothing but plain files, bounded."""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from macaron.errors import ConfigError
from macaron.models.files import CHUNK
from macaron.models.progress import Progress

MAX_FILES = 50_000
MAX_BYTES = 2**31
MAX_PATH = 1024
MAX_PART = 255


def unpack_wheel(wheel: Path, folder: Path, progress: Progress) -> None:
    """Write the files of a wheel below `folder`, which exists and is empty.

    Raises:
        ConfigError: it is no wheel, or a hostile one: a path that leads outside or is there twice, a link, an encrypted
            file, more than `MAX_FILES` files or `MAX_BYTES` bytes. What was written by then is still there.
        OSError: the folder cannot be written.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = list(_checked(archive, wheel.name))
            total = sum(info.file_size for info, _ in members)
            done = 0
            for info, path in members:
                done += _write(archive, info, folder / path)
                progress("unpack", done, total)
    except (FileExistsError, NotADirectoryError) as error:
        raise _hostile(wheel.name, f"{error.filename!r} is a file and a folder in it") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeError) as error:
        raise ConfigError(f"{wheel.name} cannot be unpacked: {error}", code="bad_wheel") from None


def _checked(archive: zipfile.ZipFile, name: str) -> Iterator[tuple[zipfile.ZipInfo, PurePosixPath]]:
    """The files and where they go, once all of them are found to be harmless."""
    infos = archive.infolist()
    if len(infos) > MAX_FILES:
        raise _hostile(name, f"it has {len(infos)} files, more than {MAX_FILES}")
    if (total := sum(info.file_size for info in infos)) > MAX_BYTES:
        raise _hostile(name, f"it unpacks to {total} bytes, more than {MAX_BYTES}")
    seen: set[PurePosixPath] = set()
    for info in infos:
        path = _inside(info, name)
        if info.is_dir():
            continue
        if path in seen:
            raise _hostile(name, f"{info.filename[:80]!r} is in it twice")
        seen.add(path)
        yield info, path


def _inside(info: zipfile.ZipInfo, name: str) -> PurePosixPath:
    # orig_filename has what follows a NUL, which zipfile cuts off.
    text = info.orig_filename
    path = PurePosixPath(text)
    shown = repr(text[:80])
    if path.is_absolute() or ".." in path.parts or "\\" in text or "\0" in text or not path.parts:
        raise _hostile(name, f"{shown} leads out of the folder")
    encoded = [len(os.fsencode(part)) for part in path.parts]
    if max(encoded) > MAX_PART or sum(encoded) > MAX_PATH:
        raise _hostile(name, f"the name {shown} is too long")
    mode = info.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _hostile(name, f"{shown} is neither a file nor a folder")
    return path


def _write(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(info) as source, target.open("xb") as file:
        # zipfile stops at the size that the archive announces, which is in the sum that was checked.
        while chunk := source.read(CHUNK):
            file.write(chunk)
        return file.tell()


def _hostile(name: str, reason: str) -> ConfigError:
    return ConfigError(f"{name} is not unpacked: {reason}", code="hostile_wheel")
