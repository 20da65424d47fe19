"""Questions and requests of L0 from packages: FreshQA and PersistBench in inspect-evals, one-step calls in BFCL."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any

from macaron.train.data.rows import AnyRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.requests import Request, mentions, sample, single_turn, squeeze
from macaron.train.demi.route.tau2 import PACKAGE

LABEL = "L0"
BFCL = "bfcl-eval==2026.3.23"
FRESHQA = "inspect_evals/abstention_bench/data/freshqa/FreshQA_v12182024.csv"
PERSISTBENCH = "inspect_evals/persistbench/benchmark_samples/sycophancy.jsonl"
BFCL_FILES = ("BFCL_v4_irrelevance", "unused_datasets/question/BFCL_v4_chatable")
GROUP_CHARACTERS = 60
SERVICE_WORDS = (
    "restaurant", "hotel", "flight", "book", "order", "reserv", "itinerary", "near", "buy", "deliver", "ticket",
    "my account", "customer", "lawsuit", "lawyer", "schedule", "budget", "travel", "trip", "price of the house", "rent",
    "concert", "hire", "find a", "find me", "security guard", "yoga", "train station", "my portfolio", "my investment",
    "property records", "house", "nurser",
)  # fmt: skip
CODE_WORDS = (
    "database", "dataset", "python", "code", "algorithm", "sort the", "random forest", "regression", "table", "plot",
    "histogram", "sql", "software", "function", "train a", "array", "list of", "dictionary", "generate a", "script",
    "create a", "game", "web", "repository", "technical", "architecture", "backend", "application", "platform",
)  # fmt: skip


def freshqa(context: BuildContext) -> Iterator[AnyRow]:
    """Questions on facts, some with a false premise."""
    path = context.packages.folder(PACKAGE) / FRESHQA
    with path.open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.reader(file) if len(line) > 2 and line[0].isdigit()]
    asked = (Request(squeeze(line[2]), f"freshqa:{line[0]}") for line in lines)
    return single_turn("freshqa", LABEL, sample(context.random, asked, context.limit))


def persistbench(context: BuildContext) -> Iterator[AnyRow]:
    """General questions and writing tasks (its `sycophancy` part). Its other parts ask about the user's own affairs,
    where the rules do not say at once whether that is advice or coordination.
    """
    text = (context.packages.folder(PACKAGE) / PERSISTBENCH).read_text(encoding="utf-8")
    queries = [squeeze(json.loads(line)["query"]) for line in text.splitlines()]
    asked = (
        Request(query, f"persistbench:{query[:GROUP_CHARACTERS]}")
        for query in queries
        if not mentions(query, CODE_WORDS)
    )
    return single_turn("persistbench", LABEL, sample(context.random, asked, context.limit))


def bfcl(context: BuildContext) -> Iterator[AnyRow]:
    """One-step sums and look-ups; what names a service of L1 or a thing of L2 is left out."""
    folder = context.packages.folder(BFCL) / "bfcl_eval" / "data"
    cases = (
        json.loads(line)
        for name in BFCL_FILES
        for line in (folder / f"{name}.json").read_text(encoding="utf-8").splitlines()
    )
    texts = (squeeze(_question(case)).strip("'") for case in cases)
    asked = (
        Request(text, f"bfcl:{text[:GROUP_CHARACTERS]}")
        for text in texts
        if not mentions(text, SERVICE_WORDS) and not mentions(text, CODE_WORDS)
    )
    return single_turn("bfcl", LABEL, sample(context.random, asked, context.limit))


def _question(case: dict[str, Any]) -> str:
    question = case["question"]
    return str(question if isinstance(question, str) else question[0][-1]["content"])
