"""Decides the notes a view needs, once for all specialists and branches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Set

from macaron.conversation import Step
from macaron.hcp.schema import Contract
from macaron.mol.note import clipped_note
from macaron.mol.observer import Observer
from macaron.mol.summaries import Summaries
from macaron.mol.texts import Bounds, Texts
from macaron.mol.view import Turn, foreign_turns
from macaron.store.base import Store

REMEMBERED = Bounds(16_384, 33_554_432)
"""Notes that may not be stored, and those of carriers."""


class Notes:
    """Notes from the store, from summaries, or from the visible answer, in that order.

    Where no text may reach the disk, notes live in this process only, bounded in number, bytes and time.
    """

    def __init__(self, store: Store, summaries: Summaries, contract: Contract, observer: Observer) -> None:
        self._store = store
        self._summaries = summaries
        self._tokens = contract.mol.summary_tokens
        self._keep = contract.store.chat == "full"
        self._memory = Texts(REMEMBERED)
        self._observer = observer

    async def for_view(
        self,
        scope: str,
        path: Sequence[Step],
        label: str,
        hidden: Set[str],
        unkept: Set[str] = frozenset(),
        *,
        keep: bool = True,
    ) -> dict[str, str]:
        """The notes of every turn on `path` that is not `label`'s own, by the id of the turn's last step.

        Args:
            hidden: ids of the steps whose summaries may be used; other notes are made of what the client can see.
            unkept: ids of the steps whose text is not kept; notes of their turns stay in memory.
            keep: whether the request lets anything be kept.
        """
        notes: dict[str, str] = {}
        open_turns: list[Turn] = []
        for turn in foreign_turns(path, label):
            if turn.end.id not in hidden:
                notes[turn.end.id] = clipped_note(turn, self._tokens)
            elif self.decided(turn):
                notes[turn.end.id] = self._known(turn)
            else:
                open_turns.append(turn)
        if not open_turns:
            return notes
        may = [keep and self._keep and all(step.id not in unkept for step in turn.steps) for turn in open_turns]
        fresh = await asyncio.gather(*map(self._decide, [scope] * len(may), open_turns, may))
        return notes | {turn.end.id: note for turn, note in zip(open_turns, fresh, strict=True)}

    def decided(self, turn: Turn) -> bool:
        """Whether a turn's note can be had without waiting and without deciding anything."""
        return turn.end.note is not None or turn.end.id in self._memory

    def ready(self, path: Sequence[Step], label: str, hidden: Set[str]) -> bool:
        """Whether `for_view` would only read."""
        return all(turn.end.id not in hidden or self.decided(turn) for turn in foreign_turns(path, label))

    def told(self, step: Step) -> tuple[str, bool] | None:
        """What stands for the turn that ends at a step, and whether that is decided; None where nothing does yet."""
        note = step.note if step.note is not None else self._memory.get(step.id)
        if note is not None:
            return note, True
        summary = step.summary or self._summaries.made(step.id)
        return (summary, False) if summary else None

    def learn(self, step_id: str, text: str, *, decided: bool) -> None:
        """Take over what another process knew of a turn, unless something is known here."""
        if decided:
            self._memory.put_first(step_id, text)
        else:
            self._summaries.learn(step_id, text)

    def sweep(self) -> None:
        """Forget what nobody has needed for long."""
        self._memory.sweep()

    def _known(self, turn: Turn) -> str:
        note = turn.end.note if turn.end.note is not None else self._memory.get(turn.end.id)
        assert note is not None
        return note

    async def _decide(self, scope: str, turn: Turn, keep: bool) -> str:
        note = turn.end.summary or await self._summaries.wanted(turn.end.id)
        if not note and keep:
            # The path was read before the route hop, during which another worker may have written a summary.
            path = await self._store.path(scope, turn.end.id)
            note = path[-1].summary if path else None
        if not note:
            self._observer.event("note_clipped")
            note = clipped_note(turn, self._tokens)
        if keep:
            return await self._store.freeze_note(scope, turn.end.id, note)
        return self._memory.put_first(turn.end.id, note)
