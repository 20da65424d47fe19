"""What the heart tells whoever counts."""

from __future__ import annotations

from typing import Literal, Protocol

from macaron.conversation import Hop
from macaron.mol.seal import Refusal

Speculation = Literal["hit", "miss", "skipped"]
CarrierOutcome = Literal["made", "not_made", "opened"] | Refusal
Event = Literal["route_retry", "route_fallback", "cold_prefix", "summary_skipped", "summary_preempted", "note_clipped"]


class Observer(Protocol):
    """Receives facts about hops; must be quick and must not raise."""

    def hop(self, hop: Hop) -> None:
        """A hop has ended, in whatever way."""
        ...

    def first_token(self, label: str, seconds: float) -> None:
        """Seconds from a turn's beginning to the first piece of its answer."""
        ...

    def speculation(self, outcome: Speculation) -> None:
        """What became of a chance to speculate."""
        ...

    def event(self, event: Event) -> None:
        """Something worth counting."""
        ...

    def carrier(self, outcome: CarrierOutcome) -> None:
        """What became of a carrier: made, opened, or not opened for a reason."""
        ...
