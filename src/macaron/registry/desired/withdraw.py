"""Taking a revision out of service that turned out to be broken: without anybody's order, whatever it does."""

from __future__ import annotations

from msgspec.structs import replace

from macaron.registry.desired.bounds import MAX_NOTE
from macaron.registry.desired.change import rollback
from macaron.registry.desired.document import Desired, Entry, Installed, Key, with_entry, with_installed
from macaron.registry.desired.trial import ended


def withdraw(desired: Desired, key: Key, revision: str, reason: str) -> Desired:
    """Let no turn begin on a revision any more, and say why. A live one is rolled back: to the revision before it,
    else to the profile's, else to none, and it drains; one on trial drains; a candidate stays one. None of them goes
    into service again before it was registered again.

    Args:
        reason: for people; cut to what a record may have.

    Raises:
        NotFound: entry or revision is not there.
    """
    entry = desired.find(key)
    item = entry.find(revision)
    if item.withdrawn or item.state == "retired":
        return desired
    if item.state == "live":
        # What cannot be rolled back to is the state before the first promotion.
        entry = replace(entry, previous=entry.previous or "")
        entry = rollback(with_entry(desired, entry), key).find(key)
    elif entry.trial == item:
        entry = ended(entry)
    if entry.previous == item.revision:
        entry = replace(entry, previous=None)
    return with_entry(desired, with_installed(entry, _marked(entry, revision, reason)))


def _marked(entry: Entry, revision: str, reason: str) -> Installed:
    text = "".join(char if char.isprintable() else " " for char in reason)[:MAX_NOTE]
    return replace(entry.find(revision), withdrawn=text.strip() or "no reason was given")
