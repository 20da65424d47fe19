"""What a route check found: what a newcomer wins, what the other labels lose, and whether that is too much. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

MARGIN: Final = 0.02
"""Share of its rows that a label may lose, unless another is given."""

LEAST_WON: Final = 0.5
"""Share of its own examples that a newcomer must win: with less it would hardly ever answer."""

_Z: Final = 1.959963984540054
_SHOWN: Final = 5


class Routed(NamedTuple):
    """A row with its right label, and where it was routed without the newcomer (None if not asked) and with it."""

    label: str
    before: str | None
    after: str


class Share(Struct, frozen=True):
    """`count` of `n`, with the 95 % interval of the share: Wilson's score interval (Wilson 1927), of these rows as
    independent cases."""

    count: int
    n: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share itself, 0 of nothing."""
        return self.count / self.n if self.n else 0.0

    def __str__(self) -> str:
        return f"{self.count} of {self.n} ({_percent(self.value)}, 95 % {_percent(self.low)} to {_percent(self.high)})"


class Loss(Struct, frozen=True):
    """What a label loses.

    Attributes:
        right: its rows that were routed right without the newcomer.
        lost: of all its rows, those that were right without it and are wrong with it.
        gained: those that were wrong without it and are right with it.
        to: where the lost ones go, by label.
    """

    label: str
    right: int
    lost: Share
    gained: int
    to: dict[str, int]


class Verdict(Struct, frozen=True):
    """The outcome of a route check.

    Attributes:
        label: the newcomer, or the label whose revision is new.
        won: its own examples that are routed to it; None where the label is in force already, so that its rows are
            counted among the losses as everybody's.
        losses: of each label with rows, in the order of the labels.
        unmeasured: labels in force without a row.
        margin: share of its rows that a label may lose.
    """

    label: str
    won: Share | None
    losses: tuple[Loss, ...]
    unmeasured: tuple[str, ...]
    margin: float

    @property
    def passed(self) -> bool:
        """Whether it may be promoted."""
        return not any(self._reasons())

    @property
    def detail(self) -> str:
        """The numbers on one line, what speaks against it first."""
        said = [*self._reasons()]
        if self.won is not None:
            said.append(f"{self.label} wins {self.won}")
        worst = sorted(self.losses, key=lambda loss: -loss.lost.value)
        said += [f"{loss.label} loses {loss.lost}" for loss in worst[:_SHOWN]]
        if len(worst) > _SHOWN:
            said.append(f"{len(worst) - _SHOWN} more labels lose no more than these")
        if self.unmeasured:
            said.append(f"not measured: {', '.join(self.unmeasured[:_SHOWN])}")
        return "; ".join((*said, f"margin {_percent(self.margin)}"))

    def _reasons(self) -> Iterator[str]:
        over = [loss.label for loss in self.losses if loss.lost.value > self.margin]
        if over:
            yield f"{', '.join(over[:_SHOWN])} lose{'s' * (len(over) == 1)} more than the margin"
        if self.won is not None and self.won.value < LEAST_WON:
            yield f"{self.label} wins fewer than {_percent(LEAST_WON)} of its own examples"


def verdict(label: str, labels: Sequence[str], rows: Iterable[Routed], margin: float) -> Verdict:
    """Judge the rows of a check.

    Args:
        label: the newcomer, or the label whose revision is new.
        labels: those in force without it.
    """
    routed = list(rows)
    own = [row for row in routed if row.label == label and label not in labels]
    losses = tuple(_loss(name, [row for row in routed if row.label == name]) for name in labels)
    return Verdict(
        label=label,
        won=None if label in labels else share(sum(row.after == label for row in own), len(own)),
        losses=tuple(loss for loss in losses if loss.lost.n),
        unmeasured=tuple(loss.label for loss in losses if not loss.lost.n),
        margin=margin,
    )


def _loss(label: str, rows: Sequence[Routed]) -> Loss:
    lost = [row for row in rows if row.before == label != row.after]
    return Loss(
        label=label,
        right=sum(row.before == label for row in rows),
        lost=share(len(lost), len(rows)),
        gained=sum(row.before != label == row.after for row in rows),
        to=dict(Counter(row.after for row in lost)),
    )


def share(count: int, n: int) -> Share:
    """A share with its interval; all of [0, 1] where n is 0."""
    if n == 0:
        return Share(0, 0, 0.0, 1.0)
    spread = _Z * _Z / n
    rate = count / n
    middle = (rate + spread / 2) / (1 + spread)
    reach = _Z / (1 + spread) * math.sqrt(rate * (1 - rate) / n + spread / (4 * n))
    # At the ends the bound is exact, which rounding would miss by the last digit.
    low = 0.0 if count == 0 else max(0.0, middle - reach)
    high = 1.0 if count == n else min(1.0, middle + reach)
    return Share(count, n, low, high)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
