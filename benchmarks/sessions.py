"""Multi-turn sessions for the benchmarks: a simulation with stated assumptions, not recorded traffic.

No public record of a Mixture-of-LoRA service's labels over whole sessions was found. So a session's labels are a
Markov chain: the first is uniform over the four labels; each next one is the last with probability `persistence`, else
uniform over the other three; after every turn the session ends with probability `1 / mean_turns`.
"""

from __future__ import annotations

import random
from typing import NamedTuple

LABELS = ("L0", "L1", "L2", "L3")
DEFAULT = "L2"


class Habits(NamedTuple):
    """The simulation's two assumptions."""

    persistence: float
    mean_turns: float


class Session:
    """One simulated user: labels to come, and the conversation so far as Chat messages."""

    def __init__(self, number: int, habits: Habits, seed: int) -> None:
        self.number = number
        self.messages: list[dict[str, str]] = []
        self.predicted = DEFAULT
        self._habits = habits
        self._random = random.Random(f"{seed}/{number}")
        self._label = ""

    def next_label(self) -> str:
        """The label of the next turn."""
        if not self._label:
            self._label = self._random.choice(LABELS)
        elif self._random.random() >= self._habits.persistence:
            self._label = self._random.choice([label for label in LABELS if label != self._label])
        return self._label

    def end_turn(self, label: str) -> bool:
        """Note the turn for the predictor; whether the session goes on."""
        self.predicted = label
        return self._random.random() >= 1 / self._habits.mean_turns


def hit_rate(habits: Habits, sessions: int = 20_000, seed: int = 7) -> float:
    """Share of turns on which "the last label, else the default" is the label."""
    hits = turns = 0
    for number in range(sessions):
        session = Session(number, habits, seed)
        going_on = True
        while going_on:
            label = session.next_label()
            hits += label == session.predicted
            turns += 1
            going_on = session.end_turn(label)
    return hits / turns
