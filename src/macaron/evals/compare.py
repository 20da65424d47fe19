"""Subjects compared case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from macaron.evals.record import CaseResult
from macaron.evals.stats import Paired, paired


def compared(results: Mapping[str, Sequence[CaseResult]]) -> dict[tuple[str, str], Paired]:
    """Every pair of subjects on the cases that both of them have, in the order of the first."""
    pairs: dict[tuple[str, str], Paired] = {}
    for (one, ours), (other, theirs) in combinations(results.items(), 2):
        known = {result.case: result for result in theirs}
        both = [(result, known[result.case]) for result in ours if result.case in known]
        if both:
            pairs[one, other] = paired(
                [left.passed for left, _ in both],
                [right.passed for _, right in both],
                [left.source for left, _ in both],
            )
    return pairs
