"""Turns as they are recorded: made of what the heart knows once a turn is over, off the path of its client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from macaron.conversation import Answer, Item, Message, Sampled, Step, Usage, text_of
from macaron.engine.base import Engine, HopRequest, Tokenizing
from macaron.errors import MacaronError
from macaron.experience import Record, Recorder
from macaron.mol.background import Background
from macaron.mol.lookup import TurnRequest
from macaron.mol.prompt import view_messages
from macaron.mol.steps import Frame
from macaron.mol.view import Head, View


class Said(NamedTuple):
    """What came of an answer hop: a step and an answer a choice, and the tokens that were sampled."""

    steps: Sequence[Step]
    answers: Sequence[Answer]
    sampled: Mapping[int, Sampled]
    usage: Usage


class Experience:
    """Gives the turns of tenants that agreed to the recorder.

    Args:
        tokens: whether token ids and log-probabilities are wanted.
        merge_system: as in the contract's `[mol]`.
    """

    def __init__(
        self, recorder: Recorder, engine: Engine, background: Background, *, tokens: bool, merge_system: bool
    ) -> None:
        self._recorder = recorder
        self._kind = engine.kind
        self._tokenizing = engine if tokens and isinstance(engine, Tokenizing) else None
        self._background = background
        self._tokens = tokens
        self._merge = merge_system

    def sampled(self, request: TurnRequest) -> bool:
        """Whether an answer is asked for with its tokens."""
        return self._tokens and request.keep and self._recorder.wants(request.tenant)

    def keep(self, frame: Frame, hop: HopRequest, reason: str, said: Said) -> None:
        """Record a turn, if its tenant agreed and the request lets anything be kept. It must not raise: nobody would
        see why."""
        if not (frame.request.keep and self._recorder.wants(frame.request.tenant)):
            return
        whole = covers(said)
        records = [self._record(frame, hop, reason, said, at, whole) for at in range(len(said.steps))]
        if self._tokenizing is None or records[0].prompt_ids or self._background.full:
            self._put(records)
        else:
            work = self._with_prompt(self._tokenizing, hop, records)
            self._background.start(work, f"prompt tokens of {frame.request.id}")

    async def _with_prompt(self, engine: Tokenizing, hop: HopRequest, records: list[Record]) -> None:
        ids: tuple[int, ...] = ()
        with suppress(MacaronError):
            ids = tuple(await engine.prompt_ids(hop))
        # Another count is another prompt: of a template that looks at the clock, say.
        kept = ids if len(ids) == records[0].usage.prompt else ()
        self._put([replace(record, prompt_ids=kept) for record in records])

    def _put(self, records: list[Record]) -> None:
        for record in records:
            self._recorder.put(record)

    def _record(self, frame: Frame, hop: HopRequest, reason: str, said: Said, at: int, whole: bool) -> Record:
        request, step, answer = frame.request, said.steps[at], said.answers[at]
        sampled = said.sampled.get(answer.choice) or Sampled()
        return Record(
            id=step.id,
            tenant=request.tenant,
            user=request.user,
            session=step.session,
            parent=step.parent,
            turn=step.turn,
            question=frame.found.asked,
            created=step.created,
            label=step.label,
            revision=step.revision,
            engine=self._kind,
            adapter=hop.adapter,
            contract=step.contract,
            generation=step.generation,
            reason=reason,
            status=step.status,
            hops=step.hops,
            given=self._given(frame) if request.system else int(bool(frame.specialist.identity)),
            system=tuple(text_of(message.parts) for message in request.system),
            messages=tuple(hop.messages),
            options=dict(hop.options),
            asked=last_words(frame.found.new),
            answer=answer,
            usage=said.usage,
            prompt_ids=sampled.prompt if len(sampled.prompt) == said.usage.prompt else (),
            ids=sampled.ids if whole else (),
            logprobs=sampled.logprobs if whole and len(sampled.logprobs) in (0, len(sampled.ids)) else (),
        )

    def _given(self, frame: Frame) -> int:
        head = Head(frame.specialist.identity, frame.request.system, ())
        return len(view_messages(View(head, ()), merge_system=self._merge))


def covers(said: Said) -> bool:
    """Whether the tokens are all that were sampled. An engine may leave out the end token of an answer that ended by
    itself, and leaves out whole characters' tokens where it cannot show them one by one."""
    told = sum(len(sampled.ids) for sampled in said.sampled.values())
    ended = sum(answer.finish != "length" for answer in said.answers)
    return told > 0 and said.usage.completion - told in {0, ended}


def last_words(items: Sequence[Item]) -> str:
    """The text of the last user message; empty where there is none."""
    for item in reversed(items):
        if isinstance(item, Message) and item.role == "user":
            return text_of(item.parts)
    return ""
