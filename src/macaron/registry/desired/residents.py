"""What engines must hold, and the difference to what they list. Engines answer 200 to loads that did nothing and keep
stale caches after a reload under the same name, so names are compared and none is ever loaded twice."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from macaron.registry.cards import Registry
from macaron.registry.desired.document import ENGINE_NAME, Desired

Duty = Literal["profile", "live", "canary", "shadow", "candidate", "draining"]

_FIRST: Final[tuple[Duty, ...]] = ("profile", "live", "canary", "shadow", "candidate", "draining")


class Resident(Struct, frozen=True):
    """An adapter that engines must hold.

    Attributes:
        engine_name: bound to the revision for ever.
        revision: as in the registry.
        folder: its folder among all adapters; empty for one that the engine was launched with.
        duty: the state it is held for, the foremost where several entries share it; `profile` for one that the engine
            was launched with, which is neither loaded nor unloaded while the engine runs.
    """

    engine_name: str
    revision: str
    folder: str
    duty: Duty


class Plan(Struct, frozen=True):
    """What a reconciler does next on one replica: first unload, then load and probe.

    Attributes:
        load: in order of need.
        unload: least recently used first.
        waiting: must be held, but there is no room; loaded when a turn asks for them.
        missing: launched with the engine, which does not list them; only another launch brings them back.
        unknown: listed, but nobody's here; left alone.
    """

    load: tuple[Resident, ...] = ()
    unload: tuple[str, ...] = ()
    waiting: tuple[Resident, ...] = ()
    missing: tuple[Resident, ...] = ()
    unknown: tuple[str, ...] = ()


def resident(registry: Registry, desired: Desired) -> tuple[Resident, ...]:
    """Everything that engines must hold now, of all tenants: the profile's, then in the document's order.

    A candidate is among them, for it cannot be probed otherwise. A revision that several tenants have is there once.
    """
    found: dict[str, Resident] = {}
    for item in _residents(registry, desired):
        known = found.get(item.engine_name)
        if known is None or _FIRST.index(item.duty) < _FIRST.index(known.duty):
            found[item.engine_name] = item
    return tuple(found.values())


def plan(
    residents: Collection[Resident],
    listed: Collection[str],
    *,
    in_use: Collection[str] = (),
    last_use: Mapping[str, float] | None = None,
    limit: int | None = None,
) -> Plan:
    """The difference between what an engine must hold and what it lists. Carried out, the next one is empty.

    Args:
        listed: names the engine lists; those of the form `label@<12 hex>` are taken for ours.
        in_use: names that turns need now; never unloaded, and loaded first.
        last_use: Unix seconds by name; whoever wants one loaded gives it the present time. A name without one comes
            after all that have one, those in service first.
        limit: adapters the engine holds at most, with those it was launched with; None for no limit.
    """
    held = frozenset(listed)
    wanted = {item.engine_name: item for item in residents if item.duty != "profile"}
    launched = {item.engine_name: item for item in residents if item.duty == "profile"}
    ours = frozenset(name for name in held - launched.keys() if name in wanted or ENGINE_NAME.fullmatch(name))
    fixed = held - (ours - frozenset(in_use))
    room = len(wanted) if limit is None else max(0, limit - len(fixed))
    need = _Need(frozenset(in_use), last_use or {})
    open_to = sorted((item for name, item in wanted.items() if name not in fixed), key=need.rank)
    taken = open_to[:room]
    kept = fixed | {item.engine_name for item in taken}
    return Plan(
        load=tuple(item for item in taken if item.engine_name not in held),
        unload=tuple(sorted(ours - kept, key=need.age)),
        waiting=tuple(open_to[room:]),
        missing=tuple(item for name, item in launched.items() if name not in held),
        unknown=tuple(sorted(held - ours - launched.keys())),
    )


class _Need(Struct, frozen=True):
    in_use: frozenset[str]
    last_use: Mapping[str, float]

    def rank(self, item: Resident) -> tuple[bool, float, int]:
        """Sorts what is needed most first."""
        last = self.last_use.get(item.engine_name, float("-inf"))
        return (item.engine_name not in self.in_use, -last, _FIRST.index(item.duty))

    def age(self, name: str) -> tuple[float, str]:
        """Sorts the least recently used first."""
        return (self.last_use.get(name, float("-inf")), name)


def _residents(registry: Registry, desired: Desired) -> Iterator[Resident]:
    for item in registry.specialists:
        if item.engine_name is not None:
            yield Resident(item.engine_name, item.revision, "", "profile")
    for entry in desired.entries:
        for each in entry.revisions:
            if each.state != "retired" and not entry.disabled:
                yield Resident(entry.engine_name(each), each.revision, each.folder, each.state)
