"""Runs a suite over subjects: every case once, several answers of one subject in flight, results kept as they come."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from macaron.errors import ContextOverflow
from macaron.evals.compare import compared
from macaron.evals.record import CaseResult
from macaron.evals.results import Results, asked_digest
from macaron.evals.routing import Progress
from macaron.evals.stats import Interval, Paired, accuracy_interval, percentile
from macaron.evals.subjects import EXAMPLES, PARALLEL, open_subjects
from macaron.evals.suite import Case, Subject, Suite
from macaron.hcp import Loaded

NO_ROOM = "prompt does not fit"


class RunnableSubject(Subject, Protocol):
    """A subject whose results can be kept."""

    @property
    def revision(self) -> str:
        """Changes with everything that decides its answers."""
        ...


class SubjectSummary(Struct, frozen=True):
    """How a subject did on a suite.

    Attributes:
        interval: of the accuracy at 95 %, over sources where there are several.
        reasons: why cases were not passed, counted.
        per_source: passed and all cases of each source.
        seconds: median time of an answer; several ran at once.
        tokens: written in all.
    """

    n: int
    passed: int
    accuracy: float
    interval: Interval
    reasons: dict[str, int]
    per_source: dict[str, tuple[int, int]]
    seconds: float
    tokens: int


class SuiteReport(Struct, frozen=True):
    """Summaries by subject, and each pair of subjects compared."""

    suite: str
    subjects: dict[str, SubjectSummary]
    pairs: dict[tuple[str, str], Paired]

    def as_json(self) -> dict[str, Any]:
        """Plain values, the pairs as a list."""
        pairs = [{"first": one, "second": other, **found._asdict()} for (one, other), found in self.pairs.items()]
        table: dict[str, Any] = msgspec.to_builtins({"suite": self.suite, "subjects": self.subjects, "pairs": pairs})
        return table


async def run_suite(
    suite: Suite, subjects: Sequence[RunnableSubject], results: Results, progress: Progress, *,
    parallel: int = PARALLEL, limit: int = 0,
) -> SuiteReport:  # fmt: skip
    """Put every case of a suite to every subject, one subject after another.

    A case that `results` holds from the same subject, asked in the same words, is not asked again. A prompt that does
    not fit the context is a case that was not passed.

    Args:
        limit: only so many cases, from the first; 0 for all.

    Raises:
        BadRequest: the engine refused a case for another reason; that is an error of the suite.
        EngineError, Unavailable: the engine failed; what was answered is kept.
    """
    cases = suite.cases()[: limit or None]
    done = {
        subject.name: await _run_subject(suite, cases, subject, results, progress, parallel) for subject in subjects
    }
    return SuiteReport(suite.name, {name: summarise(found) for name, found in done.items()}, compared(done))


async def evaluate_suite(
    loaded: Loaded, suite: Suite, names: Sequence[str], head: str, adapters: Mapping[str, Path], results: Results,
    progress: Progress, *, limit: int = 0,
) -> SuiteReport:  # fmt: skip
    """Run a suite over subjects by name, all under the head of the specialist with label `head`, on one engine.

    Raises:
        ConfigError: a name is not `base`, `base+examples` or one of `adapters`, or an adapter cannot be used.
        BadRequest, EngineError, Unavailable: as from `run_suite` and `open_subjects`.
    """
    files = {name: adapters[name] for name in names if name in adapters}
    async with open_subjects(loaded, files) as opened:
        examples = suite.examples() if EXAMPLES in names else ()
        subjects = [opened.named(name, head=head, examples=examples) for name in names]
        return await run_suite(suite, subjects, results, progress, limit=limit)


async def _run_subject(
    suite: Suite, cases: Sequence[Case], subject: RunnableSubject, results: Results, progress: Progress, parallel: int
) -> list[CaseResult]:
    found: dict[str, CaseResult] = {}
    room = asyncio.Semaphore(parallel)

    async def run(case: Case) -> None:
        async with room:
            found[case.id] = await _run_case(suite, case, subject, results)
        progress(subject.name, len(found), len(cases))

    progress(subject.name, 0, len(cases))
    try:
        async with asyncio.TaskGroup() as group:
            for case in cases:
                group.create_task(run(case))
    except BaseExceptionGroup as failures:
        # One engine fails all the answers in flight in the same way.
        raise failures.exceptions[0] from None
    return [found[case.id] for case in cases]


async def _run_case(suite: Suite, case: Case, subject: RunnableSubject, results: Results) -> CaseResult:
    asked = asked_digest(suite.name, subject.revision, case, suite.max_tokens)
    known = results.find(subject.name, case.id, asked)
    if known is not None:
        return known
    try:
        answer = await subject.answer(case.messages, tools=case.tools, max_tokens=suite.max_tokens)
    except ContextOverflow as error:
        missed = CaseResult(case.id, case.source, subject.name, passed=False, output=error.message, reason=NO_ROOM)
        return results.add(missed, asked)
    # A check may run a program.
    return results.add(await asyncio.to_thread(suite.check, case, answer, subject.name), asked)


def summarise(results: Sequence[CaseResult]) -> SubjectSummary:
    """The summary of one subject's results, of which there is at least one."""
    passed = [result.passed for result in results]
    sources: dict[str, list[bool]] = {}
    for result in results:
        sources.setdefault(result.source, []).append(result.passed)
    return SubjectSummary(
        n=len(results),
        passed=sum(passed),
        accuracy=sum(passed) / len(passed),
        interval=accuracy_interval(passed, [result.source for result in results]),
        reasons=dict(Counter(result.reason or "no reason" for result in results if not result.passed).most_common()),
        per_source={name: (sum(values), len(values)) for name, values in sorted(sources.items())},
        seconds=percentile([result.seconds for result in results], 0.5),
        tokens=sum(result.tokens for result in results),
    )


def reasons_of(subjects: Mapping[str, SubjectSummary]) -> list[str]:
    """Every reason, the most frequent first."""
    total: Counter[str] = Counter()
    for summary in subjects.values():
        total.update(summary.reasons)
    return [reason for reason, _ in total.most_common()]
