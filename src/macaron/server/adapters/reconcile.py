"""Makes an engine hold what the registry's document asks for: load, prove by a probe, unload; again after a restart of
the engine, which forgets. What fails is tried again later and shown.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from macaron.errors import MacaronError
from macaron.registry.cards import Registry
from macaron.registry.check import Effect, Probe, effect_finding
from macaron.registry.desired import Desired, Resident, plan, probed, resident, retire_idle
from macaron.server.adapters.document import Document, InForce
from macaron.server.adapters.peers import Findings, Standing, Together
from macaron.server.adapters.sweep import Sweeper

log = logging.getLogger("macaron.adapters")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between a failure and the next attempt, doubled each time."""

NO_ROOM = "the engine has no room for it; it is loaded when a turn needs it"


class Changed(Struct, frozen=True):
    """What a change of an engine came to: reasons of failed loads by engine name, and how long hops had to wait."""

    failed: Mapping[str, str] = {}
    pause: float | None = None


class Plug(Protocol):
    """How adapters get into one engine and out of it."""

    @property
    def replica(self) -> str:
        """Names the engine."""
        ...

    async def listed(self) -> frozenset[str]:
        """Names of all adapters that the engine has.

        Raises:
            MacaronError: it cannot be asked.
        """
        ...

    async def change(self, load: Sequence[Resident], unload: Sequence[str]) -> Changed:
        """Unload, then load. What is asked for may be left for later.

        Raises:
            MacaronError: the engine failed; ask what it has before anything else.
        """
        ...


