"""What is in force for a tenant: the profile's specialists with what the document changes and adds.

For each label the tenant's own entry comes first, then everybody's, then the profile; one that is disabled or has
nothing live is passed over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from msgspec.structs import replace

from macaron.registry.cards import Registry, Specialist
from macaron.registry.desired.choice import chosen, shadowed
from macaron.registry.desired.document import Desired, Entry, Installed, Key, with_entry


def in_force(registry: Registry, desired: Desired, tenant: str) -> Registry:
    """The specialists that a tenant's requests may be routed to: the profile's in its order, then new labels in the
    order of registration.

    Args:
        registry: of the profile.
        tenant: empty for what everybody has.
    """
    live: dict[str, Entry] = {}
    for entry in desired.entries:
        usable = entry.live and not entry.disabled and entry.tenant in ("", tenant) and _fits(registry, entry)
        if usable and (entry.tenant or entry.label not in live):
            live[entry.label] = entry
    own = (_live(registry, live[item.label]) if item.label in live else item for item in registry.specialists)
    # The document's order, not the dictionary's: an entry of the tenant's may have taken the place of everybody's.
    new = (entry for entry in desired.entries if live.get(entry.label) is entry and not entry.profile)
    return replace(registry, specialists=(*own, *(_live(registry, entry) for entry in new)))


def supposed(desired: Desired, key: Key, revision: str) -> Desired:
    """The document as if a revision were live, only to see what would be in force then: nothing is checked.

    Raises:
        NotFound: entry or revision is not there.
    """
    entry = desired.find(key)
    return with_entry(desired, replace(entry, live=entry.find(revision).revision, disabled=False))


def select(registry: Registry, desired: Desired, tenant: str, label: str, session_id: str) -> Specialist | None:
    """The specialist that answers a new turn of a session under a label, the canary where the session is in its share.

    Its card is for the head of the view; routing uses the cards of `in_force`. None where the label is not in force.
    """
    for entry in entries_for(registry, desired, tenant, label):
        if (item := chosen(entry, session_id)) is not None:
            return _specialist(registry, entry, item)
    return registry.get(label)


def select_shadow(registry: Registry, desired: Desired, tenant: str, label: str, turn_id: str) -> Specialist | None:
    """The specialist that answers a turn in shadow, None where none does."""
    for entry in entries_for(registry, desired, tenant, label):
        if (item := shadowed(entry, turn_id)) is not None:
            return _specialist(registry, entry, item)
        if entry.live:
            return None  # what stands behind this entry is not what the turn was answered by
    return None


def at_revision(registry: Registry, desired: Desired, tenant: str, label: str, revision: str) -> Specialist | None:
    """The specialist on which a turn began, for its tool results and retries: also where it drains or is disabled.

    None where it is retired, withdrawn, removed, or was never the tenant's to use.
    """
    for key in _keys(label, tenant):
        entry = desired.get(key)
        item = entry.get(revision) if entry else None
        usable = item is not None and item.state != "retired" and not item.withdrawn
        if entry is not None and item is not None and usable and _fits(registry, entry):
            return _specialist(registry, entry, item)
    found = registry.get(label)
    return found if found is not None and found.revision == revision else None


def entries_for(registry: Registry, desired: Desired, tenant: str, label: str) -> Iterator[Entry]:
    """The entries that decide on a label for a tenant, the first one first."""
    for key in _keys(label, tenant):
        entry = desired.get(key)
        if entry is not None and not entry.disabled and _fits(registry, entry):
            yield entry


def standing(registry: Registry, desired: Desired, tenant: str) -> str:
    """Names what decides a tenant's routes: every label's card, and the revision and prompt of the one that routes."""
    force = in_force(registry, desired, tenant)
    entry = force.entry_specialist
    text = "\0".join((entry.revision, entry.identity, *(item.card for item in force.specialists)))
    return "standing:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _live(registry: Registry, entry: Entry) -> Specialist:
    return _specialist(registry, entry, entry.find(entry.live))


def _keys(label: str, tenant: str) -> tuple[Key, ...]:
    return (Key(label, tenant), Key(label)) if tenant else (Key(label),)


def _fits(registry: Registry, entry: Entry) -> bool:
    """Whether the profile has the label, or lacks it, as it did when the entry was registered."""
    return entry.profile == (registry.get(entry.label) is not None)


def _specialist(registry: Registry, entry: Entry, item: Installed) -> Specialist:
    # Without a card of its own the label is one of the profile's, by the document's invariants.
    card = item.card or registry.get(entry.label)
    assert card is not None
    return Specialist(
        label=entry.label,
        name=card.name,
        description=card.description,
        boundary=card.boundary,
        identity=card.identity,
        revision=item.revision,
        engine_name=entry.engine_name(item),
        model="",
        state="verified",
    )
