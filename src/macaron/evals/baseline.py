"""The honest baseline of routing: TF-IDF and logistic regression, trained on the rows the adapter was trained on."""

from __future__ import annotations

import time
from collections.abc import Sequence

from macaron.errors import ConfigError
from macaron.evals.record import CaseResult
from macaron.evals.router import Questions
from macaron.evals.routing import route_result
from macaron.train.data.rows import RouteRow

NAME = "tfidf"
STEPS = 2000


def baseline_results(training: Sequence[RouteRow], rows: Sequence[RouteRow], questions: Questions) -> list[CaseResult]:
    """Train on `training`, then route `rows`.

    It reads what the route hop reads, context and clipped request, without the instruction. Words and pairs of words
    carry most of it; pieces of two to five characters make it fair where words are not divided by spaces.

    Raises:
        ConfigError: the training rows have fewer than two labels.
    """
    labels = sorted({row.label for row in training})
    if len(labels) < 2:
        raise ConfigError(f"the baseline's rows have only the label {', '.join(labels)}; two are needed", param="label")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    pieces = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, max_features=200_000)
    model = make_pipeline(make_union(words, pieces), LogisticRegression(max_iter=STEPS, C=10.0))
    model.fit([_seen(row, questions) for row in training], [row.label for row in training])
    return [_timed(model, row, questions) for row in rows]


def _timed(model: object, row: RouteRow, questions: Questions) -> CaseResult:
    began = time.perf_counter()
    label = str(model.predict([_seen(row, questions)])[0])  # type: ignore[attr-defined]
    return route_result(row, NAME, label, seconds=time.perf_counter() - began, output=label)


def _seen(row: RouteRow, questions: Questions) -> str:
    return str(questions.about(row.messages)[-1]["content"])
