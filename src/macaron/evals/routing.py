"""How often the route is right: measured on rows of sources that were never trained on.

Accuracy counts the label the service would take, by the constrained hop and, where that fails, the default. Canonical
compliance and parse errors say what the model itself writes to the same prompt when no grammar holds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from macaron.evals.record import CaseResult
from macaron.evals.results import Results, asked_digest
from macaron.evals.router import RouteAnswer, RouteAsker
from macaron.evals.stats import Interval, accuracy_interval, percentile
from macaron.train.data.rows import RouteRow

Progress = Callable[[str, int, int], None]
"""Told about a subject: its name, cases done, cases in all."""


class RoutingSummary(Struct, frozen=True):
    """How one subject routes.

    Attributes:
        accuracy_ci: 95 % interval, clustered by source where there are several.
        canonical: share of answers that are a label and nothing else.
        parse_errors: answers out of which no label can be read.
        confusion: right label -> label taken -> count.
        per_source, per_language: `n`, `accuracy` and `accuracy_ci` of each.
        latency_ms: `p50` and `p90` of the hop.
    """

    n: int
    accuracy: float
    accuracy_ci: Interval
    canonical: float
    parse_errors: int
    confusion: dict[str, dict[str, int]]
    per_source: dict[str, dict[str, Any]]
    per_language: dict[str, dict[str, Any]]
    latency_ms: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """The published keys; languages are in the printed report only."""
        return {
            "n": self.n, "accuracy": self.accuracy, "accuracy_ci": list(self.accuracy_ci), "canonical": self.canonical,
            "parse_errors": self.parse_errors, "confusion": self.confusion, "per_source": self.per_source,
            "latency_ms": self.latency_ms,
        }  # fmt: skip


async def route_rows(
    rows: Sequence[RouteRow], asker: RouteAsker, subject: str, revision: str, results: Results, progress: Progress
) -> list[CaseResult]:
    """Ask for every row that `results` does not hold yet; one at a time, so that the times are those of a hop.

    Raises:
        BadRequest: a row's messages have no shape that is understood.
        EngineError, Unavailable: the engine failed; what was asked is kept.
    """
    done: list[CaseResult] = []
    for number, row in enumerate(rows):
        progress(subject, number, len(rows))
        # The question holds instruction, cards and clipping: a result is stale when any of them changes.
        asked = asked_digest(revision, asker.questions.about(row.messages), row.label)
        known = results.find(subject, row.id, asked)
        done.append(known or results.add(_result(row, subject, await asker.ask(row.messages)), asked))
    progress(subject, len(rows), len(rows))
    return done


def route_result(row: RouteRow, subject: str, label: str, *, seconds: float = 0.0, output: str = "") -> CaseResult:
    """What a subject made of a row, when it took `label`."""
    passed = label == row.label
    return CaseResult(
        case=row.id, source=row.source, subject=subject, passed=passed, output=output, seconds=seconds,
        reason="" if passed else f"{row.label} taken for {label}",
        detail={"label": row.label, "taken": label, "language": row.language, "canonical": True, "parsed": True},
    )  # fmt: skip


def _result(row: RouteRow, subject: str, answer: RouteAnswer) -> CaseResult:
    plain = route_result(row, subject, answer.label, seconds=answer.seconds, output=answer.text)
    said = {"canonical": answer.canonical, "parsed": answer.parsed, "decided": answer.decided, "tokens": answer.tokens}
    return replace(plain, detail=plain.detail | said)


def summarise(results: Sequence[CaseResult]) -> RoutingSummary:
    """The summary of one subject's results, of which there is at least one."""
    confusion: dict[str, Counter[str]] = {}
    for result in results:
        confusion.setdefault(result.detail["label"], Counter())[result.detail["taken"]] += 1
    seconds = [result.seconds for result in results]
    overall = _rate(results, [result.source for result in results])
    return RoutingSummary(
        n=len(results),
        accuracy=overall["accuracy"],
        accuracy_ci=overall["accuracy_ci"],
        canonical=sum(result.detail["canonical"] for result in results) / len(results),
        parse_errors=sum(not result.detail["parsed"] for result in results),
        confusion={label: dict(sorted(taken.items())) for label, taken in sorted(confusion.items())},
        per_source=_each(results, lambda result: result.source),
        per_language=_each(results, lambda result: result.detail["language"]),
        latency_ms={"p50": 1000 * percentile(seconds, 0.5), "p90": 1000 * percentile(seconds, 0.9)},
    )


def _each(results: Sequence[CaseResult], key: Callable[[CaseResult], str]) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[CaseResult]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return {name: _rate(group, [result.source for result in group]) for name, group in sorted(groups.items())}


def _rate(results: Sequence[CaseResult], clusters: Sequence[str]) -> dict[str, Any]:
    passed = [result.passed for result in results]
    return {"n": len(passed), "accuracy": sum(passed) / len(passed), "accuracy_ci": accuracy_interval(passed, clusters)}
