"""A diagnosis as a whole: scores, changes against the parent, the rows behind, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from rich.console import Group
from rich.table import Table

from macaron.errors import ConfigError
from macaron.evals.diagnose import DimensionScore, dimension_scores
from macaron.evals.diagnosis_change import Change, NearRow, changes, comparable, rows_behind
from macaron.evals.dimensions import Dimension
from macaron.evals.record import CaseResult
from macaron.train.data.rows import AnyRow

SCORES = "diagnosis.jsonl"
MAX_FILE = 64 << 20


class DiagnosisReport(Struct, frozen=True):
    """Attributes:
    judges: what answered as the judge, each once.
    changes: against the parent, the largest regression first; empty without one.
    not_comparable: of the parent's results, those of another judge, rubric or probe.
    behind: case that got worse → training rows most like it.
    """

    subject: str
    judges: list[dict[str, str]]
    dimensions: dict[str, DimensionScore]
    changes: list[Change]
    not_comparable: int
    behind: dict[str, list[NearRow]]


def diagnosis_report(
    dimensions: Sequence[Dimension], results: Sequence[CaseResult], parent: Sequence[CaseResult], rows: Iterator[AnyRow]
) -> DiagnosisReport:
    """Put a run's results beside its parent's. `rows`, the training rows, are read only if something got worse."""
    mine, theirs = dimension_scores(results), comparable(results, parent)
    changed = changes(mine, dimension_scores(theirs))
    spoken = {result.case: result.output for result in results}
    worse = {
        probe.id: "\n".join((*probe.turns, spoken[probe.id]))
        for dimension in dimensions
        for probe in dimension.probes
        if any(probe.id in change.worse for change in changed)
    }
    judges = {msgspec.json.encode(result.detail["judge"], order="deterministic") for result in results}
    return DiagnosisReport(
        subject=results[0].subject if results else "",
        judges=[msgspec.json.decode(judge, type=dict[str, str]) for judge in sorted(judges)],
        dimensions=mine,
        changes=changed,
        not_comparable=len(parent) - len(theirs),
        behind=rows_behind(worse, rows) if worse else {},
    )


def read_scores(path: Path) -> list[CaseResult]:
    """The results of a diagnosis: of a run folder, its `evals` folder, or the file itself. The last of a case counts.

    Raises:
        ConfigError: there are none, or a line is not a result.
    """
    places = (path, path / SCORES, path / "evals" / SCORES)
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise ConfigError(f"there is no diagnosis in {path}; run `macaron evals diagnose` on it first", param="parent")
    if file.stat().st_size > MAX_FILE:
        raise ConfigError(f"{file} is larger than {MAX_FILE} bytes", param="parent")
    found: dict[str, CaseResult] = {}
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            result = msgspec.json.decode(line, type=CaseResult)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}, line {number} is not a result: {error}", param="parent") from None
        found[result.case] = result
    return list(found.values())


def diagnosis_tables(report: DiagnosisReport) -> Group:
    """What a person reads first: what got worse, then all scores, then where to look."""
    parts: list[Table | str] = []
    if report.changes:
        parts.append(_changes_table(report.changes))
    parts.append(_scores_table(report.dimensions))
    if report.not_comparable:
        parts.append(f"{report.not_comparable} of the parent's results are of another judge or rubric: not compared.")
    if report.behind:
        parts.append(_behind_table(report.behind))
    judges = ", ".join(f"{judge.get('model')} at {judge.get('url')}" for judge in report.judges)
    return Group(*parts, f"Judged by {judges}.")


def _changes_table(found: Sequence[Change]) -> Table:
    table = Table(
        "dimension", "change", "95 % interval", "n", "probes that got worse", title="Change against the parent"
    )
    for change in found:
        interval = f"{change.interval.low:+.2f} to {change.interval.high:+.2f}" if change.interval else ""
        worse = ", ".join(f"{case} ({fall:+d})" for case, fall in change.worse.items())
        table.add_row(change.name, f"{change.difference:+.2f}", interval, str(change.n), worse)
    return table


def _scores_table(found: Mapping[str, DimensionScore]) -> Table:
    table = Table("dimension", "mean of 1 to 5", "valid of n", "invalid verdicts", title="Scores")
    for score in found.values():
        invalid = ", ".join(f"{problem}: {count}" for problem, count in score.invalid.items())
        mean = "none" if score.mean is None else f"{score.mean:.2f}"
        table.add_row(score.name, mean, f"{len(score.scores)} of {score.n}", invalid or "none")
    return table


def _behind_table(behind: Mapping[str, Sequence[NearRow]]) -> Table:
    table = Table("probe", "training row", "source", "similarity", title="Training rows most like what got worse")
    for case, rows in behind.items():
        for row in rows:
            table.add_row(case, row.row, row.source, f"{row.similarity:.2f}")
    return table
