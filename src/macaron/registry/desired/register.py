"""Registering a revision: under a label of its own, or under one that the service has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from macaron.errors import BadRequest, Conflict, Forbidden, NotFound
from macaron.hcp.checks import MAX_SPECIALISTS
from macaron.registry.cards import Registry
from macaron.registry.check.report import shown
from macaron.registry.desired.bounds import MAX_ENTRIES, MAX_REVISIONS, installed_faults, key_faults
from macaron.registry.desired.document import Card, Desired, Entry, Installed, Key, engine_name, with_entry
from macaron.registry.desired.invariants import names_of


class Registration(Struct, frozen=True):
    """What is to be registered, after its check.

    Attributes:
        revision, bytes, licence, run: as the check's report has them.
        card: None to keep the card of the label's live revision, or of the profile.
        override: whether it is meant for a label that the profile, or everybody's registry, has already.
        created: now, in Unix seconds.
    """

    label: str
    revision: str
    tenant: str = ""
    card: Card | None = None
    override: bool = False
    bytes: int = 0
    licence: str = ""
    run: str = ""
    created: float = 0.0
    note: str = ""

    @property
    def key(self) -> Key:
        """The entry it is for."""
        return Key(self.label, self.tenant)


class Quota(Struct, frozen=True):
    """How much may be registered.

    Attributes:
        labels: of one tenant, and in everybody's registry.
        all_labels: of all tenants together.
        revisions: of one label.
        bytes: of the revisions of one tenant that are not retired.
    """

    labels: int = 16
    all_labels: int = 256
    revisions: int = 16
    bytes: int = 17_179_869_184


def permit(by: str, key: Key) -> None:
    """Whether `by` may change an entry: a tenant its own, the operator (empty) every one.

    Raises:
        NotFound: it is another tenant's, of which nothing is told.
        Forbidden: it is everybody's.
    """
    if not by or key.tenant == by:
        return
    if key.tenant:
        message = f"label {shown(key.label)!r} is none of your registered labels; list them with `macaron adapter list`"
        raise NotFound(message, param="label", code="unknown_label")
    reason = f"label {shown(key.label)!r} is everybody's; only the operator may change it"
    raise Forbidden(f"{reason}. Register one for your own tenant.", param="label", code="not_yours")


def visible(desired: Desired, by: str) -> tuple[Entry, ...]:
    """The entries that `by` may see: a tenant its own and everybody's, the operator (empty) every one."""
    return tuple(entry for entry in desired.entries if not by or entry.tenant in ("", by))


def register(desired: Desired, wanted: Registration, registry: Registry, quota: Quota | None = None) -> Desired:
    """Add a revision as `candidate`. A retired one is begun anew.

    Args:
        registry: of the profile.

    Raises:
        BadRequest: a field is wrong.
        Conflict: the label, the revision or its engine name is taken, or a quota is used up.
    """
    entry = desired.get(wanted.key)
    installed = Installed(
        revision=wanted.revision, card=_card(wanted, entry, registry), bytes=wanted.bytes, licence=wanted.licence,
        run=wanted.run, created=wanted.created, note=wanted.note,
    )  # fmt: skip
    for fault in (*key_faults(*wanted.key), *installed_faults(installed)):
        raise BadRequest(str(fault), param=fault.field, code="bad_registration")
    _check_label(desired, wanted, entry, registry)
    _check_revision(desired, wanted, entry, registry)
    _check_quota(desired, wanted, entry, registry, quota or Quota())
    if entry is None:
        created = Entry(wanted.label, (installed,), wanted.tenant, profile=registry.get(wanted.label) is not None)
        return replace(desired, entries=(*desired.entries, created))
    others = tuple(item for item in entry.revisions if item.revision != wanted.revision)
    return with_entry(desired, replace(entry, revisions=(*others, installed)))


