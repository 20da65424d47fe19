"""A worker's follower: puts each generation of the registry's document in force, and lets the leading worker carry it
out on the engine."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from macaron.errors import MacaronError
from macaron.mol.trials import Comparison
from macaron.server.adapters.document import Document, InForce
from macaron.server.adapters.peers import POLL_SECONDS, Findings, Peers, Report, Together
from macaron.server.adapters.reconcile import Reconciler
from macaron.server.service import Service

FOLLOW_SECONDS = 3.0
START_SECONDS = 30.0

log = logging.getLogger("macaron.adapters")


class Follower:
    """Run it as a task beside everything else.

    Args:
        worker: this process, as the peers know it.
        reconciler: None where the engine takes no adapters.

    Attributes:
        trials: what all workers counted, as it was last heard.
    """

    def __init__(
        self, service: Service, document: Document, peers: Peers, worker: int, reconciler: Reconciler | None
    ) -> None:
        self._service = service
        self._document = document
        self._peers = peers
        self._worker = worker
        self._reconciler = reconciler
        self._nudged = asyncio.Event()
        self._leads = False
        self._news = 0
        self._round: asyncio.Task[None] | None = None
        self._heard = Findings()
        self._in_use: frozenset[str] = frozenset()
        self._oldest = 0
        self.trials: dict[str, Comparison] = {}
        self._heard_all = asyncio.Event()
        service.residency.ask = self.nudge
        if reconciler is not None:
            reconciler.tell = self.nudge

    def nudge(self) -> None:
        """Look now: something has changed here that the others should know."""
        self._nudged.set()

    async def followed(self, generation: int) -> bool:
        """Wait until every worker follows a generation, or one that came after it; says whether they all do within
        `FOLLOW_SECONDS`."""
        self.nudge()
        try:
            async with asyncio.timeout(FOLLOW_SECONDS):
                while self._oldest < generation:
                    await self._heard_all.wait()
        except TimeoutError:
            return False
        return True

    async def loaded(self) -> None:
        """Wait until the engine was looked at once, where adapters are live: turns that began on them may go on with
        the first request. Not for ever, since everything else can be served without them."""
        live = any(entry.live and not entry.disabled for entry in self._service.desired.entries)
        if self._reconciler is None or not live:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                while not (self.findings.settled or self.findings.fault):
                    await self._heard_all.wait()

    async def run(self) -> None:
        """Follow until it is cancelled."""
        try:
            while True:
                try:
                    await self._step()
                except (MacaronError, OSError, ValueError) as error:
                    log.warning("the registry is not followed at the moment: %s", error)
                    await asyncio.sleep(POLL_SECONDS)
        finally:
            if self._round is not None:
                self._round.cancel()

    async def _step(self) -> None:
        together = await self._meet()
        if together is not None:
            if together.leads and not self._leads and self._reconciler is not None:
                self._reconciler.adopt(together.findings)
            self._leads, self._news = together.leads, together.news
            self._heard, self._in_use, self._oldest = together.findings, together.in_use, together.generation
            self.trials = together.trials
            self._heard_all.set()
            self._heard_all = asyncio.Event()
        config = await self._document.read()
        self._apply(config)
        if together is not None and self._leads and self._reconciler is not None and not self._running:
            self._round = asyncio.create_task(self._reconcile(self._reconciler, config, together))

    async def _meet(self) -> Together | None:
        """What the others say; None where something here is more urgent."""
        self._nudged.clear()
        findings = self.findings if self._leads else None
        service = self._service
        residency = service.residency
        report = Report(
            worker=self._worker,
            generation=service.generation,
            in_use=service.in_use(),
            findings=findings,
            seen=self._news,
            trials=service.trials.comparisons,
            demanded=residency.demanded,
            last_use=residency.last_use,
        )
        meeting = asyncio.ensure_future(self._peers.meet(report))
        nudge = asyncio.ensure_future(self._nudged.wait())
        try:
            await asyncio.wait((meeting, nudge), return_when=asyncio.FIRST_COMPLETED)
            return meeting.result() if meeting.done() else None
        finally:
            meeting.cancel()
            nudge.cancel()
            await asyncio.gather(meeting, nudge, return_exceptions=True)

    @property
    def in_use(self) -> frozenset[str]:
        """Engine names that turns of any worker need, as far as it is known here."""
        return self._service.in_use() | self._in_use

    @property
    def findings(self) -> Findings:
        """What is known of the engine's adapters."""
        return self._reconciler.findings if self._leads and self._reconciler is not None else self._heard

    @property
    def _running(self) -> bool:
        return self._round is not None and not self._round.done()

    def _apply(self, config: InForce) -> None:
        service, findings = self._service, self.findings
        before = (service.generation, service.proved, service.residency.absent)
        if before != (config.generation, findings.proved, findings.parked):
            service.apply(config.generation, config.desired, findings.proved, findings.parked)
            self.nudge()

    async def _reconcile(self, reconciler: Reconciler, config: InForce, together: Together) -> None:
        try:
            await reconciler.round(config, together)
        except Exception as error:
            log.error("the registry could not be carried out: %s", error, exc_info=not isinstance(error, MacaronError))
        finally:
            self.nudge()
