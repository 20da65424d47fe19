"""What lies where in the vault, how large it may be, and what is known of it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from macaron.errors import ConfigError
from macaron.models.peft import CONFIG_FILE, MAX_CONFIG_BYTES, WEIGHTS_FILE
from macaron.registry.check.folder import CARD_FILE, LICENCE_FILES, RUN_FILE
from macaron.registry.check.origin import MAX_CARD_BYTES, MAX_RUN_BYTES
from macaron.registry.check.report import MAX_BYTES
from macaron.registry.revision import ADAPTER_FILES
from macaron.registry.vault.errors import NotStored, Unsuitable

STAGING, OWNERS, LOCK = "staging", "owners", "lock"
FOLDER_MODE, FILE_MODE = 0o700, 0o600
MIN_FREE = 134_217_728
"""Bytes of the disk that bringing an adapter leaves free: the store often lies on the same one."""

PAPERS: Mapping[str, int] = {
    RUN_FILE: MAX_RUN_BYTES,
    CARD_FILE: MAX_CARD_BYTES,
    **dict.fromkeys(LICENCE_FILES, 1_048_576),
}
"""What may come with an adapter and is no part of its revision, with the bytes each may have. A licence often demands
that it goes where the adapter goes."""

KNOWN = (*ADAPTER_FILES, *PAPERS)

_HEX = re.compile("[0-9a-f]{64}")
_PREFIX = "sha256:"


class VaultLimits(Struct, frozen=True):
    """How much the vault holds, in all and for one tenant; an adapter of several tenants counts in full for each.

    Attributes:
        max_adapter_bytes: of one adapter, all its files together.
    """

    max_adapters: int = 256
    max_bytes: int = 137_438_953_472
    max_adapter_bytes: int = MAX_BYTES
    tenant_max_adapters: int = 64
    tenant_max_bytes: int = 68_719_476_736


class Owner(Struct, frozen=True):
    """A tenant that brought an adapter, and when first (UTC, ISO 8601)."""

    tenant: str
    since: str


class Stored(Struct, frozen=True):
    """An adapter in the vault.

    Attributes:
        path: its folder, in PEFT's format. `adapter_config.json` and the weights are what the revision names; the other
            files are those of whoever brought the revision first, so what a tenant's own papers say is in the report
            of its own check.
        bytes: of all its files.
    """

    revision: str
    path: Path
    bytes: int
    owners: tuple[Owner, ...]


class Usage(Struct, frozen=True):
    """How much lies in the vault."""

    adapters: int
    bytes: int


class Swept(Struct, frozen=True):
    """What `tidy` removed: unfinished copies of dead processes with their bytes, and records of adapters that are not
    there."""

    stages: int
    bytes: int
    records: int


def private_folder(folder: Path) -> Path:
    """Make the vault's folder where it is missing, and give its resolved path.

    Raises:
        ConfigError: it is another user's, open to others, or cannot be made.
    """
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            reason = f"the vault's folder {folder} is another user's or open to others"
            raise ConfigError(f"{reason}; name a folder of its own, or chmod 700 it", param="registry.vault")
        for inner in (STAGING, OWNERS):
            (folder / inner).mkdir(mode=FOLDER_MODE, exist_ok=True)
        os.close(os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE))
        return folder.resolve()
    except OSError as error:
        reason = f"the vault's folder {folder} cannot be used: {error.strerror}"
        raise ConfigError(f"{reason}; name one that can be written", param="registry.vault") from None


def hex_of(revision: str) -> str:
    """The name of a revision's folder.

    Raises:
        NotStored: it is no revision of an adapter's bytes.
    """
    name = revision.removeprefix(_PREFIX)
    if not revision.startswith(_PREFIX) or not _HEX.fullmatch(name):
        reason = "it is not `sha256:` and 64 hexadecimal digits"
        raise NotStored("revision", revision, reason, "name a revision as `list` shows it")
    return name


def revision_of(name: str) -> str | None:
    """The revision whose folder has this name, None for any other name."""
    return f"{_PREFIX}{name}" if _HEX.fullmatch(name) else None


def bytes_in(folder: Path) -> int:
    """Of all files in a folder."""
    with os.scandir(folder) as entries:
        return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)


def largest(name: str, limits: VaultLimits) -> int:
    """How many bytes a known file may have."""
    if name == WEIGHTS_FILE:
        return limits.max_adapter_bytes
    return MAX_CONFIG_BYTES if name == CONFIG_FILE else PAPERS[name]


def require_files(names: frozenset[str]) -> None:
    """See that an adapter is complete.

    Raises:
        Unsuitable: one of its two files is not among them.
    """
    for name in ADAPTER_FILES:
        if name not in names:
            remedy = f"bring {' and '.join(ADAPTER_FILES)} together, as PEFT writes them"
            raise Unsuitable(name, "", "it is not there", remedy, code="missing_file")


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
