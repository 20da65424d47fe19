"""Answers in shadow: a revision on trial answers a turn once more, beside the one that the client has seen."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from msgspec.structs import replace

from macaron.conversation import Answer
from macaron.engine.base import Engine, HopRequest, Preempted
from macaron.errors import MacaronError
from macaron.mol.background import Background
from macaron.mol.collect import Collector
from macaron.mol.doubts import Doubts
from macaron.mol.residency import Residency
from macaron.mol.trials import Trial, Trials, likeness, side_of

AT_ONCE = 4
"""Shadows that run at the same time in one worker; more are left out."""


class Shadows:
    """Runs them in the background. Nothing of them is shown, committed, summarised or billed."""

    def __init__(
        self, engine: Engine, trials: Trials, residency: Residency, background: Background, doubts: Doubts
    ) -> None:
        self._engine = engine
        self._residency = residency
        self._background = background
        self._doubts = doubts
        self._running = 0
        self.trials = trials

    def start(self, trial: Trial, answer: Answer, hop: Callable[[], Awaitable[HopRequest]]) -> None:
        """Answer a turn in shadow, or leave it out where too many run.

        Args:
            answer: what the client was sent.
            hop: makes the answer hop for the revision on trial.
        """
        if self._running >= AT_ONCE or self._background.full:
            self.trials.skipped(trial)
            return
        self._running += 1
        task = self._background.start(self._run(trial, answer, hop), f"shadow on {trial.specialist.engine_name}")
        task.add_done_callback(self._ended)

    def _ended(self, _: object) -> None:
        self._running -= 1

    async def _run(self, trial: Trial, answer: Answer, hop: Callable[[], Awaitable[HopRequest]]) -> None:
        clock, collector = time.perf_counter(), Collector()
        with self._residency.use(trial.specialist.adapter):
            asked: HopRequest | None = None
            try:
                # Of all hops it is the one that others may overtake.
                asked = replace(await hop(), kind="summary", sampled=False)
                async with aclosing(self._engine.answer(asked)) as batches:
                    async for batch in batches:
                        collector.add(batch)
            except Preempted:
                self.trials.skipped(trial)
                return
            except MacaronError as error:
                if asked is not None:
                    self._doubts.failed(asked, error)
                self.trials.compared(trial, side_of(None, time.perf_counter() - clock, 0), None)
                return
        said = collector.answers()[0] if collector.finished else None
        self._doubts.saw(asked, said)
        side = side_of(said, time.perf_counter() - clock, collector.usage.completion)
        self.trials.compared(trial, side, None if said is None else likeness(answer, said))
