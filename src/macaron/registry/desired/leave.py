"""How revisions leave: drain, retire, remove. None is unloaded that a turn still needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from macaron.errors import Conflict
from macaron.registry.desired.bounds import MAX_BOUND
from macaron.registry.desired.document import TRIAL, Bound, Desired, Entry, Installed, Key, with_entry, with_installed


def drain(desired: Desired, key: Key, revision: str) -> Desired:
    """Begin no new turn on a revision. One that drains already, but is kept for a rollback, is not kept any longer.

    Raises:
        NotFound: entry or revision is not there.
        Conflict: it is live, or retired.
    """
    entry = desired.find(key)
    item = entry.find(revision)
    if item.state == "live":
        message = f"revision {item.revision} is live; roll back, promote another, or disable the label first"
        raise Conflict(message, param="revision", code="wrong_state")
    if item.state == "retired":
        raise Conflict(f"revision {item.revision} is retired already", param="revision", code="wrong_state")
    if entry.previous == item.revision and item.state == "draining":
        entry = replace(entry, previous=None)
    return with_entry(desired, with_installed(entry, replace(item, state="draining", share=0.0)))


def retire(desired: Desired, key: Key, revision: str, in_use: Collection[str]) -> Desired:
    """Let engines unload a drained revision.

    Args:
        in_use: engine names that turns, shadows or retries still need, on any replica.

    Raises:
        NotFound: entry or revision is not there.
        Conflict: it is not draining, is kept for a rollback, or is in use.
    """
    entry = desired.find(key)
    item = entry.find(revision)
    if item.state != "draining":
        message = f"revision {item.revision} is {item.state}; only a draining one is retired: drain it first"
        raise Conflict(message, param="revision", code="wrong_state")
    _refuse_previous(entry, item)
    _refuse_used(entry, (item,), in_use)
    return with_entry(desired, with_installed(entry, _retired(item)))


def retire_idle(desired: Desired, in_use: Collection[str]) -> Desired:
    """Retire every drained revision that nothing needs any more: what a reconciler does on its rounds."""
    entries = []
    for entry in desired.entries:
        for item in entry.revisions:
            kept = entry.previous == item.revision or entry.engine_name(item) in in_use
            if item.state == "draining" and not kept:
                entry = with_installed(entry, _retired(item))
        entries.append(entry)
    return desired if tuple(entries) == desired.entries else replace(desired, entries=tuple(entries))


def remove(desired: Desired, key: Key, revision: str, in_use: Collection[str]) -> Desired:
    """Forget one revision, and the entry with its last one. Its engine name stays bound to its bytes.

    Raises:
        NotFound: entry or revision is not there.
        Conflict: it is live, on trial, kept for a rollback, or in use.
    """
    entry = desired.find(key)
    item = entry.find(revision)
    if item.state == "live" or item.state in TRIAL:
        message = f"revision {item.revision} is {item.state}; end that first, or disable and remove the whole label"
        raise Conflict(message, param="revision", code="wrong_state")
    _refuse_previous(entry, item)
    if len(entry.revisions) == 1:
        return remove_label(desired, key, in_use)
    _refuse_used(entry, (item,), in_use)
    others = tuple(other for other in entry.revisions if other.revision != item.revision)
    return with_entry(_with_bound(desired, entry, (item,)), replace(entry, revisions=others))


def remove_label(desired: Desired, key: Key, in_use: Collection[str]) -> Desired:
    """Forget an entry with all its revisions.

    Raises:
        NotFound: the entry is not there.
        Conflict: something of it is live or on trial and it is not disabled, or a revision is in use.
    """
    entry = desired.find(key)
    if not entry.disabled and (entry.live or entry.trial is not None):
        message = f"label {entry.label} is in service; disable it first, or roll back and drain its revisions"
        raise Conflict(message, param="label", code="in_service")
    _refuse_used(entry, entry.revisions, in_use)
    entries = tuple(item for item in desired.entries if item.key != key)
    return replace(_with_bound(desired, entry, entry.revisions), entries=entries)


def _retired(item: Installed) -> Installed:
    return replace(item, state="retired", share=0.0)


def _refuse_previous(entry: Entry, item: Installed) -> None:
    if entry.previous == item.revision:
        message = f"revision {item.revision} is kept for a rollback of {entry.label}; drain it to give that up"
        raise Conflict(message, param="previous", code="kept_for_rollback")


def _refuse_used(entry: Entry, items: Iterable[Installed], in_use: Collection[str]) -> None:
    used = [name for item in items if (name := entry.engine_name(item)) in in_use]
    if used:
        message = f"{', '.join(used)} is in use by turns that have not ended; try again when they have"
        raise Conflict(message, param="revision", code="in_use")


def _with_bound(desired: Desired, entry: Entry, items: Iterable[Installed]) -> Desired:
    new = {entry.engine_name(item): item.revision for item in items}
    kept = tuple(item for item in desired.bound if item.engine_name not in new)
    bound = (*kept, *(Bound(name, revision) for name, revision in new.items()))
    return replace(desired, bound=bound[-MAX_BOUND:])
