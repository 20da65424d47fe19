"""Capability diagnosis: a subject answers the probes of each dimension, a judge scores the answers.

First all answers, then all verdicts, each kept as it comes: a judge that fails costs no answer, and a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from macaron.evals.dimensions import Dimension, Probe
from macaron.evals.judge import Judge, judge_messages
from macaron.evals.record import CaseResult
from macaron.evals.results import Results, asked_digest
from macaron.evals.routing import Progress
from macaron.evals.run_suite import RunnableSubject

MAX_TOKENS = 384
GOOD = 4
INVALID = "invalid verdict"
PARALLEL = 4


class Probed(NamedTuple):
    """One probe of one dimension."""

    dimension: Dimension
    probe: Probe


class DimensionScore(Struct, frozen=True):
    """How a subject did on a dimension.

    Attributes:
        n: answers that were judged.
        mean: of the valid scores, None where there is none.
        scores: probe → score.
        invalid: the problem of a verdict that is none → how often.
    """

    name: str
    n: int
    mean: float | None
    scores: dict[str, int]
    invalid: dict[str, int]


async def answer_probes(
    dimensions: Sequence[Dimension], subject: RunnableSubject, answers: Results, progress: Progress
) -> list[CaseResult]:
    """The subject's answers, in the order of the probes; those in `answers` are not asked for again.

    Raises:
        EngineError, Unavailable: the engine failed; answers that came are kept.
    """

    async def answer(probed: Probed) -> CaseResult:
        messages = probed.probe.messages()
        asked = asked_digest(subject.revision, messages, MAX_TOKENS)
        found = answers.find(subject.name, probed.probe.id, asked)
        if found is not None:
            return found
        said = await subject.answer(messages, max_tokens=MAX_TOKENS)
        result = CaseResult(
            case=probed.probe.id, source=probed.dimension.name, subject=subject.name, passed=bool(said.text.strip()),
            output=said.text, reason="" if said.status == "completed" else said.status, seconds=said.seconds,
            tokens=said.tokens,
        )  # fmt: skip
        return answers.add(result, asked)

    return await _each(_probed(dimensions), answer, lambda done, total: progress(subject.name, done, total))


async def judge_answers(
    dimensions: Sequence[Dimension], answers: Sequence[CaseResult], judge: Judge, scores: Results, progress: Progress
) -> list[CaseResult]:
    """A scored result for each answer, in the same order; those in `scores` are not judged again.

    Judge, hash of the prompt, and raw verdict are in `detail`, beside `score`, which is None for an invalid verdict. An
    answer passes with a score of 4 or 5.

    Raises:
        ConfigError, Unavailable: the judge refuses or does not answer; verdicts that came are kept.
    """
    by_case = {result.case: result for result in answers}

    async def score(probed: Probed) -> CaseResult:
        answer = by_case[probed.probe.id]
        messages = probed.probe.messages()
        asked = asked_digest(judge.identity, judge_messages(probed.dimension, messages, answer.output))
        found = scores.find(answer.subject, answer.case, asked)
        if found is not None:
            return found
        verdict = await judge.judge(probed.dimension, messages, answer.output)
        good = verdict.score is not None and verdict.score >= GOOD
        result = CaseResult(
            case=answer.case, source=answer.source, subject=answer.subject, passed=good, output=answer.output,
            reason=INVALID if verdict.score is None else "" if good else "low score",
            seconds=answer.seconds, tokens=answer.tokens,
            detail={
                "score": verdict.score, "why": verdict.reason, "problem": verdict.problem, "verdict": verdict.raw,
                "judge": verdict.judge, "rubric": rubric_digest(probed), "prompt": verdict.prompt,
                "judge_seconds": verdict.seconds,
            },
        )  # fmt: skip
        return scores.add(result, asked)

    return await _each(_probed(dimensions), score, lambda done, total: progress("judge", done, total))


def dimension_scores(results: Sequence[CaseResult]) -> dict[str, DimensionScore]:
    """Results of one subject by dimension, in the order they come in."""
    found: dict[str, DimensionScore] = {}
    for name in dict.fromkeys(result.source for result in results):
        mine = [result for result in results if result.source == name]
        scores = {result.case: score for result in mine if (score := score_of(result)) is not None}
        invalid: dict[str, int] = {}
        for result in mine:
            if result.case not in scores:
                problem = str(result.detail.get("problem", "")) or INVALID
                invalid[problem] = invalid.get(problem, 0) + 1
        mean = sum(scores.values()) / len(scores) if scores else None
        found[name] = DimensionScore(name, len(mine), mean, scores, invalid)
    return found


def score_of(result: CaseResult) -> int | None:
    """The score of a judged result, None where the verdict was invalid."""
    score = result.detail.get("score")
    return score if isinstance(score, int) else None


def rubric_digest(probed: Probed) -> str:
    """Names the question, the meaning of the scores and the probe; scores of different ones are not compared."""
    return asked_digest(judge_messages(probed.dimension, probed.probe.messages(), ""))


def _probed(dimensions: Sequence[Dimension]) -> list[Probed]:
    return [Probed(dimension, probe) for dimension in dimensions for probe in dimension.probes]


async def _each(
    items: Sequence[Probed],
    work: Callable[[Probed], Awaitable[CaseResult]],
    report: Callable[[int, int], None],
) -> list[CaseResult]:
    """Results in the order of `items`, some at a time; the first failure ends the rest and is raised as it is."""
    done = 0
    gate = asyncio.Semaphore(PARALLEL)

    async def one(item: Probed) -> CaseResult:
        nonlocal done
        async with gate:
            result = await work(item)
        done += 1
        report(done, len(items))
        return result

    report(0, len(items))
    tasks = [asyncio.ensure_future(one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
