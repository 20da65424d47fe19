"""Where PostgreSQL's programs are: installed, or unpacked from Debian's package into this user's cache, as any user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import platformdirs

PROGRAMS = ("postgres", "initdb")
NEVER = re.compile(r"libllvm|libc6|libgcc|libstdc|libcrypt1|libdebconf|libelogind")
"""Compiled queries are switched off, and what every machine has is not fetched."""

PACKAGE = re.compile(r"postgresql-\d+")


class NotHereError(Exception):
    """There is no PostgreSQL, and none can be fetched; the reason."""


class Programs:
    """A folder with `postgres` and `initdb`, and the libraries they need beside the system's.

    Attributes:
        root: of the unpacked package, None where it is installed.
    """

    def __init__(self, folder: Path, root: Path | None = None) -> None:
        self.folder = folder
        self.root = root

    @property
    def environment(self) -> dict[str, str]:
        """What they are started with."""
        if self.root is None:
            return {"PATH": os.environ["PATH"]}
        libraries = sorted({str(path.parent) for path in self.root.glob("usr/lib/*/lib*.so*")})
        libraries += sorted({str(path.parent) for path in self.root.glob("lib/*/lib*.so*")})
        return {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": ":".join(libraries)}

    def moved(self, folder: Path) -> Programs:
        """A copy that another user can reach; what is installed stays."""
        if self.root is None:
            return self
        shutil.copytree(self.root, folder, symlinks=True)
        return Programs(folder / self.folder.relative_to(self.root), folder)


def find_programs() -> Programs:
    """The programs, fetched where they are not installed.

    Raises:
        NotHereError: they cannot be had.
    """
    return installed() or fetched()


def installed() -> Programs | None:
    """The newest that is installed."""
    folders = [Path(folder) for folder in os.environ["PATH"].split(":") if folder]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    for folder in folders:
        if all((folder / name).exists() for name in PROGRAMS):
            # The rest of the installation is found from where the programs really are.
            return Programs((folder / "postgres").resolve().parent)
    return None


def fetched() -> Programs:
    """Those of Debian's package, unpacked once.

    Raises:
        NotHereError: this is not Debian, or its packages cannot be reached.
    """
    root = platformdirs.user_cache_path("macaron") / "postgres"
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        part = root.with_suffix(f".{os.getpid()}")
        try:
            _unpack(part)
            (part / "complete").touch()
            part.rename(root)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    programs = _programs(root)
    if missing := _lacking(programs):
        raise NotHereError(f"the unpacked PostgreSQL lacks {', '.join(missing)}")
    return programs


def _unpack(root: Path) -> None:
    archives = root / "archives"
    archives.mkdir(parents=True)
    server = _server()
    _take(root, archives, [server])
    if _lacking(_programs(root)):
        _take(root, archives, _libraries(server))
    shutil.rmtree(archives)


def _take(root: Path, archives: Path, packages: list[str]) -> None:
    if packages:
        _run("apt-get", "download", *packages, folder=archives)
    for archive in archives.glob("*.deb"):
        _run("dpkg", "-x", str(archive), str(root), folder=archives)
        archive.unlink()


def _programs(root: Path) -> Programs:
    (folder,) = root.glob("usr/lib/postgresql/*/bin")
    return Programs(folder, root)


def _server() -> str:
    found = PACKAGE.search(_run("apt-cache", "depends", "postgresql"))
    if found is None and os.geteuid() == 0:
        _run("apt-get", "update")
        found = PACKAGE.search(_run("apt-cache", "depends", "postgresql"))
    if found is None:
        raise NotHereError("apt knows no package postgresql; run `apt-get update`")
    return found[0]


def _libraries(server: str) -> list[str]:
    """Packages of libraries that the server needs, directly or not, and that are not installed."""
    arguments = ("--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces")
    named = re.findall(r"^(lib\S+)$", _run("apt-cache", "depends", *arguments, "--no-enhances", server), re.MULTILINE)
    wanted = (name for name in named if ":" not in name and not name.endswith("-perl") and not NEVER.match(name))
    return sorted(set(_absent(wanted)))


def _absent(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        query = subprocess.run(
            ["dpkg-query", "-W", "-f", "${db:Status-Status}", name], capture_output=True, check=False
        )
        if b"installed" not in query.stdout or b"not-installed" in query.stdout:
            yield name


def _lacking(programs: Programs) -> list[str]:
    """Libraries that are nowhere."""
    shown = [_run("ldd", str(programs.folder / name), environment=programs.environment) for name in PROGRAMS]
    return sorted(set(re.findall(r"(\S+) => not found", "".join(shown))))


def _run(*command: str, folder: Path | None = None, environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=True
        )
    except FileNotFoundError:
        raise NotHereError(f"neither PostgreSQL nor {command[0]} to fetch it with is here") from None
    except subprocess.CalledProcessError as error:
        raise NotHereError(f"{command[0]}: {(error.stderr or '').strip()[-300:]}") from None
    except subprocess.TimeoutExpired:
        raise NotHereError(f"{command[0]} took too long") from None
    return done.stdout
