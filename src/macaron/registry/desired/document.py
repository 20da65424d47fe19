"""The registry as desired state: which revisions there are, what each is for, and what is known of it.

One document, kept by `Store.compare_and_set`: every change makes a new value, and with it a new generation. Nothing
here does I/O, asks a clock or knows an engine.

    register ─▶ candidate ─▶ shadow ⇄ canary ─▶ live ─▶ draining ─▶ retired ─▶ register again

A revision may be promoted from every state before `live` and from `draining`, be drained from every one but `live`, and
go back on trial while it drains; a rollback makes the draining one before the live one live again.

`canary` is a state of its own and no `candidate` with a share: the state alone then says whether users see a revision's
answers, and nothing that users see is called a candidate.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from macaron.errors import NotFound
from macaron.registry.check import Effect
from macaron.registry.check.report import shown

State = Literal["candidate", "shadow", "canary", "live", "draining", "retired"]

TRIAL: Final = ("shadow", "canary")
"""States in which a revision answers a share of turns or sessions beside the live one."""

REVISION_DIGITS: Final = 12
ADAPTER_REVISION = re.compile(r"sha256:[0-9a-f]{64}")
ENGINE_NAME = re.compile(r"[A-Z][A-Za-z0-9_-]{0,31}@[0-9a-f]{12}")
_PREFIX = re.compile(r"sha256:[0-9a-f]{12,64}")


class Key(NamedTuple):
    """Names an entry: its label, and whose it is (empty: everybody's)."""

    label: str
    tenant: str = ""


class _Record(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of the document."""


class Card(_Record, frozen=True):
    """What router and people read of a specialist, and its prompt. It belongs to a revision, so that a promotion
    changes both at once and a rollback restores both."""

    name: str
    description: str
    identity: str
    boundary: str = ""


class Probed(_Record, frozen=True):
    """What a replica's probe found: mean total variation from the base, None where it was no number."""

    replica: str
    passed: bool
    mean: float | None = None


class RouteCheck(_Record, frozen=True):
    """What the route check found, or why there was none.

    Attributes:
        passed: whether the others lost no more than the margin.
        standing: what was in force then (`force.standing`); empty for a waiver, which does not grow old.
        waived: the reason for going on without a passed check; empty where there was one.
        detail: its numbers, for people.
    """

    passed: bool
    standing: str = ""
    waived: str = ""
    detail: str = ""


class Installed(_Record, frozen=True):
    """One revision under a label.

    Attributes:
        revision: `sha256:<64 hex>` of the adapter's bytes.
        share: of turns (shadow) or sessions (canary), in (0, 1]; 0 in every other state.
        card: None for the profile's own, where the label is one of the profile's.
        bytes: of the weights file.
        licence: as the adapter states it.
        run: id of the training run it came from; its data stand in the adapter's `run.json`.
        created: Unix time in seconds of its registration.
        probed: by replica, oldest first.
        withdrawn: why it was taken out of service without anybody's order; empty where it was not. It goes back into
            service only after it was registered again.
        note: for people.
    """

    revision: str
    state: State = "candidate"
    share: float = 0.0
    card: Card | None = None
    bytes: int = 0
    licence: str = ""
    run: str = ""
    created: float = 0.0
    probed: tuple[Probed, ...] = ()
    route_check: RouteCheck | None = None
    withdrawn: str = ""
    note: str = ""

    @property
    def folder(self) -> str:
        """Where its bytes lie among all adapters: a folder's name that depends on them alone."""
        return self.revision.removeprefix("sha256:")


class Entry(_Record, frozen=True):
    """A label of the registry.

    Attributes:
        profile: whether it is one of the profile's labels, for which the profile's own revision stands where `live` is
            empty. Another label is not routed to until something is live.
        live: the revision in force; empty before the first promotion.
        previous: what a rollback brings back: a revision, empty for the state before the first promotion, or None
            where there is nothing to roll back.
        disabled: the entry counts as if it were not there.
    """

    label: str
    revisions: tuple[Installed, ...]
    tenant: str = ""
    profile: bool = False
    live: str = ""
    previous: str | None = None
    disabled: bool = False

    @property
    def key(self) -> Key:
        """What names it."""
        return Key(self.label, self.tenant)

    @property
    def card(self) -> Card | None:
        """The card of the live revision, else of the newest; None for the profile's."""
        return (self.get(self.live) or self.revisions[-1]).card

    @property
    def trial(self) -> Installed | None:
        """The revision in shadow or canary; at most one, for the effects of two could not be told apart."""
        return next((item for item in self.revisions if item.state in TRIAL), None)

    def get(self, revision: str) -> Installed | None:
        """A revision by its whole name."""
        return next((item for item in self.revisions if item.revision == revision), None)

    def find(self, revision: str) -> Installed:
        """A revision by `sha256:` and at least 12 digits of its name, which no other revision of the label shares.

        Raises:
            NotFound: there is none.
        """
        usable = _PREFIX.fullmatch(revision) is not None
        found = next((item for item in self.revisions if usable and item.revision.startswith(revision)), None)
        if found is None:
            known = ", ".join(item.revision[: 7 + REVISION_DIGITS] for item in self.revisions)
            message = f"revision {shown(revision)!r} is not registered for {self.label}; give one of {known}"
            raise NotFound(message, param="revision", code="unknown_revision")
        return found

    def engine_name(self, installed: Installed) -> str:
        """The name an engine knows a revision by, which it never gets for other bytes."""
        return engine_name(self.label, installed.revision)


class Bound(_Record, frozen=True):
    """An engine name that was given to a revision since removed. Twelve digits can be met on purpose, and an engine
    that still holds the first one's cache would serve it for the second."""

    engine_name: str
    revision: str


class Desired(_Record, frozen=True):
    """What is to be served beside the profile.

    Attributes:
        contract: digest of the contract it was made for.
        entries: in order of registration.
        bound: engine names of removed revisions, oldest first.
    """

    contract: str
    entries: tuple[Entry, ...] = ()
    bound: tuple[Bound, ...] = ()

    def get(self, key: Key) -> Entry | None:
        """An entry."""
        return next((entry for entry in self.entries if entry.key == key), None)

    def find(self, key: Key) -> Entry:
        """An entry that must be there.

        Raises:
            NotFound: it is not.
        """
        if (entry := self.get(key)) is None:
            whose = f"of tenant {shown(key.tenant)!r}" if key.tenant else "of everybody's"
            message = f"label {shown(key.label)!r} is none {whose} registered labels; register it first"
            raise NotFound(message, param="label", code="unknown_label")
        return entry


def engine_name(label: str, revision: str) -> str:
    """`label@<12 hex>`."""
    return f"{label}@{revision.removeprefix('sha256:')[:REVISION_DIGITS]}"


def probe_of(replica: str, effect: Effect, passed: bool) -> Probed:
    """An effect as it is kept: JSON has no NaN."""
    return Probed(replica, passed, effect.mean if effect.finite else None)


def with_entry(desired: Desired, entry: Entry) -> Desired:
    """The document with an entry replaced; the same document where it is equal."""
    entries = tuple(entry if item.key == entry.key else item for item in desired.entries)
    return desired if entries == desired.entries else replace(desired, entries=entries)


def with_installed(entry: Entry, installed: Installed) -> Entry:
    """The entry with a revision replaced."""
    revisions = tuple(installed if item.revision == installed.revision else item for item in entry.revisions)
    return replace(entry, revisions=revisions)