class Reconciler:
    """For one engine. A round at a time."""

    def __init__(
        self,
        plug: Plug,
        probe: Probe,
        document: Document,
        profile: Registry,
        sweeper: Sweeper,
        limit: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._plug = plug
        self._probe = probe
        self._document = document
        self._profile = profile
        self._sweeper = sweeper
        self._limit = limit
        self._clock = clock
        self._refused: set[str] = set()
        self._fresh: set[str] = set()
        self._leaving: frozenset[str] = frozenset()
        self.findings = Findings()
        self.tell: Callable[[], None] = lambda: None

    def adopt(self, findings: Findings) -> None:
        """Go on where another worker ended; what it was about to bring back may be loaded and not proved."""
        self.findings = findings
        self._fresh = set(findings.parked)

    async def round(self, config: InForce, together: Together) -> None:
        """Look, and do what is to be done now. `findings` says what came of it; `tell` is called as it changes.

        Raises:
            StoreError: the document cannot be changed.
        """
        wanted = {item.engine_name: item for item in resident(self._profile, config.desired) if item.duty != "profile"}
        if not config.desired.entries and not config.desired.bound:
            self._found(settled=True)
            await self._sweeper.sweep(config.desired, ())
            return
        try:
            listed = await self._settle(config, together, wanted)
            for name in wanted:
                unproved = name in listed and name not in self.findings.proved | self._leaving
                if unproved and self._due(name):
                    await self._prove(wanted[name], config.desired)
        except MacaronError as error:
            self._found(fault=error.message)
            return
        self._found(fault="", settled=True)
        await self._sweeper.sweep(config.desired, listed)
        if together.generation >= config.generation and retire_idle(config.desired, together.in_use) != config.desired:
            await self._document.change(lambda desired: retire_idle(desired, together.in_use))

    async def _settle(self, config: InForce, together: Together, wanted: Mapping[str, Resident]) -> frozenset[str]:
        """Load and unload; gives what the engine has afterwards."""
        listed = await self._plug.listed()
        self._lost(listed, wanted)
        due = plan(
            resident(self._profile, config.desired),
            listed,
            in_use=together.in_use | together.demanded,
            last_use={**_created(config.desired), **together.last_use},
            limit=self._limit,
        )
        unload = [name for name in due.unload if self._may_leave(name, wanted, config, together)]
        self._leaving = frozenset((*due.unload, *(item.engine_name for item in due.waiting))) & wanted.keys()
        self._park(config.desired, listed)
        load = [item for item in due.load if self._due(item.engine_name)]
        if self._limit is not None:
            load = load[: max(0, self._limit - len(listed - set(unload)))]
        if not load and not unload:
            return listed
        self._stand({item.engine_name: replace(self._standing(item.engine_name), state="loading") for item in load})
        self._fresh.update(item.engine_name for item in load)
        changed = await self._plug.change(load, unload)
        listed = await self._plug.listed()
        for item in load:
            reason = changed.failed.get(item.engine_name, "")
            if reason or item.engine_name not in listed:
                self._fail(item.engine_name, reason or "the engine says that it loaded it, but does not list it")
        if changed.pause is not None:
            log.warning("adapters were changed; hops waited %.2f s", changed.pause)
            self._found(pause=changed.pause)
        return listed

    def _may_leave(self, name: str, wanted: Mapping[str, Resident], config: InForce, together: Together) -> bool:
        """Whether every worker knows that no turn may begin on an adapter; none needs it, by the plan."""
        if name in wanted:
            return together.agreed and name in together.findings.parked & self.findings.parked
        return together.generation >= config.generation

    def _park(self, desired: Desired, listed: frozenset[str]) -> None:
        """Have turns wait for what leaves, or has to stay out, for want of room; what was proved before may come back.
        What was about to leave and is needed after all is as it was."""
        passed = _passed(desired, self._plug.replica)
        parked = (self.findings.parked | self._leaving) & passed
        stays = (parked & listed) - self._leaving - self._fresh
        proved = (self.findings.proved | stays) - self._leaving
        self._found(proved=proved, parked=parked - proved)
        self._stand({name: Standing("waiting", NO_ROOM) for name in self._leaving})
        self._stand({name: Standing("ready") for name in stays})

    def _lost(self, listed: Collection[str], wanted: Mapping[str, Resident]) -> None:
        """Forget what is not there any more: what comes back has to prove itself again."""
        self._refused &= set(listed)
        standing = {name: said for name, said in self.findings.standing.items() if name in wanted}
        for name in wanted:
            said = standing.get(name)
            if said is None or (name not in listed and said.state in ("ready", "probing")):
                self._fresh.discard(name)
                standing[name] = Standing("waiting")
        proved, parked = self.findings.proved & frozenset(listed), self.findings.parked
        self._found(standing=standing, proved=proved & wanted.keys(), parked=parked & wanted.keys())

    async def _prove(self, item: Resident, desired: Desired) -> None:
        name = item.engine_name
        self._stand({name: replace(self._standing(name), state="probing")})
        try:
            effect = await self._probe.effect(name)
        except MacaronError as error:
            self._fail(name, error.message)
            return
        await self._record(item, effect)
        finding = effect_finding(effect)
        mean = effect.mean if effect.finite else None
        if finding.severity == "error":
            # The same bytes on the same engine would say the same again.
            self._refused.add(name)
            self._stand({name: Standing("failed", f"{finding.message} {finding.remedy}", effect=mean)})
            log.error("adapter %s is not used: %s", name, finding.message)
            return
        self._stand({name: Standing("ready", effect=mean)})
        self._fresh.discard(name)
        self._found(proved=self.findings.proved | {name}, parked=self.findings.parked - {name})

    async def _record(self, item: Resident, effect: Effect) -> None:
        def edit(desired: Desired) -> Desired:
            for entry in desired.entries:
                found = entry.get(item.revision)
                if found is not None and found.state != "retired" and entry.engine_name(found) == item.engine_name:
                    desired = probed(desired, entry.key, item.revision, self._plug.replica, effect)
            return desired

        await self._document.change(edit)

    def _standing(self, name: str) -> Standing:
        return self.findings.standing.get(name, Standing("waiting"))

    def _due(self, name: str) -> bool:
        return name not in self._refused and self._standing(name).retry <= self._clock()

    def _fail(self, name: str, reason: str) -> None:
        failures = self._standing(name).failures + 1
        pause = min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE)
        log.error("adapter %s: %s; tried again in %.0f s", name, reason, pause)
        self._stand({name: Standing("failed", reason, failures, self._clock() + pause)})
        # Nobody is to wait for what does not come.
        self._found(parked=self.findings.parked - {name})

    def _stand(self, changed: Mapping[str, Standing]) -> None:
        self._found(standing={**self.findings.standing, **changed})

    def _found(self, **changed: object) -> None:
        findings = replace(self.findings, **changed)
        if findings != self.findings:
            self.findings = findings
            self.tell()


def _created(desired: Desired) -> dict[str, float]:
    """Registration counts as a use: a new adapter has to be loaded to be proved."""
    return {entry.engine_name(item): item.created for entry in desired.entries for item in entry.revisions}


def _passed(desired: Desired, replica: str) -> frozenset[str]:
    """Engine names of the adapters that were proved on an engine before."""
    return frozenset(
        entry.engine_name(item)
        for entry in desired.entries
        for item in entry.revisions
        if any(probe.replica == replica and probe.passed for probe in item.probed)
    )
