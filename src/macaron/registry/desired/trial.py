"""What comes between registration and promotion: probes, route check, shadow and canary."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from macaron.errors import BadRequest, Conflict
from macaron.registry.cards import Registry
from macaron.registry.check import Effect, effect_finding
from macaron.registry.check.report import shown
from macaron.registry.desired.bounds import MAX_NOTE, MAX_REPLICAS, Fault, installed_faults, probe_faults
from macaron.registry.desired.document import (
    Desired,
    Entry,
    Installed,
    Key,
    RouteCheck,
    probe_of,
    with_entry,
    with_installed,
)
from macaron.registry.desired.force import standing


def probed(desired: Desired, key: Key, revision: str, replica: str, effect: Effect) -> Desired:
    """Record what a replica's probe found; the newest of a replica counts. A revision in service stays there: where it
    may be used now is what the reconciler sees, not what is desired.

    Raises:
        NotFound: entry or revision is not there.
        BadRequest: the replica's name or the effect is unusable.
        Conflict: the revision is retired.
    """
    entry = desired.find(key)
    item = _not_retired(entry.find(revision))
    probe = probe_of(replica, effect, effect_finding(effect).severity != "error")
    _refuse(probe_faults(probe))
    if probe in item.probed:
        return desired
    others = [known for known in item.probed if known.replica != replica]
    kept = (*others[-(MAX_REPLICAS - 1) :], probe)
    return with_entry(desired, with_installed(entry, replace(item, probed=kept)))


def route_checked(desired: Desired, key: Key, revision: str, check: RouteCheck) -> Desired:
    """Record a route check. `check.standing` is `standing` of what was in force when it was made.

    Raises:
        NotFound: entry or revision is not there.
        BadRequest: it says nothing of what was in force, or is a waiver.
        Conflict: the revision is retired.
    """
    if not check.standing or check.waived:
        message = f"standing is {shown(check.standing)!r}; a route check names what was in force when it was made"
        raise BadRequest(message, param="route_check.standing", code="bad_route_check")
    return _with_check(desired, key, revision, check)


def waive_route_check(desired: Desired, key: Key, revision: str, reason: str) -> Desired:
    """Let a revision go on without a passed route check, for a reason that stays in the record.

    Raises:
        NotFound: entry or revision is not there.
        BadRequest: there is no reason.
        Conflict: the revision is retired.
    """
    if not reason.strip():
        message = f"reason is {shown(reason)!r}; say in 1 to {MAX_NOTE} characters why the route check is waived"
        raise BadRequest(message, param="reason", code="reason_missing")
    return _with_check(desired, key, revision, RouteCheck(False, waived=reason.strip()))


def shadow(desired: Desired, key: Key, revision: str, share: float, replicas: Collection[str]) -> Desired:
    """Let a revision answer a share of the label's turns beside the live one, never shown.

    Args:
        replicas: of which every one must have passed the probe.

    Raises:
        NotFound: entry or revision is not there.
        BadRequest: the share is not in (0, 1].
        Conflict: the revision cannot go on trial now.
    """
    entry, item = _on_trial(desired, key, revision, share)
    require_probes(item, replicas)
    return with_entry(desired, with_installed(entry, replace(item, state="shadow", share=share)))


def canary(
    desired: Desired, key: Key, revision: str, share: float, replicas: Collection[str], registry: Registry
) -> Desired:
    """Let a revision answer the label's turns in a share of sessions. Its answers are seen, so it needs all that a
    promotion needs.

    Raises:
        NotFound: entry or revision is not there.
        BadRequest: the share is not in (0, 1].
        Conflict: the revision cannot go on trial now, or a check is missing.
    """
    entry, item = _on_trial(desired, key, revision, share)
    require_probes(item, replicas)
    require_route_check(desired, entry, item, registry)
    return with_entry(desired, with_installed(entry, replace(item, state="canary", share=share)))


def require_probes(item: Installed, replicas: Collection[str]) -> None:
    """Raise `Conflict` unless every replica has a passed probe of a revision, and it was not taken out since."""
    if item.withdrawn:
        reason = f"revision {item.revision} was taken out of service: {item.withdrawn}"
        raise Conflict(f"{reason}; drain it and register it again", param="revision", code="withdrawn")
    passed = {probe.replica for probe in item.probed if probe.passed}
    lacking = sorted(set(replicas) - passed)
    if lacking or not replicas:
        named = ", ".join(shown(name) for name in lacking[:5]) or "any replica: none is known"
        reason = f"revision {item.revision} has no passed probe on {named}"
        remedy = "wait until the engines have loaded it, and see `macaron adapter show` for what their probes found"
        raise Conflict(f"{reason}; {remedy}", param="probed", code="not_probed")


def require_route_check(desired: Desired, entry: Entry, item: Installed, registry: Registry) -> None:
    """Raise `Conflict` unless a revision has passed a route check against what is in force, or has it waived."""
    check = item.route_check
    if check is not None and check.waived:
        return
    again = "run `macaron adapter route-check`, or waive it with a reason"
    if check is None:
        message = f"revision {item.revision} has no route check; {again}"
        raise Conflict(message, param="route_check", code="route_check_missing")
    if not check.passed:
        message = f"the route check of revision {item.revision} failed: {check.detail or 'no details'}; "
        remedy = "make its card narrower, retrain the router, or waive the check with a reason"
        raise Conflict(message + remedy, param="route_check", code="route_check_failed")
    if check.standing != (now := standing(registry, desired, entry.tenant)):
        message = f"the route check of revision {item.revision} was made against {check.standing}, in force is {now}"
        raise Conflict(f"{message}; {again}", param="route_check", code="route_check_stale")


def require_enabled(entry: Entry) -> None:
    """Raise `Conflict` where an entry is disabled."""
    if entry.disabled:
        message = f"label {entry.label} is disabled; enable it first"
        raise Conflict(message, param="label", code="disabled")


def _on_trial(desired: Desired, key: Key, revision: str, share: float) -> tuple[Entry, Installed]:
    entry = desired.find(key)
    item = _not_retired(entry.find(revision))
    if not 0 < share <= 1:
        raise BadRequest(f"share is {share}; it must be above 0 and at most 1", param="share", code="bad_share")
    require_enabled(entry)
    if item.state == "live":
        message = f"revision {item.revision} is live; put another one on trial beside it"
        raise Conflict(message, param="revision", code="wrong_state")
    if not entry.live and not entry.profile:
        message = f"nothing is live for {entry.label}, so there is nothing to compare with"
        raise Conflict(f"{message}; promote a first revision after its route check", param="live", code="nothing_live")
    if entry.trial is not None and entry.trial.revision != item.revision:
        message = f"revision {entry.trial.revision} is in {entry.trial.state}; drain or promote it first"
        raise Conflict(message, param="revision", code="trial_running")
    return entry, item


def _with_check(desired: Desired, key: Key, revision: str, check: RouteCheck) -> Desired:
    entry = desired.find(key)
    item = replace(_not_retired(entry.find(revision)), route_check=check)
    _refuse(installed_faults(item))
    return with_entry(desired, with_installed(entry, item))


def _not_retired(item: Installed) -> Installed:
    if item.state == "retired":
        message = f"revision {item.revision} is retired; register it again"
        raise Conflict(message, param="revision", code="wrong_state")
    return item


def _refuse(faults: Iterable[Fault]) -> None:
    for fault in faults:
        raise BadRequest(str(fault), param=fault.field, code="bad_record")


def ended(entry: Entry) -> Entry:
    """The entry without a trial: turns begun on the revision end on it."""
    trial = entry.trial
    return entry if trial is None else with_installed(entry, replace(trial, state="draining", share=0.0))
