"""What an administrator may do with adapters: each verb one change of the document, with its checks.

`by` is the tenant that asks, empty for the operator, who may change everybody's entries and every tenant's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from macaron.errors import BadRequest, Conflict
from macaron.profiles.fingerprint import profile_base, profile_limits
from macaron.registry import desired as state
from macaron.registry.check import BaseFingerprint, Report, check_adapter
from macaron.registry.desired import Card, Desired, Entry, Key, Registration, permit, visible
from macaron.registry.vault import InUse, NotStored, Staged, Stored, VaultLimits
from macaron.registry.vault.threads import to_end
from macaron.server.adapters.document import Edit
from macaron.server.adapters.parts import Adapters
from macaron.server.adapters.sweep import registered

UPLOAD_OVERHEAD = 65_536
"""Bytes that an archive may have beyond its files."""


class NewAdapter(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be registered.

    Attributes:
        folder: of the adapter, below one of the contract's `[registry] roots`; or
        revision: of an upload.
        name, description, boundary, identity: its card; without any, that of the label as it is.
        tenant: whose it is; None for the tenant that asks, or everybody where that is the operator.
        override: whether it is meant for a label that is there already.
    """

    label: str
    folder: str = ""
    revision: str = ""
    name: str = ""
    description: str = ""
    boundary: str = ""
    identity: str = ""
    tenant: str | None = None
    override: bool = False
    note: str = ""

    @property
    def card(self) -> Card | None:
        """None where it says nothing of it."""
        given = (self.name, self.description, self.boundary, self.identity)
        return Card(self.name, self.description, self.identity, self.boundary) if any(given) else None


