"""The changes that users see: promote, roll back, disable, enable. Each is in force from the next turn on."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from macaron.errors import Conflict
from macaron.registry.cards import Registry
from macaron.registry.desired.document import Desired, Entry, Installed, Key, with_entry, with_installed
from macaron.registry.desired.trial import ended, require_enabled, require_probes, require_route_check


def promote(desired: Desired, key: Key, revision: str, replicas: Collection[str], registry: Registry) -> Desired:
    """Make a revision the label's live one. The one before is kept loaded, for the turns in flight and for `rollback`.

    Args:
        replicas: all that serve; each must have passed the probe.

    Raises:
        NotFound: entry or revision is not there.
        Conflict: it is retired, the label is disabled, or a check is missing, failed or out of date.
    """
    entry = desired.find(key)
    item = entry.find(revision)
    require_enabled(entry)
    if item.state == "live":
        return desired
    if item.state == "retired":
        message = f"revision {item.revision} is retired; register it again"
        raise Conflict(message, param="revision", code="wrong_state")
    require_probes(item, replicas)
    require_route_check(desired, entry, item, registry)
    return with_entry(desired, replace(_live(entry, item.revision), previous=entry.live))


def rollback(desired: Desired, key: Key) -> Desired:
    """Bring back what was live before the last promotion, with its card. No check stands in its way.

    Raises:
        NotFound: the entry is not there.
        Conflict: nothing is kept to roll back to.
    """
    entry = desired.find(key)
    if entry.previous is None:
        message = f"previous is empty: nothing was promoted for {entry.label} since its last rollback or drain"
        raise Conflict(
            f"{message}; promote a revision, or disable the label", param="previous", code="nothing_previous"
        )
    restored = replace(_live(entry, entry.previous), previous=None)
    return with_entry(desired, restored if restored.live or restored.profile else ended(restored))


def disable(desired: Desired, key: Key) -> Desired:
    """Let the entry count as if it were not there: a profile's label falls back to what is in force without it.

    Raises:
        NotFound: the entry is not there.
    """
    return with_entry(desired, replace(desired.find(key), disabled=True))


def enable(desired: Desired, key: Key, registry: Registry) -> Desired:
    """Let the entry count again.

    Raises:
        NotFound: the entry is not there.
        Conflict: the contract in force has the label now, or has it no more.
    """
    entry = desired.find(key)
    if entry.profile != (registry.get(entry.label) is not None):
        message = f"label {entry.label} was registered under another contract; remove the entry and register it again"
        raise Conflict(message, param="label", code="label_taken")
    return with_entry(desired, replace(entry, disabled=False))


def carry(desired: Desired, contract: str, registry: Registry) -> Desired:
    """The document for another contract of the same base. An entry whose label the profile has now, or has no more, is
    disabled: it means something else than when it was registered.

    Args:
        contract: digest of the new contract.
        registry: of its profile.
    """
    entries = tuple(
        replace(entry, disabled=True) if entry.profile != (registry.get(entry.label) is not None) else entry
        for entry in desired.entries
    )
    return replace(desired, contract=contract, entries=entries)


def newest(entry: Entry) -> Installed:
    """The revision that waits for its promotion.

    Raises:
        Conflict: there is none.
    """
    waiting = [item for item in entry.revisions if item.state not in ("live", "draining", "retired")]
    if not waiting:
        message = f"no revision of {entry.label} waits for a promotion; name one"
        raise Conflict(message, param="revision", code="nothing_to_promote")
    return waiting[-1]


def _live(entry: Entry, revision: str) -> Entry:
    """The entry with another revision live, or none, and the one that was draining."""
    if (before := entry.get(entry.live)) is not None:
        entry = with_installed(entry, replace(before, state="draining"))
    if (after := entry.get(revision)) is not None:
        entry = with_installed(entry, replace(after, state="live", share=0.0))
    return replace(entry, live=revision)
