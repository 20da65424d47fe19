"""What changed from the parent's diagnosis to a run's, worst first, and the training rows near what got worse."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from macaron.evals.diagnose import DimensionScore
from macaron.evals.record import CaseResult
from macaron.evals.stats import CONFIDENCE, Interval
from macaron.train.data.rows import AnyRow, PreferenceRow

MAX_ROWS = 50_000
ROW_CHARACTERS = 4_000
NEAREST = 3


class Change(Struct, frozen=True):
    """How a dimension changed.

    Attributes:
        n: probes with a valid score in both.
        difference: mean of the run's scores less the parent's, on those probes.
        interval: Student's at 95 %, None of fewer than two probes.
        worse: probes whose score fell, the largest fall first, with the fall.
    """

    name: str
    n: int
    difference: float
    interval: Interval | None
    worse: dict[str, int]


class NearRow(Struct, frozen=True):
    """A training row and its cosine similarity, 0 to 1, to a case that got worse."""

    row: str
    source: str
    similarity: float


def comparable(run: Sequence[CaseResult], parent: Sequence[CaseResult]) -> list[CaseResult]:
    """Those of the parent's results that the same judge gave on the same rubric and probe as the run's."""
    wanted = {result.case: _yardstick(result) for result in run}
    return [result for result in parent if wanted.get(result.case) == _yardstick(result)]


def _yardstick(result: CaseResult) -> tuple[object, ...]:
    judge = result.detail.get("judge")
    names = judge if isinstance(judge, dict) else {}
    return (result.source, result.detail.get("rubric"), *(names.get(key) for key in ("url", "model", "answered_by")))


def changes(run: Mapping[str, DimensionScore], parent: Mapping[str, DimensionScore]) -> list[Change]:
    """The change of every dimension that both have, the largest regression first."""
    found = [_change(run[name], parent[name]) for name in run if name in parent]
    return sorted((change for change in found if change.n), key=lambda change: change.difference)


def rows_behind(
    cases: Mapping[str, str], rows: Iterable[AnyRow], *, nearest: int = NEAREST
) -> dict[str, list[NearRow]]:
    """For each case, the three training rows whose words are most like it, by TF-IDF.

    Similar is not responsible: it is where to look first.

    Args:
        cases: case → its conversation and answer as text.
        rows: of the run's data; the first 50,000 are looked at, each to 4,000 characters.
    """
    taken = [(row.id, row.source, row_text(row)) for row, _ in zip(rows, range(MAX_ROWS), strict=False)]
    if not cases or not taken:
        return {}
    from sklearn.feature_extraction.text import TfidfVectorizer

    # Characters, so that languages without spaces are compared too.
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, max_features=100_000)
    known = vectors.fit_transform([text for _, _, text in taken])
    similar = (vectors.transform(list(cases.values())) @ known.T).toarray()
    found = {}
    for case, values in zip(cases, similar, strict=True):
        order = sorted(range(len(taken)), key=lambda at: -values[at])[:NEAREST]
        found[case] = [NearRow(taken[at][0], taken[at][1], float(values[at])) for at in order if values[at] > 0]
    return found


def row_text(row: AnyRow) -> str:
    """What a row says, clipped."""
    messages = (*row.prompt, *row.chosen) if isinstance(row, PreferenceRow) else row.messages
    said = [message["content"] for message in messages if isinstance(message.get("content"), str)]
    return "\n".join(said)[:ROW_CHARACTERS]


def _change(run: DimensionScore, parent: DimensionScore) -> Change:
    falls = {case: run.scores[case] - parent.scores[case] for case in run.scores if case in parent.scores}
    differences = list(falls.values())
    worse = dict(sorted(((case, fall) for case, fall in falls.items() if fall < 0), key=lambda item: item[1]))
    mean = statistics.fmean(differences) if differences else 0.0
    return Change(run.name, len(differences), mean, _student(differences), worse)


def _student(differences: Sequence[int]) -> Interval | None:
    n = len(differences)
    if n < 2:
        return None
    from scipy.stats import t

    mean, error = statistics.fmean(differences), statistics.stdev(differences) / math.sqrt(n)
    reach = float(t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
    return Interval(mean - reach, mean + reach)
