"""The vault itself: bringing in, admitting, finding, removing, tidying.

One lock between processes covers every change of what is there; copying and checking go on beside it. An adapter comes
in by one rename of a folder that is already on the disk, and leaves by one, so that it is there whole or not at all.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import AsyncIterable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec import structs

from macaron.models.files import CHUNK, locked
from macaron.models.progress import silent
from macaron.registry.check.report import Report
from macaron.registry.vault.errors import InUse, NotStored, Oversize, Unsuitable, on_disk
from macaron.registry.vault.layout import (
    LOCK,
    OWNERS,
    STAGING,
    Owner,
    Stored,
    Swept,
    Usage,
    VaultLimits,
    bytes_in,
    hex_of,
    private_folder,
    revision_of,
    sync_folder,
)
from macaron.registry.vault.owners import Owners
from macaron.registry.vault.room import check_adapter_size, check_share, check_staging
from macaron.registry.vault.source import copy_file, open_source, sizes_in
from macaron.registry.vault.stage import Claim, Stage, Staged, live_claims, sweep
from macaron.registry.vault.steps import Watch, unwatched
from macaron.registry.vault.threads import to_end
from macaron.registry.vault.untar import Untar


class Vault:
    """Adapters by content, for all processes of a service at once. Every method blocks but `receive`.

    Args:
        folder: of the vault alone; made if it is not there, readable by its owner only. As an attribute, resolved.
        watch: see `macaron.registry.vault.steps`.

    Raises:
        ConfigError: the folder is another user's, open to others, or cannot be made.
    """

    def __init__(self, folder: Path, limits: VaultLimits | None = None, watch: Watch = unwatched) -> None:
        self.folder = private_folder(folder)
        self._limits = limits or VaultLimits()
        self._watch = watch
        self._staging = self.folder / STAGING
        self._owners = Owners(self.folder / OWNERS, watch)

    def bring(self, source: Path, roots: Sequence[Path]) -> Staged:
        """Copy an adapter from a folder below one of the operator's roots.

        Raises:
            Unsuitable: it is not there, or has links, other things than files, or changes while it is copied.
            Oversize: a file, or all of them, have more bytes than they may.
            VaultFull: there is no room.
            VaultFailure: the disk refuses.
        """
        stage = self._stage()
        try:
            with on_disk(), open_source(source, roots) as descriptor:
                sizes = sizes_in(descriptor)
                check_adapter_size(sum(sizes.values()), self._limits)
                self._open(stage)
                for name, size in sizes.items():
                    copy_file(descriptor, name, size, stage)
                return stage.seal()
        except BaseException:
            stage.close()
            raise

    async def receive(self, chunks: AsyncIterable[bytes], limit: int) -> Staged:
        """Take an upload: a plain tar archive of the adapter's files, as `macaron.registry.vault.untar` reads it.

        Args:
            chunks: of the body, as they come; about a mebibyte is held.
            limit: of the whole body, in bytes.

        Raises:
            Unsuitable: it is no such archive, or not complete.
            Oversize: the body, a file, or all of them have more bytes than they may.
            VaultFull: there is no room.
            VaultFailure: the disk refuses.
        """
        stage = self._stage()
        try:
            await to_end(self._open, stage)
            untar, held, total = Untar(stage), bytearray(), 0
            async for chunk in chunks:
                total += len(chunk)
                if total > limit:
                    reason, remedy = f"it has more than the {limit} bytes an upload may have", "send one adapter alone"
                    raise Oversize("body", "", reason, remedy)
                held += chunk
                if len(held) >= CHUNK:
                    await to_end(_feed, untar, bytes(held))
                    held.clear()
            return await to_end(_finish, stage, untar, bytes(held))
        except BaseException:
            await to_end(stage.close)
            raise

    def admit(self, staged: Staged, report: Report, tenant: str) -> Stored:
        """Move a checked adapter in; one that is already there only gains an owner, and nothing is written twice.

        Args:
            report: of `check_adapter` on `staged.path`.

        Raises:
            Unsuitable: the report has errors, or is about other bytes.
            VaultFull: the vault, or the tenant's share of it, has no room.
            VaultFailure: the disk refuses.
        """
        _check_report(staged, report)
        name = hex_of(staged.revision)
        with on_disk(), self._locked():
            staged.stage.claim(Claim(revision=staged.revision, tenant=tenant))
            there = (self.folder / name).is_dir()
            owners = self._owners.read(name) if there else {}
            if tenant not in owners:
                check_share(tuple(self._all()), tenant, staged.bytes, there=there, limits=self._limits)
                self._own(name, {**owners, tenant: datetime.now(UTC).isoformat(timespec="seconds")}, staged)
            self._watch("adapter.admitted")
            return _for(tenant, self._stored(name))

    def path(self, revision: str) -> Path:
        """The folder of an adapter, in PEFT's format.

        Raises:
            NotStored: it is not there.
        """
        path = self.folder / hex_of(revision)
        if not path.is_dir():
            raise _not_stored(revision)
        return path

    def list(self, tenant: str | None = None) -> tuple[Stored, ...]:
        """All adapters by revision; those of one tenant show no other owner."""
        with on_disk():
            found = tuple(self._all())
        return found if tenant is None else tuple(_for(tenant, item) for item in found if _owned(item, tenant))

    def used(self, tenant: str | None = None) -> Usage:
        """What lies in the vault, or what of it a tenant has brought."""
        found = self.list(tenant)
        return Usage(len(found), sum(item.bytes for item in found))

    def remove(self, revision: str, tenant: str, in_use: Callable[[], Collection[str]]) -> None:
        """Give up a tenant's adapter; its files go with its last owner.

        Args:
            in_use: gives the revisions that this tenant's specialists or a running hop of theirs still name. It is
                asked under the vault's lock, when the tenant is not registering this revision: what it registered
                before is committed by then.

        Raises:
            NotStored: this tenant has no such adapter.
            InUse: it is in use, or is being registered now.
            VaultFailure: the disk refuses.
        """
        name = hex_of(revision)
        with self._locked():
            with on_disk():
                owners = dict(self._owners.read(name)) if (self.folder / name).is_dir() else {}
                claims = {(claim.revision, claim.tenant) for claim in live_claims(self._staging)}
            if owners.pop(tenant, None) is None:
                raise _not_stored(revision)
            if (revision, tenant) in claims:
                raise InUse("revision", revision, "it is being registered now", "remove it when that has ended")
            if revision in in_use():
                raise InUse("revision", revision, "it is in use", "retire the specialists that run on it first")
            with on_disk():
                if owners:
                    self._owners.write(name, owners)
                else:
                    self._withdraw(name)

    def tidy(self) -> Swept:
        """Remove what dead processes left behind; what live ones are bringing in stays."""
        with on_disk(), self._locked():
            stages, size = sweep(self._staging)
            return Swept(stages, size, self._owners.sweep(self._names()))

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self.folder / LOCK, silent)

    def _stage(self) -> Stage:
        return Stage(self._staging, self._limits, self._reserve, self._watch)

    def _open(self, stage: Stage) -> None:
        with on_disk(), self._locked():
            stage.open()

    def _reserve(self, stage: Stage, more: int) -> None:
        size = stage.bytes + more
        check_adapter_size(size, self._limits)
        with self._locked():
            others = sum(claim.bytes for claim in live_claims(self._staging, stage.token))
            check_staging(self._staging, others, size, more, self._limits)
            stage.claim(Claim(size))

    def _own(self, name: str, owners: Mapping[str, str], staged: Staged) -> None:
        target = self.folder / name
        try:
            self._owners.write(name, owners)
            if not target.is_dir():
                staged.path.rename(target)
                self._watch("adapter.moved")
                sync_folder(self.folder)
        except BaseException:
            if not target.is_dir():
                self._owners.forget(name)
            raise

    def _withdraw(self, name: str) -> None:
        gone = self._staging / secrets.token_hex(16)
        (self.folder / name).rename(gone)
        self._watch("adapter.withdrawn")
        sync_folder(self.folder)
        self._owners.forget(name)
        self._watch("adapter.forgotten")
        shutil.rmtree(gone)

    def _names(self) -> frozenset[str]:
        with os.scandir(self.folder) as entries:
            return frozenset(entry.name for entry in entries if revision_of(entry.name) and entry.is_dir())

    def _all(self) -> Iterator[Stored]:
        for name in sorted(self._names()):
            # Reading takes no lock: what another process removes meanwhile is simply not there any more.
            with suppress(FileNotFoundError):
                yield self._stored(name)

    def _stored(self, name: str) -> Stored:
        path = self.folder / name
        owners = tuple(Owner(tenant, since) for tenant, since in sorted(self._owners.read(name).items()))
        return Stored(revision_of(name) or "", path, bytes_in(path), owners)


def _owned(stored: Stored, tenant: str) -> bool:
    return any(owner.tenant == tenant for owner in stored.owners)


def _for(tenant: str, stored: Stored) -> Stored:
    """What a tenant may see: no other owner."""
    return structs.replace(stored, owners=tuple(owner for owner in stored.owners if owner.tenant == tenant))


def _feed(untar: Untar, raw: bytes) -> None:
    with on_disk():
        untar.feed(raw)


def _finish(stage: Stage, untar: Untar, raw: bytes) -> Staged:
    with on_disk():
        untar.feed(raw)
        untar.end()
        return stage.seal()


def _check_report(staged: Staged, report: Report) -> None:
    wrong = [item for item in report.findings if item.severity == "error"]
    if wrong:
        first = wrong[0]
        reason = f"the check found {len(wrong)} errors; the first is {first.code}: {first.message.rstrip('.')}"
        raise Unsuitable(first.field, first.value, reason, first.remedy.rstrip("."), code="check_failed")
    if report.revision != staged.revision:
        reason = f"it is about other bytes than the staged {staged.revision}"
        raise Unsuitable("report", report.revision, reason, "check the staged folder itself", code="other_revision")


def _not_stored(revision: str) -> NotStored:
    return NotStored("revision", revision, "it is not in the vault", "name a revision as `list` shows it")
