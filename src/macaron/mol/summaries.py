"""Summary hops: off the visible path, bounded, and replaceable by the clipped answer at any time."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from macaron.conversation import Answer, Delta, Hop, Step, Usage
from macaron.engine.base import ChatMessage, Engine, HopRequest, Preempted, Queued
from macaron.engine.messages import messages_from_items
from macaron.errors import MacaronError, StoreError
from macaron.hcp.schema import Contract
from macaron.mol.activity import Activity
from macaron.mol.background import Background
from macaron.mol.note import clip
from macaron.mol.observer import Observer
from macaron.mol.texts import TEXT_SECONDS, Bounds, Texts
from macaron.store.base import Store

PENDING_BYTES = 33_554_432
"""Prompts of summaries that have not run yet are kept up to this size together."""

PREEMPTIONS = 50

OUTCOME_LENGTH = 64
"""An error's code may be the engine's own text; this much of it is kept with a hop."""

REMEMBERED = Bounds(4096, 16_777_216)
"""Summaries kept in memory: requests read their path before the route hop, during which a summary may end."""

MAX_BYTES_PER_TOKEN = 16
"""A summary is cut beyond this many bytes for each token it may have, whatever the engine made of the limit."""


class Job(Struct, frozen=True):
    """A summary to be made of a step: the answer hop it follows, what the answer said, and whether it may be kept."""

    step: Step
    hop: HopRequest
    answer: Answer
    keep: bool

    @property
    def size(self) -> int:
        """Bytes of text that the job keeps alive, roughly."""
        answer = self.answer
        said = len(answer.text) + len(answer.reasoning) + sum(len(call.arguments) for call in answer.calls)
        return said + sum(map(_text_size, self.hop.messages))


class Summaries:
    """Runs summary hops after terminal events, and lets a request wait for one it needs."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        contract: Contract,
        instruction: str,
        background: Background,
        activity: Activity,
        observer: Observer,
    ) -> None:
        self._engine = engine
        self._store = store
        self._mol = contract.mol
        self._timeout = contract.engine.timeouts.summary
        self._instruction = instruction
        self._background = background
        self._activity = activity
        self._observer = observer
        self._running: dict[str, asyncio.Task[str | None]] = {}
        self._lazy: OrderedDict[str, Job] = OrderedDict()
        self._made = Texts(REMEMBERED)
        self._bytes = 0

    def after(self, job: Job) -> None:
        """Make the summary of a turn that has just ended, in the way the profile chooses."""
        size = job.size
        while self._lazy and self._bytes + size > PENDING_BYTES:
            self._bytes -= self._lazy.popitem(last=False)[1].size
        if self._mol.summary == "off" or self._background.full or self._bytes + size > PENDING_BYTES:
            self._observer.event("summary_skipped")
            return
        self._bytes += size
        if self._mol.summary == "lazy":
            self._lazy[job.step.id] = job
        else:
            self._start(job, size)

    async def wanted(self, step_id: str) -> str | None:
        """The summary of a turn whose note has to be decided now; waits for it a bounded time."""
        if (job := self._lazy.pop(step_id, None)) is not None:
            self._start(job, job.size)
        task = self._running.get(step_id)
        if task is None:
            return self._made.get(step_id)
        await asyncio.wait((task,), timeout=self._mol.summary_wait)
        return task.result() if task.done() and not task.cancelled() and task.exception() is None else None

    def remember(self, step_id: str, text: str) -> None:
        """Keep a summary in memory, for requests that read their path before it was stored, or where it never is."""
        self._made.put(step_id, text)

    def made(self, step_id: str) -> str | None:
        """The summary of a turn, where it is in memory."""
        return self._made.get(step_id)

    def learn(self, step_id: str, text: str) -> None:
        """Take over a summary that another process made, unless there is or will be one of this process."""
        if step_id not in self._running and step_id not in self._lazy:
            self._made.put_first(step_id, text)

    def sweep(self) -> None:
        """Forget what nobody has needed for long, and the prompts of summaries of what is not kept."""
        self._made.sweep()
        oldest = time.time() - TEXT_SECONDS
        for step_id in [name for name, job in self._lazy.items() if not job.keep and job.step.created <= oldest]:
            self._bytes -= self._lazy.pop(step_id).size

    def _start(self, job: Job, size: int) -> None:
        step_id = job.step.id
        task = self._background.start(self._run(job), f"summary of {step_id}")
        self._running[step_id] = task
        task.add_done_callback(lambda _: self._ended(step_id, size))

    def _ended(self, step_id: str, size: int) -> None:
        self._running.pop(step_id, None)
        self._bytes -= size

    async def _run(self, job: Job) -> str | None:
        text, hop = None, None
        for _ in range(PREEMPTIONS):
            if self._mol.summary == "idle":
                await self._activity.idle()
            try:
                text, hop = await self._ask(job)
                break
            except Preempted:
                self._observer.event("summary_preempted")
        if hop is not None:
            self._observer.hop(hop)
        if text is not None:
            self.remember(job.step.id, text)
        try:
            await self._store.put_summary(job.step.scope, job.step.id, text if job.keep else None, hop)
        except StoreError:
            self._observer.event("summary_skipped")
        return text

    async def _ask(self, job: Job) -> tuple[str | None, Hop]:
        started, clock = time.time(), time.perf_counter()
        pieces: list[str] = []
        usage, queued, outcome = Usage(), 0.0, "ok"
        try:
            async for batch in self._engine.answer(self._hop(job)):
                for event in batch:
                    match event:
                        case Delta():
                            pieces.append(event.text)
                        case Usage():
                            usage = event
                        case Queued(seconds):
                            queued = seconds
        except Preempted:
            raise
        except MacaronError as error:
            outcome = (error.code or "failed")[:OUTCOME_LENGTH]
        text = clip("".join(pieces).strip(), self._mol.summary_tokens * MAX_BYTES_PER_TOKEN)
        if not text and outcome == "ok":
            outcome = "empty"
        step = job.step
        seconds = time.perf_counter() - clock
        hop = Hop("summary", step.label, step.revision, started, seconds, queued, usage, outcome)
        return (text if outcome == "ok" else None), hop

    def _hop(self, job: Job) -> HopRequest:
        """The answer's own prompt, longer: the engine has it cached. Thinking is off where it is for routing."""
        said = messages_from_items(job.answer.items())
        options: dict[str, Any] = {"temperature": 0, "max_tokens": self._mol.summary_tokens}
        if "tools" in job.hop.options:
            options |= {"tools": job.hop.options["tools"], "tool_choice": "none"}
        if self._mol.route.chat_template_kwargs:
            options["chat_template_kwargs"] = self._mol.route.chat_template_kwargs
        return replace(
            job.hop,
            kind="summary",
            sampled=False,
            messages=[*job.hop.messages, *said, {"role": "user", "content": self._instruction}],
            options=options,
            timeout=self._timeout,
        )


def _text_size(message: ChatMessage) -> int:
    content = message.get("content")
    calls = message.get("tool_calls")
    if isinstance(content, str) and not calls:
        return len(content)
    return len(str(content or "")) + len(str(calls or ""))
