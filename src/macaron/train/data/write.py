"""Writing a data set: the old one, if any, is replaced at the very end, and never by half."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from macaron.errors import ConfigError
from macaron.models.files import explained
from macaron.train.data.manifest import MANIFEST, FileUse, Manifest, encode_manifest
from macaron.train.data.recipe import SPLITS, Split
from macaron.train.data.rows import AnyRow


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Hold a folder for one build; it is made if it is not there.

    Raises:
        ConfigError: it cannot be written, another build holds it, or it has files of these names that no build made.
    """
    with explained(folder / MANIFEST):
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{folder} is not a folder; choose another with --out")
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = f"another process builds a data set in {folder}"
            raise ConfigError(f"{reason}; wait for it or choose another folder with --out", code="in_use") from None
        _refuse_foreign(folder)
        yield
    finally:
        os.close(handle)


def write_data_set(
    folder: Path, rows: Mapping[Split, Iterable[AnyRow]], describe: Callable[[Mapping[Split, FileUse]], Manifest]
) -> Manifest:
    """Write the files of rows and then the manifest. A kill at any point leaves the old data set, the new one, or one
    whose files are not those of its manifest, which is never opened.

    Raises:
        ConfigError: the disk is full or the folder cannot be written; what was there is still there.
    """
    targets = [*(folder / f"{split}.jsonl" for split in SPLITS), folder / MANIFEST]
    try:
        with explained(folder / MANIFEST):
            # Its presence tells a later build that what a kill leaves here is a build's.
            _part(folder / MANIFEST).touch()
            files = {split: _write_rows(_part(folder / f"{split}.jsonl"), rows.get(split, ())) for split in SPLITS}
            manifest = describe(files)
            _write(_part(folder / MANIFEST), [encode_manifest(manifest)])
            for target in targets:
                _part(target).replace(target)
    finally:
        for target in targets:
            with suppress(OSError):
                _part(target).unlink()
    return manifest


def _refuse_foreign(folder: Path) -> None:
    if _part(folder / MANIFEST).exists():
        return
    present = [name for name in (*(f"{split}.jsonl" for split in SPLITS), MANIFEST) if (folder / name).exists()]
    if present and not _is_ours(folder / MANIFEST):
        reason = f"{folder} already has a file {present[0]} that is of no data set built here"
        raise ConfigError(f"{reason}; choose another folder with --out", code="not_a_data_set")


def _is_ours(path: Path) -> bool:
    try:
        msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, ValueError, RecursionError):
        return False
    return True


def _write_rows(path: Path, rows: Iterable[AnyRow]) -> FileUse:
    digest, count, size = hashlib.sha256(), 0, 0

    def lines() -> Iterator[bytes]:
        nonlocal count, size
        for row in rows:
            line = msgspec.json.encode(row) + b"\n"
            digest.update(line)
            count += 1
            size += len(line)
            yield line

    _write(path, lines())
    return FileUse(count, size, digest.hexdigest())


def _write(path: Path, lines: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")
