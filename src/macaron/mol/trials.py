"""Revisions that are tried beside a label's live one: in shadow, which nobody sees, or as canary for some sessions."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import Struct

from macaron.conversation import Answer
from macaron.registry.cards import Specialist
from macaron.registry.desired import Entry, chosen, shadowed

WORD_LIMIT = 2000
_WORD = re.compile(r"\w+")


class Trial(NamedTuple):
    """A label's revision on trial, as a specialist, and the entry that says how much it does."""

    entry: Entry
    specialist: Specialist

    def answers(self, session: str) -> bool:
        """Whether it is the canary of a session."""
        item = chosen(self.entry, session)
        return item is not None and item.revision == self.specialist.revision

    def shadows(self, turn: str) -> bool:
        """Whether it answers a turn in shadow."""
        return shadowed(self.entry, turn) is not None


class Side(Struct, frozen=True):
    """What one revision did: turns and, of them, those that failed, were cut at the token limit, or called tools; sums
    of seconds and of tokens written."""

    turns: int = 0
    failed: int = 0
    cut: int = 0
    called: int = 0
    seconds: float = 0.0
    tokens: int = 0

    def __add__(self, other: Side) -> Side:
        return Side(
            self.turns + other.turns,
            self.failed + other.failed,
            self.cut + other.cut,
            self.called + other.called,
            self.seconds + other.seconds,
            self.tokens + other.tokens,
        )


class Comparison(Struct, frozen=True):
    """The two revisions of a label since the trial began.

    Attributes:
        pairs: turns that both answered.
        alike: sum over the pairs of the share of words that both answers have, 0 to 1 a pair.
        skipped: shadow turns that were left out, because too many ran or the engine was needed.
    """

    live: Side = Side()
    trial: Side = Side()
    pairs: int = 0
    alike: float = 0.0
    skipped: int = 0

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(
            self.live + other.live,
            self.trial + other.trial,
            self.pairs + other.pairs,
            self.alike + other.alike,
            self.skipped + other.skipped,
        )


class Trials:
    """Counts for one worker, by the engine name of the revision on trial."""

    def __init__(self) -> None:
        self.comparisons: dict[str, Comparison] = {}

    def keep(self, adapters: frozenset[str]) -> None:
        """Forget all trials but these."""
        self.comparisons = {name: self.comparisons.get(name, Comparison()) for name in adapters}

    def saw(self, trial: Trial, specialist: Specialist, side: Side) -> None:
        """A turn of the label was answered by one of the two."""
        tried = specialist.revision == trial.specialist.revision
        self._add(trial, Comparison(trial=side) if tried else Comparison(live=side))

    def compared(self, trial: Trial, side: Side, alike: float | None) -> None:
        """A turn was answered in shadow as well; `alike` is None where that failed."""
        self._add(trial, Comparison(trial=side, pairs=int(alike is not None), alike=alike or 0.0))

    def skipped(self, trial: Trial) -> None:
        """A turn that should have been answered in shadow was not."""
        self._add(trial, Comparison(skipped=1))

    def _add(self, trial: Trial, more: Comparison) -> None:
        name = trial.specialist.engine_name
        if name in self.comparisons:
            self.comparisons[name] += more


def side_of(answer: Answer | None, seconds: float, tokens: int) -> Side:
    """One turn; None for one that failed."""
    if answer is None:
        return Side(turns=1, failed=1, seconds=seconds)
    return Side(1, 0, int(answer.finish == "length"), int(bool(answer.calls)), seconds, tokens)


def likeness(one: Answer, other: Answer) -> float:
    """The share of words and tool names that two answers have in common (Jaccard), 0 to 1."""
    left, right = _words(one), _words(other)
    return len(left & right) / len(left | right) if left or right else 1.0


def _words(answer: Answer) -> set[str]:
    words = {match[0].casefold() for match, _ in zip(_WORD.finditer(answer.text), range(WORD_LIMIT), strict=False)}
    return words | {f"call {call.name}" for call in answer.calls}
