"""The life of a turn: look-up, route, answer, commit, summary."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple

from msgspec import Struct

from macaron.conversation import Answer, Finish, Hop, Step, Usage
from macaron.engine.base import Engine, EngineEvent, HopRequest, Sink
from macaron.errors import BadRequest, EngineError, MacaronError
from macaron.hcp.schema import Contract
from macaron.ids import Ids
from macaron.mol.activity import Activity
from macaron.mol.background import Background
from macaron.mol.carriers import Carriers
from macaron.mol.collect import Collector
from macaron.mol.doubts import Doubts
from macaron.mol.early import Early, Shortcut
from macaron.mol.events import Answered, Chosen, Done, TurnEvent
from macaron.mol.experience import Experience, Said
from macaron.mol.hop_clock import HopClock
from macaron.mol.identity import ItemDigests, canonical_tools, head_digest
from macaron.mol.lookup import Found, TurnRequest, continues_tools, find
from macaron.mol.notes import Notes
from macaron.mol.observer import Observer
from macaron.mol.prompt import view_messages
from macaron.mol.residency import TOOL_SECONDS, Residency
from macaron.mol.routing import Router
from macaron.mol.shadow import Shadows
from macaron.mol.speculate import Held, Started
from macaron.mol.steps import Frame, own_summary, steps_from
from macaron.mol.summaries import OUTCOME_LENGTH, Job, Summaries
from macaron.mol.texts import TEXT_SECONDS
from macaron.mol.trials import Trial, side_of
from macaron.mol.view import Head, view
from macaron.registry.cards import Registry, Specialist
from macaron.store.base import Store


class Decision(Struct, frozen=True):
    """Who answers, and the answer if it has been started already."""

    specialist: Specialist
    reason: str
    hop: Hop | None = None
    held: Held | None = None


class Asked(Struct, frozen=True):
    """The answer hop of a turn, asked for but not read yet."""

    frame: Frame
    decision: Decision
    hop: HopRequest
    events: AsyncGenerator[Sequence[EngineEvent], None]
    carrier: str | None = None


class Force(NamedTuple):
    """What is in force: contract, registry and their generation.

    Attributes:
        kept: by label and revision, what is not in force but there for turns that began on it.
        trials: by label, what is tried beside it.
    """

    contract: Contract
    digest: str
    registry: Registry
    generation: int
    kept: Mapping[tuple[str, str], Specialist]
    trials: Mapping[str, Trial]


class Turns:
    """Runs turns for one worker."""

    def __init__(
        self,
        force: Force,
        engine: Engine,
        store: Store,
        router: Router,
        summaries: Summaries,
        notes: Notes,
        background: Background,
        activity: Activity,
        observer: Observer,
        ids: Ids,
        residency: Residency,
        shadows: Shadows,
        doubts: Doubts,
        carriers: Carriers,
        experience: Experience | None = None,
    ) -> None:
        self._force = force
        self._mol = force.contract.mol
        self._engine = engine
        self._store = store
        self._router = router
        self._summaries = summaries
        self._notes = notes
        self._background = background
        self._activity = activity
        self._observer = observer
        self._ids = ids
        self._residency = residency
        self._shadows = shadows
        self._experience = experience
        self._doubts = doubts
        self._carriers = carriers
        self._item_digests = ItemDigests()
        self._deciding = Activity()

    @property
    def deciding(self) -> int:
        """Turns that may still choose any adapter of this registry."""
        return self._deciding.running

    @property
    def entry(self) -> frozenset[str]:
        """Name of the adapter that routes, which every turn needs."""
        adapter = self._force.registry.entry_specialist.engine_name
        return frozenset((adapter,)) if adapter else frozenset()

    @property
    def adapters(self) -> frozenset[str]:
        """Names of all adapters that turns may choose here."""
        return frozenset(item.engine_name for item in self._force.registry.specialists if item.engine_name)

    def sweep(self) -> None:
        """Forget the texts of earlier requests that are still in memory for no better reason than speed."""
        self._item_digests.sweep(TEXT_SECONDS)

    async def run(self, request: TurnRequest, early: Early | None = None) -> AsyncGenerator[TurnEvent, None]:
        """Run one turn: `Chosen`, pieces of the answer as they come, and `Done` once the step is durable.

        After the first pieces the others may go to `early` instead, which spares waking the reader for each.

        Raises:
            MacaronError: before `Chosen` nothing has happened that the client could see.
        """
        # All in one generator: another around the answer would be passed by every piece of it, at 0.1 µs or more.
        begun = time.perf_counter()
        collector = Collector()
        shortcut = Shortcut(collector, early)
        with self._deciding:
            asked = await self._ask(request, shortcut)
        frame, decision = asked.frame, asked.decision
        if self._residency.absent:
            # A turn that is deciding holds all adapters, so that none could leave to make room.
            await self._residency.present(asked.hop.adapter)
        before = (decision.hop,) if decision.hop else ()
        record = HopClock(frame.specialist, decision.held.started if decision.held else Started.now())
        chosen: Chosen | None = Chosen(frame.specialist, frame.session, decision.reason, before, asked.carrier)
        try:
            # Nothing is awaited between the decision and this, so that no adapter goes unseen.
            with self._activity, self._residency.use(asked.hop.adapter):
                async with aclosing(asked.events) as batches:
                    async for batch in batches:
                        deltas = collector.add(batch)
                        if not deltas:
                            continue
                        if chosen is not None:
                            if frame.request.stream:
                                self._observer.first_token(frame.specialist.label, time.perf_counter() - begun)
                            yield chosen
                            chosen = None
                        yield deltas
                        shortcut.open = True
                if collector.calling:
                    self._residency.keep(asked.hop.adapter, TOOL_SECONDS)
            if not collector.finished:
                raise EngineError("The engine ended its answer without a finish.")
        except BaseException as error:
            self._cut_off(asked, collector, record, before, error)
            raise
        if chosen is not None:
            yield chosen
        answers = collector.answers()
        hops = (*before, record.hop(collector, "ok"))
        steps = steps_from(frame, answers, hops, collector.usage)
        committed = self._store.put_steps(steps)
        try:
            finishes = [Finish(answer.finish, answer.choice) for answer in answers]
            yield Answered(answers, finishes, collector.usage, hops)
        except BaseException:
            self._background.start(_settled(committed), f"commit of {frame.request.id}")
            raise
        self._seen(asked, hops[-1], answers[0])
        await committed
        # After the terminal event has been written, which it must not keep waiting.
        asyncio.get_running_loop().call_soon(self._afterwards, asked, steps, answers, collector)
        yield Done()

    def _seen(self, asked: Asked, hop: Hop, answer: Answer) -> None:
        self._doubts.saw(asked.hop, answer)
        self._observer.hop(hop)
        if self._force.trials:
            self._compare(asked.frame, hop, answer)

    def _afterwards(self, asked: Asked, steps: Sequence[Step], answers: Sequence[Answer], collector: Collector) -> None:
        self._summarise(asked.frame, asked.hop, steps, answers, collector.usage)
        if self._experience is not None:
            said = Said(steps, answers, collector.sampled, collector.usage)
            self._experience.keep(asked.frame, asked.hop, asked.decision.reason, said)

    async def _ask(self, request: TurnRequest, sink: Sink) -> Asked:
        head = head_digest(request.system, request.tools)
        found = await find(self._store, request, head, self._item_digests)
        if request.carriers:
            found = self._carriers.restore(request, head, found)
        if found.parent is not None and found.parent.head != head:
            self._observer.event("cold_prefix")
        session = request.session or (found.parent.session if found.parent else self._ids.new("sess_"))
        decision = await self._decide(request, found, session, sink)
        frame = self._frame(request, found, decision, head, session)
        held = decision.held
        hop = held.hop if held else await self._answer_hop(request, found, decision.specialist)
        carrier = self._carriers.make(frame) if request.carry else None
        return Asked(frame, decision, hop, held.release() if held else self._engine.answer(hop, sink), carrier)

    # --- who answers -----------------------------------------------------------------------------------------------

    async def _decide(self, request: TurnRequest, found: Found, session: str, sink: Sink) -> Decision:
        if (fixed := self._fixed(request, found, session)) is not None:
            return fixed
        if (known := self._router.known(request, found)) is not None:
            return Decision(self._of_session(known.specialist, session), known.reason)
        with self._activity:
            predicted = self._predict(found, session)
            held = await self._speculate(request, found, predicted, sink) if predicted is not None else None
            try:
                routed = await self._router.route(request, found)
            except BaseException:
                if held is not None:
                    await held.drop()
                raise
        if held is not None and predicted is not None:
            if routed.specialist.label == predicted.label:
                self._observer.speculation("hit")
                return Decision(predicted, routed.reason, routed.hop, held)
            self._observer.speculation("miss")
            await held.drop()
        return Decision(self._of_session(routed.specialist, session), routed.reason, routed.hop)

    def _of_session(self, specialist: Specialist, session: str) -> Specialist:
        """The canary of a label in its share of sessions."""
        trial = self._force.trials.get(specialist.label)
        return trial.specialist if trial is not None and trial.answers(session) else specialist

    def _fixed(self, request: TurnRequest, found: Found, session: str) -> Decision | None:
        """A tool turn stays where it is; a pinned turn goes where the caller says."""
        registry = self._force.registry
        pinned = self._pinned(request)
        if found.parent is not None and continues_tools(found, request.beside_results):
            same = registry.get(found.parent.label)
            if same is None or same.revision != found.parent.revision:
                # Several labels may share a revision, so the label comes first.
                begun_on = self._force.kept.get((found.parent.label, found.parent.revision))
                same = begun_on or registry.by_revision(found.parent.revision) or same
            if same is not None:
                return Decision(same, "sticky")
        return None if pinned is None else Decision(self._of_session(pinned, session), "pinned")

    def _pinned(self, request: TurnRequest) -> Specialist | None:
        if request.pin is None:
            return None
        registry = self._force.registry
        if (pinned := registry.get(request.pin)) is None:
            raise BadRequest(
                f"`x-macaron-adapter` names {request.pin!r}; the labels are {', '.join(registry.labels)}.",
                param="x-macaron-adapter",
                code="unknown_adapter",
            )
        return pinned

    def _predict(self, found: Found, session: str) -> Specialist | None:
        if not (self._mol.speculate and self._engine.capabilities.concurrent_adapters):
            return None
        registry = self._force.registry
        last = found.parent.label if found.parent and self._mol.predictor == "last" else None
        predicted = (registry.get(last) if last else None) or registry.default_specialist
        busy = self._activity.running > self._mol.speculate_below or predicted.adapter in self._residency.absent
        if busy or not self._notes.ready(found.path, predicted.label, found.hidden):
            self._observer.speculation("skipped")
            return None
        return self._of_session(predicted, session)

    async def _speculate(self, request: TurnRequest, found: Found, predicted: Specialist, sink: Sink) -> Held:
        hop = await self._answer_hop(request, found, predicted)
        return Held(hop, self._engine, sink)

    # --- the answer ------------------------------------------------------------------------------------------------

    async def _answer_hop(self, request: TurnRequest, found: Found, specialist: Specialist) -> HopRequest:
        notes = await self._notes.for_view(
            request.scope, found.path, specialist.label, found.hidden, found.unkept, keep=request.keep
        )
        tools = list(canonical_tools(request.tools))
        shown = view(
            Head(specialist.identity, request.system, tuple(tools)), found.path, specialist.label, found.new, notes
        )
        options = dict(request.options)
        if tools:
            options["tools"] = tools
        if request.n > 1:
            options["n"] = request.n
        return HopRequest(
            kind="answer",
            adapter=specialist.adapter,
            messages=view_messages(shown, merge_system=self._mol.merge_system, reasoning=self._mol.reasoning_in_body),
            options=options,
            stream=request.stream,
            tenant=request.tenant,
            timeout=self._force.contract.engine.timeouts.answer,
            sampled=self._experience is not None and self._experience.sampled(request),
        )

    def _frame(self, request: TurnRequest, found: Found, decision: Decision, head: str, session: str) -> Frame:
        parent = found.parent
        return Frame(
            request=request,
            found=found,
            specialist=decision.specialist,
            head=head,
            session=session,
            turn=parent.turn if parent is not None and decision.reason == "sticky" else request.id,
            generation=self._force.generation,
            contract=self._force.digest,
            keep=request.keep and self._force.contract.store.chat == "full",
            summary_tokens=self._mol.summary_tokens,
        )

    def _summarise(
        self, frame: Frame, hop: HopRequest, steps: Sequence[Step], answers: Sequence[Answer], usage: Usage
    ) -> None:
        """A turn that has ended and is not its own summary gets a summary hop; one of several choices does not."""
        step, answer = steps[0], answers[0]
        if len(steps) > 1 or step.status != "completed" or answer.calls:
            return
        own = own_summary(frame, answer, usage)
        if own is None:
            self._summaries.after(Job(step, hop, answer, frame.keep))
        elif own and not frame.keep:
            self._summaries.remember(step.id, own)

    def _compare(self, frame: Frame, hop: Hop, answer: Answer | None) -> None:
        """Count a turn of a label on which another revision is tried, and have that answer it in shadow."""
        trial = self._force.trials.get(frame.specialist.label)
        if trial is None or frame.turn != frame.request.id:
            return
        self._shadows.trials.saw(trial, frame.specialist, side_of(answer, hop.seconds, hop.usage.completion))
        if answer is not None and trial.shadows(frame.turn):
            request, found = frame.request, frame.found
            self._shadows.start(trial, answer, lambda: self._answer_hop(request, found, trial.specialist))

    def _cut_off(
        self, asked: Asked, collector: Collector, record: HopClock, before: tuple[Hop, ...], error: BaseException
    ) -> None:
        """Keep what the client was sent of an answer that did not end: cancelled, or failed in the engine."""
        frame = asked.frame
        self._doubts.failed(asked.hop, error)
        failed = not isinstance(error, asyncio.CancelledError | GeneratorExit)
        code = error.code if isinstance(error, MacaronError) else None
        outcome = (code or "failed")[:OUTCOME_LENGTH] if failed else "cancelled"
        hops = (*before, record.hop(collector, outcome))
        self._observer.hop(hops[-1])
        if failed and self._force.trials:
            self._compare(frame, hops[-1], None)
        answers = collector.answers() if frame.request.stream else []
        if not any(answer.text or answer.refusal or answer.calls for answer in answers):
            return
        steps = steps_from(frame, answers, hops, collector.usage, "failed" if failed else "cancelled")
        self._background.start(_settled(self._store.put_steps(steps)), f"commit of {frame.request.id}")
        if self._experience is not None:
            said = Said(steps, answers, {}, collector.usage)
            self._experience.keep(frame, asked.hop, asked.decision.reason, said)


async def _settled(write: Awaitable[None]) -> None:
    await write
