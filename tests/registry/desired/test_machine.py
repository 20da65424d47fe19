"""Every sequence of changes: what holds in all states, and which changes users can see."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from macaron.errors import BadRequest, NotFound
from macaron.registry.cards import Registry
from macaron.registry.check import Effect
from macaron.registry.desired import (
    Conflict,
    Desired,
    Key,
    Quota,
    Registration,
    at_revision,
    canary,
    decode,
    disable,
    drain,
    enable,
    encode,
    in_force,
    plan,
    probed,
    promote,
    register,
    remove,
    remove_label,
    resident,
    retire,
    retire_idle,
    rollback,
    select,
    shadow,
    waive_route_check,
    withdraw,
)
from tests.registry.desired.states import CARD, PROFILE, REPLICAS, candidate, empty, live, proved, revision

TENANTS = ("", "acme", "other")
LAUNCHED = frozenset({"L0", "L2"})
KEYS = st.builds(Key, st.sampled_from(["L2", "L4", "L5"]), st.sampled_from(TENANTS))
SEEDS = st.integers(min_value=0, max_value=3)
SHARES = st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.1])
QUOTA = Quota(labels=2, revisions=4)


def views(desired: Desired) -> dict[str, Registry]:
    """What is in force for every tenant."""
    return {tenant: in_force(PROFILE, desired, tenant) for tenant in TENANTS}


class Changes(RuleBasedStateMachine):
    """All changes in any order on one document, and an engine that follows it."""

    def __init__(self) -> None:
        super().__init__()
        self.desired = empty()
        self.listed: frozenset[str] = LAUNCHED
        self.loaded: dict[str, str] = {}
        self.uses: dict[str, float] = {}

    # --- changes that nobody sees ----------------------------------------------------------------------------------

    @initialize(lively=st.booleans())
    def begin(self, lively: bool) -> None:
        if lively:
            self.desired = candidate(live(live(empty(), Key("L4"), 0), Key("L4"), 1), Key("L4"), 2)
            self.desired = candidate(live(self.desired, Key("L2", "acme"), 0, None), Key("L2", "acme"), 1)

    @rule(key=KEYS, seed=SEEDS, named=st.booleans(), override=st.none() | st.booleans())
    def register(self, key: Key, seed: int, named: bool, override: bool | None) -> None:
        card = replace(CARD, name=f"{key.label} {seed}") if named or override is None else None
        if override is None:
            taken = PROFILE.get(key.label) is not None or self.desired.get(Key(key.label)) is not None
            override = taken and self.desired.get(key) is None
        wanted = Registration(key.label, revision(seed), key.tenant, card, override=override)
        self._unseen(lambda before: register(before, wanted, PROFILE, QUOTA))

    @rule(data=st.data())
    def prove(self, data: st.DataObject) -> None:
        key, seed = data.draw(self._registered())
        self._unseen(lambda before: proved(before, key, seed))

    @rule(data=st.data())
    def fail_a_probe(self, data: st.DataObject) -> None:
        key, seed = data.draw(self._registered())
        self._unseen(lambda before: probed(before, key, revision(seed), "one", Effect(0.0, 0.0, 6)))

    @rule(data=st.data(), reason=st.sampled_from(["", "measured elsewhere"]))
    def waive(self, data: st.DataObject, reason: str) -> None:
        key, seed = data.draw(self._registered())
        self._unseen(lambda before: waive_route_check(before, key, revision(seed), reason))

    @rule(data=st.data(), share=SHARES, prove=st.booleans())
    def shadow(self, data: st.DataObject, share: float, prove: bool) -> None:
        key, seed = data.draw(self._registered())
        if prove:
            self._unseen(lambda before: proved(before, key, seed))
        self._unseen(lambda before: shadow(before, key, revision(seed), share, REPLICAS))

    @rule(data=st.data(), share=SHARES, prove=st.booleans())
    def canary(self, data: st.DataObject, share: float, prove: bool) -> None:
        key, seed = data.draw(self._registered())
        if prove:
            self._unseen(lambda before: proved(before, key, seed))
        self._unseen(lambda before: canary(before, key, revision(seed), share, REPLICAS, PROFILE))

    @rule(data=st.data())
    def drain(self, data: st.DataObject) -> None:
        key, seed = data.draw(self._registered())
        self._unseen(lambda before: drain(before, key, revision(seed)))

    @rule(data=st.data())
    def retire(self, data: st.DataObject) -> None:
        key, seed = data.draw(self._registered())
        in_use = data.draw(self._some_names())
        self._unseen(lambda before: retire(before, key, revision(seed), in_use))

    @rule(data=st.data())
    def retire_idle(self, data: st.DataObject) -> None:
        in_use = data.draw(self._some_names())
        self._unseen(lambda before: retire_idle(before, in_use))

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        key, seed = data.draw(self._registered())
        in_use = data.draw(self._some_names())
        self._unseen(lambda before: remove(before, key, revision(seed), in_use))

    @rule(data=st.data())
    def remove_label(self, data: st.DataObject) -> None:
        key, _ = data.draw(self._registered())
        in_use = data.draw(self._some_names())
        self._unseen(lambda before: remove_label(before, key, in_use))

    # --- changes that users see ------------------------------------------------------------------------------------

    @rule(data=st.data(), prove=st.booleans())
    def promote(self, data: st.DataObject, prove: bool) -> None:
        key, seed = data.draw(self._registered())
        if prove:
            self._unseen(lambda before: proved(before, key, seed))
        before = self.desired
        already = (entry := before.get(key)) is not None and entry.live == revision(seed)
        self._seen_by(key, lambda before: promote(before, key, revision(seed), REPLICAS, PROFILE))
        if self.desired is before:
            return
        assert not already
        assert in_force(PROFILE, self.desired, key.tenant).by_revision(revision(seed)) is not None
        restored = rollback(self.desired, key)
        assert views(restored) == views(before)
        assert restored.find(key).live == before.find(key).live

    @rule(data=st.data())
    def rollback(self, data: st.DataObject) -> None:
        key, _ = data.draw(self._registered())
        entry = self.desired.get(key)
        self._seen_by(key, lambda before: rollback(before, key))
        if entry is not None and entry.previous is not None:
            assert self.desired.find(key).live == entry.previous

    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        key, seed = data.draw(self._registered())
        self._seen_by(key, lambda before: withdraw(before, key, revision(seed), "it broke"))
        if self.desired.get(key) is not None:
            found = views(self.desired)[key.tenant].get(key.label)
            assert found is None or found.revision != revision(seed) or key.tenant

    @rule(data=st.data())
    def disable(self, data: st.DataObject) -> None:
        key, _ = data.draw(self._registered())
        before = self.desired
        self._seen_by(key, lambda before: disable(before, key))
        if (entry := before.get(key)) is not None:
            assert entry.disabled or enable(self.desired, key, PROFILE) == before

    @rule(data=st.data())
    def enable(self, data: st.DataObject) -> None:
        key, _ = data.draw(self._registered())
        self._seen_by(key, lambda before: enable(before, key, PROFILE))

    # --- the engine ------------------------------------------------------------------------------------------------

    @rule(limit=st.none() | st.integers(min_value=0, max_value=6), data=st.data())
    def reconcile(self, limit: int | None, data: st.DataObject) -> None:
        in_use = data.draw(self._some_names())
        residents = resident(PROFILE, self.desired)
        made = plan(residents, self.listed, in_use=in_use, last_use=self.uses, limit=limit)
        load = [item.engine_name for item in made.load]
        assert len(set(load)) == len(load)
        assert not self.listed & set(load)
        assert not set(made.unload) & (in_use | LAUNCHED)
        for item in made.load:
            assert self.loaded.setdefault(item.engine_name, item.revision) == item.revision
        self.listed = (self.listed - set(made.unload)) | set(load)
        if limit is not None:
            assert not load or len(self.listed) <= limit
        then = plan(residents, self.listed, in_use=in_use, last_use=self.uses, limit=limit)
        assert (then.load, then.unload) == ((), ())
        if limit is None:
            assert {item.engine_name for item in residents} <= self.listed
            assert not then.waiting

    @rule(data=st.data(), when=st.floats(min_value=0, max_value=100))
    def use(self, data: st.DataObject, when: float) -> None:
        self.uses.update(dict.fromkeys(data.draw(self._some_names()), when))

    @rule()
    def restart_the_engine(self) -> None:
        self.listed = LAUNCHED

    # --- what always holds -----------------------------------------------------------------------------------------

    @invariant()
    def it_comes_back_from_the_store(self) -> None:
        assert decode(encode(self.desired)) == self.desired

    @invariant()
    def nobody_sees_what_is_anothers(self) -> None:
        for tenant, registry in views(self.desired).items():
            assert registry.labels[: len(PROFILE.labels)] == PROFILE.labels
            assert len(set(registry.labels)) == len(registry.labels)
            usable = {
                (entry.label, item.revision)
                for entry in self.desired.entries
                if entry.tenant in ("", tenant)
                for item in entry.revisions
            }
            for item in registry.specialists:
                assert item in PROFILE.specialists or (item.label, item.revision) in usable
                assert at_revision(PROFILE, self.desired, tenant, item.label, item.revision) is not None

    @invariant()
    def who_answers_is_held_by_engines(self) -> None:
        held = {item.engine_name for item in resident(PROFILE, self.desired)}
        for tenant, registry in views(self.desired).items():
            for label in registry.labels:
                found = select(PROFILE, self.desired, tenant, label, "session")
                assert found is not None
                assert found.engine_name is None or found.engine_name in held

    def _unseen(self, change: Callable[[Desired], Desired]) -> None:
        before = views(self.desired)
        self._try(change)
        assert views(self.desired) == before

    def _seen_by(self, key: Key, change: Callable[[Desired], Desired]) -> None:
        before = views(self.desired)
        self._try(change)
        for tenant, registry in views(self.desired).items():
            assert registry == before[tenant] or key.tenant in ("", tenant)

    def _try(self, change: Callable[[Desired], Desired]) -> None:
        try:
            self.desired = change(self.desired)
        except (Conflict, BadRequest, NotFound) as refusal:
            event(f"refused: {refusal.code}")

    def _registered(self) -> st.SearchStrategy[tuple[Key, int]]:
        """Keys and seeds of what is registered; any where nothing is."""
        seeds = {revision(seed): seed for seed in range(4)}
        known = [(entry.key, seeds[item.revision]) for entry in self.desired.entries for item in entry.revisions]
        return st.sampled_from(known) if known else st.tuples(KEYS, SEEDS)

    def _some_names(self) -> st.SearchStrategy[frozenset[str]]:
        names = {item.engine_name for item in resident(PROFILE, self.desired)} | self.listed
        return st.frozensets(st.sampled_from(sorted(names)), max_size=2)


Changes.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestChanges = Changes.TestCase
