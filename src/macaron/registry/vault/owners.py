"""Who brought which adapter: one small record beside each, replaced as a whole."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from macaron.registry.vault.errors import VaultFailure
from macaron.registry.vault.layout import FILE_MODE, sync_folder
from macaron.registry.vault.steps import Watch

_SUFFIX, _PART = ".json", ".part"


class Owners:
    """The folder of the records; whoever writes holds the vault's lock."""

    def __init__(self, folder: Path, watch: Watch) -> None:
        self._folder = folder
        self._watch = watch

    def read(self, name: str) -> Mapping[str, str]:
        """Tenants of an adapter, and since when each.

        Raises:
            VaultFailure: the record is damaged.
        """
        path = self._folder / f"{name}{_SUFFIX}"
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (msgspec.MsgspecError, UnicodeDecodeError):
            reason = "the record of who brought this adapter is damaged"
            remedy = "delete the record; the adapter then belongs to whoever brings it again"
            raise VaultFailure("owners", name, reason, remedy, code="damaged_record", detail=str(path)) from None

    def write(self, name: str, owners: Mapping[str, str]) -> None:
        """Replace an adapter's record."""
        part = self._folder / f"{name}{_PART}"
        try:
            with open(part, "wb", opener=_private) as file:
                file.write(msgspec.json.encode(owners))
                file.flush()
                os.fsync(file.fileno())
            self._watch("owners.written")
            part.replace(self._folder / f"{name}{_SUFFIX}")
        finally:
            part.unlink(missing_ok=True)
        sync_folder(self._folder)
        self._watch("owners.replaced")

    def forget(self, name: str) -> None:
        """Remove an adapter's record, if there is one."""
        (self._folder / f"{name}{_SUFFIX}").unlink(missing_ok=True)

    def sweep(self, present: Collection[str]) -> int:
        """Remove records that are unfinished or whose adapter is not there."""
        stale = [
            path
            for path in self._folder.iterdir()
            if path.suffix != _SUFFIX or path.name[: -len(_SUFFIX)] not in present
        ]
        for path in stale:
            path.unlink()
        return len(stale)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, FILE_MODE)
