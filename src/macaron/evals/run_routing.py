"""An evaluation of routing from data files to summaries: each subject on an engine of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from macaron.errors import ConfigError
from macaron.evals.baseline import NAME as BASELINE
from macaron.evals.baseline import baseline_results
from macaron.evals.compare import compared
from macaron.evals.record import CaseResult
from macaron.evals.results import Results
from macaron.evals.router import Questions, RouteAsker
from macaron.evals.routing import Progress, RoutingSummary, route_rows, summarise
from macaron.evals.stats import Paired
from macaron.evals.subjects import BASE, open_subjects
from macaron.hcp import Loaded
from macaron.registry.cards import Registry, registry_from
from macaron.train.data.rows import RouteRow


class RoutingReport(NamedTuple):
    """Summaries by subject, the profile's own first; and each pair of subjects compared."""

    subjects: dict[str, RoutingSummary]
    pairs: dict[tuple[str, str], Paired]


async def evaluate_routing(
    loaded: Loaded, rows: Sequence[RouteRow], adapters: Mapping[str, Path], results: Results, progress: Progress, *,
    base: bool = False, training: Sequence[RouteRow] = (), registry: Registry | None = None,
) -> RoutingReport:  # fmt: skip
    """Route all rows with the entry specialist, with every adapter that is no specialist of the profile (a control),
    with the bare base where it is wanted, and with the baseline where there are rows to train it on.

    The engines run one after another: each gives the route hop its only slot, as in a quiet service.

    Args:
        registry: the labels and cards to ask with, the profile's if None.

    Raises:
        ConfigError, BadRequest: there are no rows, or a row or an adapter cannot be used.
        EngineError, Unavailable: the engine failed; what was asked is kept in `results`.
    """
    if not rows:
        raise ConfigError("there are no rows; name a file with `messages`, `label` and `source` in every line")
    questions = Questions(loaded, registry or registry_from(loaded))
    entry = questions.registry.entry
    chosen: dict[str, str | None] = {entry: entry if entry in adapters else None}
    chosen |= {name: name for name in adapters if questions.registry.get(name) is None}
    if base:
        chosen[BASE] = None
    done: dict[str, list[CaseResult]] = {}
    for name, adapter in chosen.items():
        files = {adapter: adapters[adapter]} if adapter else {}
        async with open_subjects(loaded, files, routes=True, entry=adapter) as subjects:
            asker = RouteAsker(questions, subjects.engine, adapter)
            done[name] = await route_rows(rows, asker, name, subjects.revision(adapter), results, progress)
    if training:
        done[BASELINE] = await asyncio.to_thread(baseline_results, training, rows, questions)
    return RoutingReport({name: summarise(found) for name, found in done.items()}, compared(done))


def routing_json(report: RoutingReport) -> dict[str, Any]:
    """The first subject's summary, and the same of each under `subjects` where there are several."""
    summaries = {name: summary.as_json() for name, summary in report.subjects.items()}
    first = next(iter(summaries.values()))
    return first if len(summaries) == 1 else {**first, "subjects": summaries}
