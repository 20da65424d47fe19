"""The effect probe: whether an adapter moves the engine's first token at all.

Engines answer 200 to a load that did nothing, and ignore tensors whose names they do not know; only asking shows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from macaron.registry.check.report import Finding, error, note

NO_EFFECT = 0.02
"""Mean total variation over the prompts below which an adapter counts as without effect. On one engine a zero adapter
moves nothing at all; on a quantised base the same weights in another arithmetic differ by about as much as this."""

Distribution = Mapping[str, float]
"""Probabilities of the most likely first tokens."""


class Effect(Struct, frozen=True):
    """How far an adapter moves the first token: the total variation from the base, 0 to 1, over all prompts.

    Attributes:
        mean, largest: NaN where `finite` is false.
        prompts: how many were asked.
        finite: whether the engine gave numbers for every prompt; an adapter that overflows gives none, or in 32 bits
            makes all tokens equally likely.
    """

    mean: float
    largest: float
    prompts: int
    finite: bool = True


class Probe(Protocol):
    """Measures an adapter that an engine has loaded."""

    async def effect(self, adapter: str) -> Effect:
        """Compare the adapter, by its name in the engine, with the bare base.

        Raises:
            MacaronError: the engine failed, or gives no log-probabilities.
        """
        ...


def effect_finding(effect: Effect) -> Finding:
    """What a measured effect means."""
    if not effect.finite:
        reason = "The engine's probabilities are not numbers with this adapter, or every token is equally likely."
        return error("probe_not_finite", "probe", "NaN", reason, "It overflows when it runs; train it again.")
    value = f"total variation {effect.mean:.3f} on average, {effect.largest:.3f} at most, {effect.prompts} prompts"
    if effect.mean < NO_EFFECT:
        reason = f"It moves the first token by less than {NO_EFFECT} on average: the engine answers as without it."
        remedy = "See that its keys are those of this base, and that it was trained."
        return error("probe_no_effect", "probe", value, reason, remedy)
    return note(
        "probe_effect",
        "probe",
        value,
        f"It moves the first token; less than {NO_EFFECT} on average would be no effect.",
    )


def effect_of(pairs: Sequence[tuple[Distribution, Distribution]]) -> Effect:
    """The effect over prompts: what the base said to each, and what the adapter did."""
    finite = bool(pairs) and all(math.isfinite(value) for pair in pairs for side in pair for value in side.values())
    flat = all(len(adapted) > 1 and len(set(adapted.values())) == 1 for _, adapted in pairs)
    if not finite or flat or not all(side for pair in pairs for side in pair):
        return Effect(math.nan, math.nan, len(pairs), finite=False)
    moved = [total_variation(base, adapted) for base, adapted in pairs]
    return Effect(sum(moved) / len(moved), max(moved), len(moved))


def total_variation(one: Distribution, other: Distribution) -> float:
    """Half the summed difference over the union of the top tokens: a lower bound of the true distance.

    A token that only one side lists has on the other at most the probability of the last one listed there; it counts
    with no more than the difference to that.
    """
    bound_one, bound_other = min(one.values(), default=0.0), min(other.values(), default=0.0)
    moved = 0.0
    for token in one.keys() | other.keys():
        left, right = one.get(token), other.get(token)
        if left is not None and right is not None:
            moved += abs(left - right)
        else:
            moved += max(0.0, left - bound_other) if left is not None else max(0.0, (right or 0.0) - bound_one)
    return moved / 2
