"""Which revision of an entry a turn is answered by, and which in its shadow. The same for the same name, always."""

from __future__ import annotations

import hashlib

from macaron.registry.desired.document import Entry, Installed


def chosen(entry: Entry, session_id: str) -> Installed | None:
    """The revision for a session: the canary for its share of sessions, else the live one.

    A session keeps its side, and a larger share only moves sessions to the canary. The hash is over the canary's
    revision too, so that not the same sessions try every canary. None where the entry has nothing live.
    """
    if entry.disabled:
        return None
    trial = entry.trial
    if trial is not None and trial.state == "canary" and _point("canary", trial, session_id) < trial.share:
        return trial
    return entry.get(entry.live)


def shadowed(entry: Entry, turn_id: str) -> Installed | None:
    """The revision that answers a turn in shadow, None where none does."""
    trial = None if entry.disabled else entry.trial
    if trial is None or trial.state != "shadow" or _point("shadow", trial, turn_id) >= trial.share:
        return None
    return trial


def _point(kind: str, item: Installed, name: str) -> float:
    """Where a name falls in [0, 1)."""
    digest = hashlib.sha256(f"{kind}\0{item.revision}\0{name}".encode("utf-8", "surrogatepass")).digest()
    # 53 bits are what a float holds; more could round up to 1 and keep a session out of a share of 1.
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53
