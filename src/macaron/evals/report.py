"""Evaluations as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from macaron.evals.chat import ChatReport
from macaron.evals.perplexity import PerplexitySummary
from macaron.evals.routing import RoutingSummary
from macaron.evals.run_routing import RoutingReport
from macaron.evals.run_suite import SuiteReport, reasons_of
from macaron.evals.stats import Interval, Paired


def percent(value: float) -> str:
    """Such as `92.4 %`."""
    return f"{100 * value:.1f} %"


def percent_interval(interval: Interval) -> str:
    """Such as `89.0–95.1 %`."""
    return f"{100 * interval.low:.1f}–{100 * interval.high:.1f} %"


def p_value(p: float) -> str:
    """Such as `0.034`, or `<1e-4`."""
    return "<1e-4" if p < 1e-4 else f"{p:.4f}"


def routing_tables(report: RoutingReport) -> Group:
    """Everything `macaron evals routing` prints."""
    return Group(*_routing_tables(report))


def _routing_tables(report: RoutingReport) -> Iterator[Table | str]:
    yield _overview(report.subjects)
    yield "Intervals are at 95 %, over sources where there are several. Canonical answers and parse errors are of"
    yield "what the model writes with no grammar to hold it; accuracy and times are of the hop as it is served.\n"
    for name, summary in report.subjects.items():
        yield _confusion(name, summary)
    yield _groups("source", {name: summary.per_source for name, summary in report.subjects.items()})
    yield _groups("language", {name: summary.per_language for name, summary in report.subjects.items()})
    if report.pairs:
        yield pair_table(report.pairs)


def _overview(subjects: Mapping[str, RoutingSummary]) -> Table:
    right = partial(Column, justify="right")
    table = Table(
        "subject", right("n"), right("accuracy"), right("95 %"), right("canonical"), right("parse errors"),
        right("ms p50"), right("ms p90"), box=None,
    )  # fmt: skip
    for name, summary in subjects.items():
        table.add_row(
            name, str(summary.n), percent(summary.accuracy), percent_interval(summary.accuracy_ci),
            percent(summary.canonical), str(summary.parse_errors), f"{summary.latency_ms['p50']:.0f}",
            f"{summary.latency_ms['p90']:.0f}",
        )  # fmt: skip
    return table


def _confusion(name: str, summary: RoutingSummary) -> Table:
    labels = sorted({*summary.confusion, *(label for taken in summary.confusion.values() for label in taken)})
    table = Table(f"{name}: right \\ taken", *(Column(label, justify="right") for label in labels), "right", box=None)
    for label, taken in summary.confusion.items():
        counts = [str(taken.get(other, 0)) for other in labels]
        table.add_row(label, *counts, percent(taken.get(label, 0) / sum(taken.values())))
    return table


def _groups(title: str, subjects: Mapping[str, Mapping[str, Mapping[str, object]]]) -> Table:
    table = Table(title, Column("n", justify="right"), *subjects, box=None)
    for group in sorted({group for groups in subjects.values() for group in groups}):
        cells = [groups.get(group) for groups in subjects.values()]
        n = next(str(cell["n"]) for cell in cells if cell)
        table.add_row(group, n, *(_rate(cell) if cell else "" for cell in cells))
    return table


def _rate(cell: Mapping[str, object]) -> str:
    accuracy, interval = cell["accuracy"], cell["accuracy_ci"]
    assert isinstance(accuracy, float)
    assert isinstance(interval, Interval)
    return f"{percent(accuracy)} ({percent_interval(interval)})"


def pair_table(pairs: Mapping[tuple[str, str], Paired]) -> Table:
    """Pairs of subjects: who was right alone how often, and whether that can be chance."""
    right = partial(Column, justify="right")
    table = Table(
        "compared", right("n"), right("only first"), right("only second"), right("difference"), "95 %",
        right("McNemar p"), box=None,
    )  # fmt: skip
    for (one, other), found in pairs.items():
        table.add_row(
            f"{one} / {other}", str(found.n), str(found.only_first), str(found.only_second),
            f"{100 * found.difference:+.1f}", f"{100 * found.interval.low:+.1f} to {100 * found.interval.high:+.1f}",
            p_value(found.p),
        )  # fmt: skip
    return table


def suite_tables(report: SuiteReport) -> Group:
    """Everything `macaron evals tasks` prints."""
    return Group(_suite_overview(report), _reasons(report), pair_table(report.pairs))


def _suite_overview(report: SuiteReport) -> Table:
    right = partial(Column, justify="right")
    table = Table(report.suite, right("n"), right("passed"), right("accuracy"), right("95 %"), right("s p50"), box=None)
    for name, summary in report.subjects.items():
        table.add_row(
            name, str(summary.n), str(summary.passed), percent(summary.accuracy), percent_interval(summary.interval),
            f"{summary.seconds:.1f}",
        )  # fmt: skip
    return table


def _reasons(report: SuiteReport) -> Table:
    table = Table("not passed because", *(Column(name, justify="right") for name in report.subjects), box=None)
    for reason in reasons_of(report.subjects):
        table.add_row(reason, *(str(summary.reasons.get(reason, 0)) for summary in report.subjects.values()))
    return table


def chat_tables(report: ChatReport) -> Group:
    """Everything `macaron evals chat` prints."""
    answers = Table("case", "passed", Column("answer", overflow="fold"), box=None)
    for result in report.answers:
        answers.add_row(result.case, "yes" if result.passed else result.reason, printable(result.output))
    measured = [_perplexity(report.perplexity)] if report.perplexity else []
    return Group(*measured, suite_tables(report.identity), answers)


def _perplexity(found: PerplexitySummary) -> Table:
    right = partial(Column, justify="right")
    table = Table(
        right("dialogues"), right("tokens"), right("base"), right("with adapter"), right("ratio"), right("95 %"),
        title="perplexity", box=None,
    )  # fmt: skip
    table.add_row(
        str(found.n), str(found.tokens), f"{found.base:.3f}", f"{found.adapter:.3f}", f"{found.ratio:.4f}",
        f"{found.interval.low:.4f}–{found.interval.high:.4f}",
    )  # fmt: skip
    return table


def printable(text: str) -> Text:
    """A model's words without control characters and without markup: they must not steer the terminal."""
    return Text("".join(char for char in text if char == "\n" or " " <= char < "\x7f" or char > "\x9f"))
