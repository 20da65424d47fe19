"""One worker's parts, put together: engine, store and heart from a contract."""

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from macaron.engine.base import Engine, Health
from macaron.errors import MacaronError, StoreError
from macaron.hcp import Loaded
from macaron.ids import Ids
from macaron.mol.activity import Activity
from macaron.mol.background import Background
from macaron.mol.notes import Notes
from macaron.mol.route import RouteTemplate
from macaron.mol.routing import Router
from macaron.mol.summaries import Summaries
from macaron.mol.turn import Force, Turns
from macaron.registry.cards import Registry
from macaron.server.admission import Admission
from macaron.server.keys import Keys
from macaron.server.metrics import Metrics
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
    ) -> None:
        contract = loaded.contract
        self.loaded = loaded
        self.contract = contract
        self.registry = registry
        self.generation = generation
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
        self.turns = self._turns()
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
            await asyncio.to_thread(self.metrics.tally.save)
            if second % EXPIRE_EVERY == 0:
                with suppress(StoreError):
                    await self.store.expire()

    async def close(self, timeout: float) -> None:
        """Finish what runs in the background, then release engine and store."""
        await self.background.drain(timeout)
        self.metrics.load(0, 0)
        await asyncio.to_thread(self.metrics.tally.save)
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.close)
        await self.engine.close()
        await self.store.close()

    async def _check(self) -> Readiness:
        problems = []
        health = await self.engine.health()
        if not health.ok:
            problems.append(f"engine: {health.detail}")
        elif self.engine.capabilities.adapters:
            names = {item.engine_name for item in self.registry.specialists if item.engine_name}
            problems += [f"engine: adapter {name} is not loaded" for name in sorted(names - set(health.adapters))]
        try:
            await self.store.ping()
        except StoreError as error:
            problems.append(f"store: {error.message}")
        if self.admission.closing:
            problems.append("service: it is stopping")
        return Readiness(not problems, problems, health)

    def _turns(self) -> Turns:
        contract, activity = self.contract, Activity()
        route = contract.mol.route
        template = RouteTemplate(
            instruction=self.registry.fill(self.loaded.text("mol.route.prompt_path")),
            shape=route.shape,
            prefill=route.prefill,
            input_tokens=contract.mol.route_input_tokens,
        )
        instruction = self.loaded.text("mol.summary_prompt_path", "").strip()
        summaries = Summaries(self.engine, self.store, contract, instruction, self.background, activity, self.metrics)
        return Turns(
            force=Force(contract, self.loaded.digest, self.registry, self.generation),
            engine=self.engine,
            store=self.store,
            router=Router(self.engine, self.registry, contract, template, self.metrics),
            summaries=summaries,
            notes=Notes(self.store, summaries, contract, self.metrics),
            background=self.background,
            activity=activity,
            observer=self.metrics,
            ids=self.ids,
        )


async def agree_on_config(store: Store, document: bytes) -> int:
    """The generation under which this contract is in force; the first worker that finds another one replaces it.

    Raises:
        MacaronError: another service keeps replacing the configuration.
    """
    for _ in range(8):
        config = await store.config()
        if config.document == document:
            return config.generation
        config = await store.compare_and_set(config.generation, document)
        if config.document == document:
            return config.generation
    raise MacaronError("The store's configuration keeps changing; is another service using it?", code="config_conflict")
