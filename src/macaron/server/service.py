"""One worker's parts, put together: engine, store and heart from a contract."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from macaron.engine.base import Engine, Health
from macaron.errors import StoreError
from macaron.experience import Recorder
from macaron.hcp import Loaded
from macaron.ids import Ids
from macaron.mol.activity import Activity
from macaron.mol.background import Background
from macaron.mol.carriers import Carriers
from macaron.mol.doubts import Doubts
from macaron.mol.experience import Experience
from macaron.mol.notes import Notes
from macaron.mol.residency import Residency
from macaron.mol.route import RouteTemplate
from macaron.mol.routing import Memo, Router
from macaron.mol.seal import KEY_BYTES, Sealer
from macaron.mol.shadow import Shadows
from macaron.mol.summaries import Summaries
from macaron.mol.trials import Trials
from macaron.mol.turn import Force, Turns
from macaron.registry.cards import Registry
from macaron.registry.desired import Desired
from macaron.server.adapters.visible import View, tenants, view_for
from macaron.server.admission import Admission
from macaron.server.keys import Keys
from macaron.server.metrics import Metrics
from macaron.server.responses.leases import Leases
from macaron.server.tracing import Tracing
from macaron.store.base import Store

HEALTH_SECONDS = 1.0
HOUSEKEEPING_SECONDS = 1.0
EXPIRE_EVERY = 600


class Readiness(NamedTuple):
    """Whether requests can be served, and what an operator should know."""

    ready: bool
    problems: list[str]
    health: Health


class Service:
    """What the HTTP endpoints work with."""

    def __init__(
        self,
        loaded: Loaded,
        registry: Registry,
        generation: int,
        engine: Engine,
        store: Store,
        keys: Keys,
        tracing: Tracing | None = None,
        recorder: Recorder | None = None,
        state_keys: Sequence[bytes] = (),
    ) -> None:
        """
        Args:
            state_keys: seal what stateless clients keep for us; without any, nothing outlives this process.
        """
        contract = loaded.contract
        self.loaded = loaded
        self.contract = contract
        self.profile = registry
        self.registry = registry
        self.generation = generation
        self.desired = Desired(loaded.digest)
        self.proved: frozenset[str] = frozenset()
        self.engine = engine
        self.store = store
        self.keys = keys
        self.tracing = tracing
        self.metrics = Metrics(tracing)
        # A tenant that is alone leaves nobody anything by keeping to a share.
        alone = replace(contract.service, tenant_share=1.0)
        self.admission = Admission(contract.service if keys.tenants > 1 else alone)
        self.background = Background()
        self.ids = Ids()
        self.started = int(time.time())
        self.residency = Residency()
        self._activity = Activity()
        self.trials = Trials()
        self.doubts = Doubts(engine, self.residency, self.background)
        self._shadows = Shadows(engine, self.trials, self.residency, self.background, self.doubts)
        self._recorder = recorder
        self._experience = self._recording(recorder)
        self._memos: dict[str, tuple[str, Memo]] = {}
        instruction = loaded.text("mol.summary_prompt_path", "").strip()
        self._summaries = Summaries(engine, store, contract, instruction, self.background, self._activity, self.metrics)
        self._notes = Notes(store, self._summaries, contract, self.metrics)
        sealer = Sealer(state_keys or (os.urandom(KEY_BYTES),), contract.store.max_age)
        self._carriers = Carriers(sealer, self._notes, self.metrics)
        self.turns = self._turns(View(registry, {}, {}), "")
        self.leases = Leases(store)
        self._own: dict[str, Turns] = {}
        self._superseded: list[Turns] = []
        self._checked = float("-inf")
        self._readiness = Readiness(False, ["not checked yet"], Health(False))
        self._checking = asyncio.Lock()

    @property
    def served(self) -> str:
        """The name of the model that is served."""
        return self.contract.mol.served_model

    def serves(self, model: str) -> bool:
        """Whether a client may ask for this model."""
        return model == self.served or model in self.contract.mol.aliases

    def turns_of(self, tenant: str) -> Turns:
        """What runs a tenant's turns."""
        return self._own.get(tenant, self.turns)

    def apply(
        self, generation: int, desired: Desired, proved: frozenset[str], parked: frozenset[str] = frozenset()
    ) -> None:
        """Put a document in force for turns that begin from now on; those that run go on as they began.

        Args:
            proved: engine names of the registered adapters that can be used.
            parked: those that can be once they are back in the engine.
        """
        self.residency.leave(parked)
        self._superseded = [turns for turns in (*self._superseded, self.turns, *self._own.values()) if turns.deciding]
        self.generation, self.desired, self.proved = generation, desired, proved
        usable = proved | parked
        view = view_for(self.profile, desired, usable, "")
        self.registry = view.registry
        own = {tenant: view_for(self.profile, desired, usable, tenant) for tenant in tenants(desired)}
        tried = (trial.specialist.engine_name for each in (view, *own.values()) for trial in each.trials.values())
        self.trials.keep(frozenset(name for name in tried if name is not None))
        self.doubts.keep(
            frozenset(
                entry.engine_name(item) for entry in desired.entries for item in entry.revisions if not item.withdrawn
            )
        )
        self.turns = self._turns(view, "")
        self._own = {tenant: self._turns(each, tenant) for tenant, each in own.items()}

    def in_use(self) -> frozenset[str]:
        """Engine names of the adapters that turns of this worker need, or may still choose though they are not in force
        any more, and of those that route."""
        self._superseded = [turns for turns in self._superseded if turns.deciding]
        routing = (turns.entry for turns in (self.turns, *self._own.values()))
        return self.residency.in_use().union(*routing, *(turns.adapters for turns in self._superseded))

    async def readiness(self) -> Readiness:
        """Whether engine, adapters and store are there; asked at most once a second."""
        async with self._checking:
            if time.monotonic() - self._checked > HEALTH_SECONDS:
                self._readiness = await self._check()
                self._checked = time.monotonic()
        return self._readiness

    async def keep_house(self) -> None:
        """What is due from time to time, until it is cancelled."""
        for second in itertools.count(1):
            await asyncio.sleep(HOUSEKEEPING_SECONDS)
            self.metrics.load(self.admission.active, self.admission.queued)
            if self._recorder is not None:
                self.metrics.recorded(self._recorder.counts)
            await asyncio.to_thread(self.metrics.tally.save)
            await self.leases.renew()
            self._sweep()
            if second % EXPIRE_EVERY == 0:
                with suppress(StoreError):
                    await self.store.expire()

    def _sweep(self) -> None:
        self._notes.sweep()
        self._summaries.sweep()
        for turns in (*self._superseded, self.turns, *self._own.values()):
            turns.sweep()

    async def close(self, timeout: float) -> None:
        """Finish what runs in the background, then release engine and store."""
        await self.background.drain(timeout)
        if self._recorder is not None:
            await self._recorder.close()
            self.metrics.recorded(self._recorder.counts)
        self.metrics.load(0, 0)
        await asyncio.to_thread(self.metrics.tally.save)
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.close)
        await self.engine.close()
        await self.store.close()

    def _recording(self, recorder: Recorder | None) -> Experience | None:
        if recorder is None:
            return None
        tokens, merge = self.contract.experience.tokens, self.contract.mol.merge_system
        return Experience(recorder, self.engine, self.background, tokens=tokens, merge_system=merge)

    async def _check(self) -> Readiness:
        problems = []
        health = await self.engine.health()
        if not health.ok:
            problems.append(f"engine: {health.detail}")
        elif self.engine.capabilities.adapters:
            names = {item.engine_name for item in self.profile.specialists if item.engine_name}
            problems += [f"engine: adapter {name} is not loaded" for name in sorted(names - set(health.adapters))]
        try:
            await self.store.ping()
        except StoreError as error:
            problems.append(f"store: {error.message}")
        if self.admission.closing:
            problems.append("service: it is stopping")
        return Readiness(not problems, problems, health)

    def _memo(self, tenant: str, registry: Registry) -> Memo:
        """The labels that a tenant's questions got, as long as nothing changes that decides them."""
        entry = registry.entry_specialist
        decides = "\0".join((entry.revision, entry.identity, *(item.card for item in registry.specialists)))
        known = self._memos.get(tenant)
        if known is None or known[0] != decides:
            known = self._memos[tenant] = (decides, OrderedDict())
        return known[1]

    def route_template(self, registry: Registry) -> RouteTemplate:
        """How the profile asks for one of a registry's labels."""
        mol = self.contract.mol
        return RouteTemplate(
            instruction=registry.fill(self.loaded.text("mol.route.prompt_path")),
            shape=mol.route.shape,
            prefill=mol.route.prefill,
            input_tokens=mol.route_input_tokens,
        )

    def _turns(self, view: View, tenant: str) -> Turns:
        contract, registry = self.contract, view.registry
        template = self.route_template(registry)
        return Turns(
            force=Force(contract, self.loaded.digest, registry, self.generation, view.kept, view.trials),
            engine=self.engine,
            store=self.store,
            router=Router(
                self.engine, registry, contract, template, self.metrics, self._memo(tenant, registry), self.doubts
            ),
            summaries=self._summaries,
            notes=self._notes,
            background=self.background,
            activity=self._activity,
            observer=self.metrics,
            ids=self.ids,
            residency=self.residency,
            shadows=self._shadows,
            experience=self._experience,
            doubts=self.doubts,
            carriers=self._carriers,
        )
