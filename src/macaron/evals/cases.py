"""The evaluations in a run folder, and two runs compared case by case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from macaron.evals.record import CaseResult
from macaron.evals.stats import Paired, paired

MAX_BYTES = 268_435_456
MAX_FILES = 100

Subjects = Mapping[str, Sequence[CaseResult]]


class Evaluations(NamedTuple):
    """Results by evaluation and subject, and what could not be read, in words."""

    results: Mapping[str, Subjects]
    problems: tuple[str, ...]


class Change(NamedTuple):
    """Two subjects on one evaluation.

    Attributes:
        lost: cases that only the first passed, with both results; `won` are those that only the second did.
    """

    evaluation: str
    first: str
    second: str
    n: int
    passed: tuple[int, int]
    statistics: Paired
    lost: Sequence[tuple[CaseResult, CaseResult]]
    won: Sequence[tuple[CaseResult, CaseResult]]


def read_evaluations(folder: Path) -> Evaluations:
    """Every `<name>.jsonl` of a run's `evals` folder. A broken line is left out and told; nothing is raised."""
    results: dict[str, Subjects] = {}
    problems: list[str] = []
    for path in sorted(folder.glob("*.jsonl"))[:MAX_FILES]:
        try:
            with path.open("rb") as file:
                raw = file.read(MAX_BYTES)
        except OSError as error:
            problems.append(f"evals/{path.name} cannot be read: {error.strerror}")
            continue
        results[path.stem], broken = _subjects(raw)
        if broken:
            problems.append(f"{broken} lines of evals/{path.name} are no results and were left out")
    return Evaluations(results, tuple(problems))


def changes(first: Evaluations, second: Evaluations, labels: tuple[str, str]) -> Iterator[Change]:
    """What differs between two runs, on the cases that both were asked: first what each run's own specialist did, then
    the other subjects that both have.

    Args:
        labels: of the specialists that the runs trained, under which the evaluations know them.
    """
    for name in (name for name in first.results if name in second.results):
        one, other = first.results[name], second.results[name]
        own = (labels[0], labels[1]) if labels[0] in one and labels[1] in other else None
        pairs = [own] if own else []
        pairs += [(subject, subject) for subject in one if subject in other and (subject, subject) != own]
        for left, right in pairs:
            change = _change(name, (left, one[left]), (right, other[right]))
            if change is not None:
                yield change


def _change(name: str, first: tuple[str, Sequence[CaseResult]], second: tuple[str, Sequence[CaseResult]]) -> (
    Change | None
):  # fmt: skip
    known = {result.case: result for result in second[1]}
    both = [(result, known[result.case]) for result in first[1] if result.case in known]
    if not both:
        return None
    return Change(
        evaluation=name,
        first=first[0],
        second=second[0],
        n=len(both),
        passed=(sum(left.passed for left, _ in both), sum(right.passed for _, right in both)),
        statistics=paired(
            [left.passed for left, _ in both], [right.passed for _, right in both], [left.source for left, _ in both]
        ),
        lost=[pair for pair in both if pair[0].passed and not pair[1].passed],
        won=[pair for pair in both if pair[1].passed and not pair[0].passed],
    )


def _subjects(raw: bytes) -> tuple[Subjects, int]:
    """The whole lines by subject and case, of which the latest counts, and how many are broken."""
    subjects: dict[str, dict[str, CaseResult]] = {}
    decoder, broken = msgspec.json.Decoder(CaseResult), 0
    for line in raw[: raw.rfind(b"\n") + 1].splitlines():
        try:
            result = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            broken += 1
        else:
            subjects.setdefault(result.subject, {})[result.case] = result
    return {subject: list(cases.values()) for subject, cases in subjects.items()}, broken
