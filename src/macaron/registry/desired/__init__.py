"""The registry as desired state: what is kept in the store, how it may change, and what follows from it. Pure."""

from __future__ import annotations

from macaron.errors import Conflict
from macaron.registry.desired.change import carry, disable, enable, newest, promote, rollback
from macaron.registry.desired.choice import chosen, shadowed
from macaron.registry.desired.codec import MAX_DOCUMENT, decode, encode
from macaron.registry.desired.document import (
    REVISION_DIGITS,
    Bound,
    Card,
    Desired,
    Entry,
    Installed,
    Key,
    Probed,
    RouteCheck,
    State,
    engine_name,
)
from macaron.registry.desired.force import at_revision, entries_for, in_force, select, select_shadow, standing, supposed
from macaron.registry.desired.invariants import Problem, problems
from macaron.registry.desired.leave import drain, remove, remove_label, retire, retire_idle
from macaron.registry.desired.register import Quota, Registration, permit, register, visible
from macaron.registry.desired.residents import Plan, Resident, plan, resident
from macaron.registry.desired.trial import canary, probed, route_checked, shadow, waive_route_check
from macaron.registry.desired.withdraw import withdraw

__all__ = [
    "MAX_DOCUMENT",
    "REVISION_DIGITS",
    "Bound",
    "Card",
    "Conflict",
    "Desired",
    "Entry",
    "Installed",
    "Key",
    "Plan",
    "Probed",
    "Problem",
    "Quota",
    "Registration",
    "Resident",
    "RouteCheck",
    "State",
    "at_revision",
    "canary",
    "carry",
    "chosen",
    "decode",
    "disable",
    "drain",
    "enable",
    "encode",
    "engine_name",
    "entries_for",
    "in_force",
    "newest",
    "permit",
    "plan",
    "probed",
    "problems",
    "promote",
    "register",
    "remove",
    "remove_label",
    "resident",
    "retire",
    "retire_idle",
    "rollback",
    "route_checked",
    "select",
    "select_shadow",
    "shadow",
    "shadowed",
    "standing",
    "supposed",
    "visible",
    "waive_route_check",
    "withdraw",
]
