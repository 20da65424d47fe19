"""What holds in every state that the changes lead to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from macaron.registry.check.report import shown
from macaron.registry.desired.bounds import (
    MAX_BOUND,
    MAX_ENTRIES,
    MAX_FIELD,
    MAX_REVISIONS,
    installed_faults,
    key_faults,
)
from macaron.registry.desired.document import (
    ADAPTER_REVISION,
    ENGINE_NAME,
    REVISION_DIGITS,
    TRIAL,
    Bound,
    Desired,
    Entry,
    Installed,
)


class Problem(NamedTuple):
    """Where the document is in no state of its own, and why."""

    place: str
    message: str


def problems(desired: Desired) -> Iterator[Problem]:
    """Everything that no sequence of changes leads to."""
    if not desired.contract or len(desired.contract) > MAX_FIELD or not desired.contract.isprintable():
        yield Problem("contract", f"{shown(desired.contract)!r} is no digest of a contract")
    if len(desired.entries) > MAX_ENTRIES or len(desired.bound) > MAX_BOUND:
        yield Problem("entries", f"there are more than {MAX_ENTRIES} entries or {MAX_BOUND} bound names")
    for key, count in Counter(entry.key for entry in desired.entries).items():
        if count > 1:
            yield Problem("entries", f"{shown(key.label)} of {shown(key.tenant)!r} is there {count} times")
    for entry in desired.entries:
        place = f"{shown(entry.label)}@{shown(entry.tenant)}" if entry.tenant else shown(entry.label)
        yield from (Problem(f"entries.{place}", message) for message in _entry_problems(entry))
    yield from _name_problems(desired)


def _entry_problems(entry: Entry) -> Iterator[str]:
    yield from map(str, key_faults(entry.label, entry.tenant))
    if not 1 <= len(entry.revisions) <= MAX_REVISIONS:
        yield f"it has {len(entry.revisions)} revisions; there are 1 to {MAX_REVISIONS}"
    if len({item.revision for item in entry.revisions}) < len(entry.revisions):
        yield "a revision is there twice"
    if len(trials := [item for item in entry.revisions if item.state in TRIAL]) > 1:
        yield f"{len(trials)} revisions are in shadow or canary; there is at most one"
    if trials and not (entry.live or entry.profile):
        yield "a revision is on trial, but nothing is live beside it"
    live = [item.revision for item in entry.revisions if item.state == "live"]
    if live != ([entry.live] if entry.live else []):
        yield f"live is {shown(entry.live)!r}, but {shown(live)} say that they are"
    yield from _previous_problems(entry)
    for item in entry.revisions:
        yield from (f"{shown(item.revision)[:19]}: {message}" for message in _installed_problems(entry, item))


def _previous_problems(entry: Entry) -> Iterator[str]:
    if entry.previous is None:
        return
    if not entry.live or entry.previous == entry.live:
        yield f"previous is {shown(entry.previous)!r}, but live is {shown(entry.live)!r}"
    if entry.previous:
        found = entry.get(entry.previous)
        if found is None or found.state not in ("draining", *TRIAL):
            yield f"previous {shown(entry.previous)!r} is not kept for a rollback"


def _installed_problems(entry: Entry, item: Installed) -> Iterator[str]:
    yield from map(str, installed_faults(item))
    on_trial = item.state in TRIAL
    if not (0 < item.share <= 1 if on_trial else item.share == 0):
        yield f"its share is {item.share}; in state {item.state} it is {'in (0, 1]' if on_trial else '0'}"
    if item.card is None and not entry.profile:
        yield "it has no card, and the profile has none for the label"
    if (on_trial or item.state == "live") and not item.probed:
        yield f"it is {item.state} without any probe"
    if item.withdrawn and item.state not in ("candidate", "draining", "retired"):
        yield f"it is {item.state}, though it was withdrawn"
    check = item.route_check
    if check is not None and (bool(check.waived) == bool(check.standing) or (check.waived and check.passed)):
        yield "its route check neither names what was in force nor is waived, or both"
    if item.state in ("canary", "live") and check is None:
        yield f"it is {item.state} without a route check"


def _name_problems(desired: Desired) -> Iterator[Problem]:
    bound: dict[str, str] = {}
    for name, revision in names_of(desired):
        if bound.setdefault(name, revision) != revision:
            yield Problem("entries", f"the engine name {shown(name)} stands for two revisions")
    for item in desired.bound:
        if not _is_bound(item):
            yield Problem("bound", f"{shown(item.engine_name)} is no engine name of {shown(item.revision)}")
    if len({item.engine_name for item in desired.bound}) < len(desired.bound):
        yield Problem("bound", "an engine name is there twice")


def names_of(desired: Desired) -> Iterator[tuple[str, str]]:
    """Engine names with the revisions that they stand for, of what is registered and of what was removed."""
    for entry in desired.entries:
        yield from ((entry.engine_name(item), item.revision) for item in entry.revisions)
    yield from ((item.engine_name, item.revision) for item in desired.bound)


def _is_bound(item: Bound) -> bool:
    digits = item.revision.removeprefix("sha256:")[:REVISION_DIGITS]
    named = ENGINE_NAME.fullmatch(item.engine_name) and ADAPTER_REVISION.fullmatch(item.revision)
    return bool(named) and item.engine_name.endswith(f"@{digits}")