class Admin:
    """The verbs."""

    def __init__(self, adapters: Adapters) -> None:
        self._adapters = adapters
        self._base: BaseFingerprint | None = None
        self._limits = VaultLimits()

    async def entries(self, by: str) -> tuple[Entry, ...]:
        """What `by` may see."""
        return visible((await self._adapters.document.read()).desired, by)

    async def entry(self, by: str, key: Key) -> Entry:
        """One entry.

        Raises:
            NotFound: it is not there, or not for `by` to see.
        """
        desired = (await self._adapters.document.read()).desired
        if key.tenant not in ("", by):
            permit(by, key)
        return desired.find(key)

    async def upload(self, by: str, chunks: AsyncIterable[bytes]) -> Report:
        """Take an adapter's files as an archive; gives what the check found, with the revision to register.

        Raises:
            BadRequest, TooLarge, VaultError: it is no adapter for this base, or there is no room.
        """
        limit = self._limits.max_adapter_bytes + UPLOAD_OVERHEAD
        staged = await self._adapters.vault.receive(chunks, limit)
        try:
            report = await self._checked(staged.path)
            await to_end(self._adapters.vault.admit, staged, report, by)
            return report
        finally:
            await to_end(staged.close)

    async def register(self, by: str, wanted: NewAdapter) -> Entry:
        """Register an adapter as a candidate, of which the engine then has to prove that it holds it.

        Raises:
            BadRequest: a field is wrong, or the check found errors.
            Conflict: the label or the revision is taken, a quota is used up, or the engine takes no adapters.
            NotFound, VaultError: the files are not there, or there is no room.
        """
        key = Key(wanted.label, by if wanted.tenant is None else wanted.tenant)
        permit(by, key)
        if self._adapters.plug is None:
            kind = self._adapters.service.engine.kind
            raise Conflict(f"the engine is {kind}, which takes no adapters", param="engine", code="no_adapters")
        if bool(wanted.folder) == bool(wanted.revision):
            message = "folder and revision: give either a folder below a root, or the revision of an upload"
            raise BadRequest(message, param="folder", code="one_source")
        if wanted.revision:
            stored = await self._uploaded(by, wanted.revision)
            staged = await to_end(self._adapters.vault.bring, stored.path, [self._adapters.vault.folder])
        else:
            roots = [Path(root) for root in self._adapters.service.contract.registry.roots]
            staged = await to_end(self._adapters.vault.bring, Path(wanted.folder), roots)
        try:
            return await self._register(key, wanted, staged)
        finally:
            await to_end(staged.close)

    async def promote(self, by: str, key: Key, revision: str, waived: str = "") -> Entry:
        """Make a revision the live one, if every check passed; `waived` is the reason for going on without a route
        check.

        Raises:
            NotFound, Forbidden, Conflict, BadRequest: see `desired.promote` and `desired.waive_route_check`.
        """

        profile = self._adapters.service.profile

        def edit(desired: Desired, whole: str) -> Desired:
            if waived:
                desired = state.waive_route_check(desired, key, whole, waived)
            return state.promote(desired, key, whole, self._replicas, profile)

        return await self._try(by, key, revision, edit)

    async def shadow(self, by: str, key: Key, revision: str, share: float) -> Entry:
        """Let a revision answer a share of the label's turns that nobody sees.

        Raises:
            NotFound, Forbidden, Conflict, BadRequest: see `desired.shadow`.
        """
        return await self._try(
            by, key, revision, lambda desired, whole: state.shadow(desired, key, whole, share, self._replicas)
        )

    async def canary(self, by: str, key: Key, revision: str, share: float, waived: str = "") -> Entry:
        """Let a revision answer the label's turns in a share of sessions; `waived` as for `promote`.

        Raises:
            NotFound, Forbidden, Conflict, BadRequest: see `desired.canary`.
        """
        profile = self._adapters.service.profile

        def edit(desired: Desired, whole: str) -> Desired:
            if waived:
                desired = state.waive_route_check(desired, key, whole, waived)
            return state.canary(desired, key, whole, share, self._replicas, profile)

        return await self._try(by, key, revision, edit)

    async def rollback(self, by: str, key: Key) -> Entry:
        """Bring back what was live before.

        Raises:
            NotFound, Forbidden, Conflict: see `desired.rollback`.
        """
        return await self._change(by, key, lambda desired: state.rollback(desired, key))

    async def disable(self, by: str, key: Key) -> Entry:
        """Let the entry count as if it were not there.

        Raises:
            NotFound, Forbidden: it is not there, or not for `by` to change.
        """
        return await self._change(by, key, lambda desired: state.disable(desired, key))

    async def enable(self, by: str, key: Key) -> Entry:
        """Let the entry count again.

        Raises:
            NotFound, Forbidden, Conflict: see `desired.enable`.
        """
        profile = self._adapters.service.profile
        return await self._change(by, key, lambda desired: state.enable(desired, key, profile))

    async def drain(self, by: str, key: Key, revision: str) -> Entry:
        """Begin no new turn on a revision.

        Raises:
            NotFound, Forbidden, Conflict: see `desired.drain`.
        """
        return await self._change(by, key, lambda desired: state.drain(desired, key, revision))

    async def remove(self, by: str, key: Key, revision: str) -> Entry | None:
        """Forget a revision, or without one the whole entry; gives what is left of it. Its files go when the engine
        has let them go.

        Raises:
            NotFound, Forbidden, Conflict: see `desired.remove` and `desired.remove_label`.
        """

        def edit(desired: Desired) -> Desired:
            in_use = self._adapters.follower.in_use
            if revision:
                return state.remove(desired, key, revision, in_use)
            return state.remove_label(desired, key, in_use)

        return await self._changed(by, key, edit)

    @property
    def standing(self) -> str:
        """What decides everybody's routes now, for a route check."""
        service = self._adapters.service
        return state.standing(service.profile, service.desired, "")

    async def _try(self, by: str, key: Key, revision: str, edit: Callable[[Desired, str], Desired]) -> Entry:
        """Change what a revision is used for, which the engine must have now; the newest that waits, unless one is
        named."""

        def checked(desired: Desired) -> Desired:
            entry = desired.find(key)
            item = entry.find(revision) if revision else state.newest(entry)
            changed = edit(desired, item.revision)
            self._require_loaded(entry.engine_name(item))
            return changed

        return await self._change(by, key, checked)

    async def _change(self, by: str, key: Key, edit: Edit) -> Entry:
        entry = await self._changed(by, key, edit)
        assert entry is not None
        return entry

    async def _changed(self, by: str, key: Key, edit: Edit) -> Entry | None:
        permit(by, key)
        config = await self._adapters.document.change(edit)
        # Whoever is told that it is done may rely on it in the next request, whichever worker takes that.
        await self._adapters.follower.followed(config.generation)
        return config.desired.get(key)

    async def _register(self, key: Key, wanted: NewAdapter, staged: Staged) -> Entry:
        report = await self._checked(staged.path)
        stored = await to_end(self._adapters.vault.admit, staged, report, key.tenant)
        registration = Registration(
            label=key.label, revision=stored.revision, tenant=key.tenant, card=wanted.card, override=wanted.override,
            bytes=stored.bytes, licence=report.licence, run=report.provenance.run if report.provenance else "",
            created=time.time(), note=wanted.note,
        )  # fmt: skip
        profile = self._adapters.service.profile
        try:
            entry = await self._changed("", key, lambda desired: state.register(desired, registration, profile))
        except BaseException:
            await to_end(staged.close)
            await self._give_back(stored, key.tenant)
            raise
        assert entry is not None
        return entry

    async def _give_back(self, stored: Stored, tenant: str) -> None:
        """Undo an admission that came to nothing, unless the tenant has that adapter from before."""
        named = registered((await self._adapters.document.read()).desired, tenant)
        with suppress(InUse, NotStored):
            await to_end(self._adapters.vault.remove, stored.revision, tenant, lambda: named)

    async def _uploaded(self, by: str, revision: str) -> Stored:
        for stored in await asyncio.to_thread(self._adapters.vault.list, by):
            if stored.revision == revision:
                return stored
        raise NotStored("revision", revision, "it was not uploaded by you", "upload it first")

    async def _checked(self, folder: Path) -> Report:
        """The report on an adapter without errors.

        Raises:
            BadRequest: it has some; all are named.
        """
        loaded = self._adapters.service.loaded
        base = self._base = self._base or await asyncio.to_thread(profile_base, loaded)
        report = await to_end(check_adapter, folder, base, profile_limits(loaded))
        wrong = [item for item in report.findings if item.severity == "error"]
        if wrong:
            lines = (f"{item.field} ({item.value}): {item.message} {item.remedy} [{item.code}]" for item in wrong)
            message = f"The adapter cannot be registered; the check found {len(wrong)} errors:\n" + "\n".join(lines)
            raise BadRequest(message, param=wrong[0].field, code="check_failed")
        return report

    @property
    def _replicas(self) -> frozenset[str]:
        return frozenset((self._adapters.plug.replica,)) if self._adapters.plug is not None else frozenset()

    def _require_loaded(self, name: str) -> None:
        if name not in self._adapters.follower.findings.proved:
            message = f"{name} is not loaded at the moment; `macaron adapter show` says why"
            raise Conflict(message, param="revision", code="not_loaded")
