"""What of the registry's document turns may use on this engine. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from macaron.mol.trials import Trial
from macaron.registry.cards import Registry, Specialist
from macaron.registry.desired import Desired, Entry, at_revision, entries_for, in_force


class View(NamedTuple):
    """The specialists of a tenant.

    Attributes:
        registry: those that new turns are routed to.
        kept: by label and revision, those on which turns may have begun before.
        trials: by label, what is tried beside it on this engine.
    """

    registry: Registry
    kept: Mapping[tuple[str, str], Specialist]
    trials: Mapping[str, Trial]


def view_for(profile: Registry, desired: Desired, proved: Collection[str], tenant: str) -> View:
    """What a tenant's requests may use.

    Args:
        proved: engine names of registered adapters that can be used on the engine, each proved by a probe. A label
            whose live revision is not among them falls back to what is in force without it.
        tenant: empty for what everybody has.
    """
    kept = {
        (entry.label, item.revision): found
        for entry in desired.entries
        if entry.tenant in ("", tenant)
        for item in entry.revisions
        if (found := at_revision(profile, desired, tenant, entry.label, item.revision)) is not None
    }
    usable = _withdrawn(desired, proved)
    registry = in_force(profile, usable, tenant)
    tried = ((label, _trial(profile, usable, proved, tenant, label)) for label in registry.labels)
    return View(registry, kept, {label: trial for label, trial in tried if trial is not None})


def tenants(desired: Desired) -> frozenset[str]:
    """Tenants that see something of their own."""
    return frozenset(entry.tenant for entry in desired.entries if entry.tenant)


def _trial(profile: Registry, desired: Desired, proved: Collection[str], tenant: str, label: str) -> Trial | None:
    for entry in entries_for(profile, desired, tenant, label):
        item = entry.trial
        if item is not None and entry.engine_name(item) in proved:
            specialist = at_revision(profile, desired, tenant, label, item.revision)
            return Trial(entry, specialist) if specialist is not None else None
        if entry.live:
            return None  # what stands behind this entry is not what the label's turns are answered by
    return None


def _withdrawn(desired: Desired, proved: Collection[str]) -> Desired:
    """The document without the entries whose live revision cannot be used on this engine now."""
    entries = (entry if _usable(entry, proved) else replace(entry, disabled=True) for entry in desired.entries)
    return replace(desired, entries=tuple(entries))


def _usable(entry: Entry, proved: Collection[str]) -> bool:
    live = entry.get(entry.live)
    return live is None or entry.engine_name(live) in proved