def _card(wanted: Registration, entry: Entry | None, registry: Registry) -> Card | None:
    if wanted.card is not None:
        card = wanted.card
        return replace(
            card,
            name=" ".join(card.name.split()),
            description=" ".join(card.description.split()),
            boundary=" ".join(card.boundary.split()),
            identity=card.identity.strip(),
        )
    if entry is not None:
        return entry.card
    if registry.get(wanted.label) is None:
        message = f"card is missing; the label {shown(wanted.label)!r} is new: give name, description and prompt"
        raise BadRequest(message, param="card", code="card_missing")
    return None


def _check_label(desired: Desired, wanted: Registration, entry: Entry | None, registry: Registry) -> None:
    if entry is not None:
        if entry.profile != (registry.get(wanted.label) is not None):
            reason = f"label {wanted.label} was registered under another contract"
            raise Conflict(f"{reason}; remove its entry first", param="label", code="label_taken")
        return
    owner = "the profile" if registry.get(wanted.label) else "everybody's registry"
    taken = registry.get(wanted.label) is not None or desired.get(Key(wanted.label)) is not None
    if taken and not wanted.override:
        remedy = "choose another, or say that this adapter is meant to override it"
        raise Conflict(f"label {wanted.label} is taken by {owner}; {remedy}", param="label", code="label_taken")
    if wanted.override and not taken:
        message = f"override is set, but nothing has the label {wanted.label} yet; leave it out"
        raise BadRequest(message, param="override", code="nothing_to_override")


def _check_revision(desired: Desired, wanted: Registration, entry: Entry | None, registry: Registry) -> None:
    found = entry.get(wanted.revision) if entry else None
    if found is not None and found.state != "retired":
        message = f"revision {wanted.revision} is registered for {wanted.label} already and is {found.state}"
        raise Conflict(f"{message}; go on with that one", param="revision", code="already_registered")
    own = registry.get(wanted.label)
    if own is not None and own.revision == wanted.revision:
        message = f"revision {wanted.revision} is the profile's own of {wanted.label}; there is nothing to register"
        raise Conflict(message, param="revision", code="already_registered")
    name = engine_name(wanted.label, wanted.revision)
    launched = any(item.adapter == name for item in registry.specialists)
    if launched or any(known == name and revision != wanted.revision for known, revision in names_of(desired)):
        message = f"the engine name {name} stands for other bytes and never changes its meaning"
        raise Conflict(f"{message}; choose another label", param="label", code="engine_name_taken")


def _check_quota(desired: Desired, wanted: Registration, entry: Entry | None, registry: Registry, quota: Quota) -> None:
    own = [item for item in desired.entries if item.tenant == wanted.tenant]
    held = sum(item.bytes for each in own for item in each.revisions if item.state != "retired")
    used: list[tuple[str, int, int, str]] = [("bytes", held + wanted.bytes, quota.bytes, "retire or remove revisions")]
    if entry is None:
        used += _label_use(desired, wanted, registry, quota, len(own) + 1)
    elif entry.get(wanted.revision) is None:
        most = min(quota.revisions, MAX_REVISIONS)
        used.append(("revisions", len(entry.revisions) + 1, most, "remove retired ones"))
    for field, value, most, remedy in used:
        if value > most:
            reason = f"{field} of {wanted.tenant or 'everybody'} would be {value}, the limit is {most}"
            raise Conflict(f"{reason}; {remedy}", param=field, code="quota")


def _label_use(
    desired: Desired, wanted: Registration, registry: Registry, quota: Quota, own: int
) -> Iterator[tuple[str, int, int, str]]:
    remedy = "remove labels that are not used"
    yield "labels", own, quota.labels, remedy
    yield "all_labels", len(desired.entries) + 1, min(quota.all_labels, MAX_ENTRIES), remedy
    if registry.get(wanted.label) is None:
        new = Counter(item.tenant for item in desired.entries if not item.profile)
        new[wanted.tenant] += 1
        private = max((count for tenant, count in new.items() if tenant), default=0)
        yield "specialists", len(registry.specialists) + new[""] + private, MAX_SPECIALISTS, remedy
