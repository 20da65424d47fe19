"""Evaluations as blocks of a report on runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from macaron.evals.cases import Change, Evaluations
from macaron.evals.record import CaseResult
from macaron.evals.report import p_value, percent
from macaron.train.runs.blocks import Block, Fold, Grid, Note

MAX_OUTPUT = 2000
_CHANGES = ("evaluation", "subject", "n", "A", "B", "B - A", "95 %", "only A", "only B", "McNemar p")
SIGNIFICANT = 0.05


def accuracies(evaluations: Evaluations) -> Iterator[Block]:
    """How every subject of a run did."""
    yield from unreadable(evaluations)
    rows = [
        (name, subject, str(len(results)), percent(sum(result.passed for result in results) / len(results)))
        for name, subjects in evaluations.results.items()
        for subject, results in subjects.items()
    ]
    if rows:
        yield Grid("evaluations", ("evaluation", "subject", "n", "passed"), rows, numbers=(2, 3))
    else:
        yield Note("It has not been evaluated.")


def changed(found: Sequence[Change], *, cases: int) -> Iterator[Block]:
    """Two runs side by side, and the cases on which they differ, at most `cases` for each direction."""
    if not found:
        yield Note("No case was asked of both runs.")
        return
    marked = frozenset(at for at, change in enumerate(found) if change.statistics.p < SIGNIFICANT)
    yield Grid("evaluations", _CHANGES, [_line(change) for change in found], numbers=range(2, 10), marked=marked)
    for change in found:
        for what, pairs in (("only A passes", change.lost), ("only B passes", change.won)):
            if pairs:
                yield _cases(f"{change.evaluation}, {_subject(change)}: {what}", pairs, cases)


def outputs(found: Sequence[Change], *, cases: int) -> Iterator[Fold]:
    """What both answered where they differ."""
    for change in found:
        for left, right in (*change.lost[:cases], *change.won[:cases]):
            texts = [(f"{side}: {_verdict(result)}", _clipped(result)) for side, result in (("A", left), ("B", right))]
            yield Fold(f"{change.evaluation}, {_subject(change)}: {left.case}", texts)


def unreadable(evaluations: Evaluations) -> Iterator[Note]:
    """What of the evaluations could not be read."""
    for text in evaluations.problems:
        yield Note(text, warns=True)


def _line(change: Change) -> tuple[str, ...]:
    statistics, (first, second) = change.statistics, change.passed
    # `Paired` counts the first less the second; here it is the other way, and none is +0.0.
    difference, low, high = (0.0 - value for value in (statistics.difference, *reversed(statistics.interval)))
    return (
        change.evaluation, _subject(change), str(change.n), percent(first / change.n), percent(second / change.n),
        f"{100 * difference:+.1f}", f"{100 * low:+.1f} to {100 * high:+.1f}",
        str(statistics.only_first), str(statistics.only_second), p_value(statistics.p),
    )  # fmt: skip


def _cases(title: str, pairs: Sequence[tuple[CaseResult, CaseResult]], limit: int) -> Grid:
    rows = [(left.case, left.source, right.reason or left.reason) for left, right in pairs[:limit]]
    more = f", {len(pairs)} cases" if len(pairs) <= limit else f", {limit} of {len(pairs)} cases"
    return Grid(title + more, ("case", "source", "the other failed because"), rows)


def _subject(change: Change) -> str:
    return change.first if change.first == change.second else f"{change.first} / {change.second}"


def _verdict(result: CaseResult) -> str:
    return "passed" if result.passed else f"failed, {result.reason or 'no reason given'}"


def _clipped(result: CaseResult) -> str:
    return result.output if len(result.output) <= MAX_OUTPUT else f"{result.output[:MAX_OUTPUT]}…"
