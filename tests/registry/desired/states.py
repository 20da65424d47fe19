"""A profile, and documents in the states that the tests begin with."""

from __future__ import annotations

import hashlib

from macaron.registry.cards import Registry, Specialist
from macaron.registry.check import Effect
from macaron.registry.desired import (
    Card,
    Desired,
    Key,
    Registration,
    RouteCheck,
    probed,
    promote,
    register,
    route_checked,
    standing,
)

CONTRACT = "hcp1:" + "0" * 64
REPLICAS = ("one", "two")
GOOD = Effect(0.4, 0.6, 6)
CARD = Card("Law", "Contracts and statutes.", "You know the law.", "tax")
L4, L2 = Key("L4"), Key("L2")


def own(label: str, engine_name: str | None) -> Specialist:
    """A specialist of the profile."""
    return Specialist(
        label=label, name=label, description=f"Does {label}.", boundary="", identity=f"You are {label}.",
        revision=f"unverified:{label}" if engine_name else f"prompt:{label}", engine_name=engine_name, model="",
        state="unverified" if engine_name else "prompt",
    )  # fmt: skip


PROFILE = Registry((own("L0", "L0"), own("L1", None), own("L2", "L2")), entry="L0", default="L2")


def revision(seed: int) -> str:
    """A revision of its own for every number."""
    return "sha256:" + hashlib.sha256(str(seed).encode()).hexdigest()


def empty() -> Desired:
    """Nothing registered."""
    return Desired(CONTRACT)


def registered(desired: Desired, key: Key, seed: int, card: Card | None = CARD) -> Desired:
    """With a candidate more."""
    override = desired.get(key) is None and (PROFILE.get(key.label) or desired.get(Key(key.label))) is not None
    wanted = Registration(key.label, revision(seed), key.tenant, card, override=override, created=1.0)
    return register(desired, wanted, PROFILE)


def proved(desired: Desired, key: Key, seed: int) -> Desired:
    """With passed probes of all replicas and a passed route check of a revision."""
    for replica in REPLICAS:
        desired = probed(desired, key, revision(seed), replica, GOOD)
    check = RouteCheck(True, standing(PROFILE, desired, key.tenant))
    return route_checked(desired, key, revision(seed), check)


def candidate(desired: Desired, key: Key, seed: int, card: Card | None = CARD) -> Desired:
    """With a proved candidate more."""
    return proved(registered(desired, key, seed, card), key, seed)


def live(desired: Desired, key: Key, seed: int, card: Card | None = CARD) -> Desired:
    """With a live revision more."""
    return promote(candidate(desired, key, seed, card), key, revision(seed), REPLICAS, PROFILE)
