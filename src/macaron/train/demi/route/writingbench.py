"""WritingBench as inspect-evals packages it: requests to write something, in English and Chinese.

Left out, by rules stated before any model was run: queries that mention code or a web page; kinds of text where the
label rules do not clearly say whether they are writing or a concrete affair of the user's (disputes, contracts in a
case, events, trips, letters); and queries longer than the router is shown whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from macaron.train.data.rows import AnyRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.requests import Request, sample, single_turn
from macaron.train.demi.route.tau2 import PACKAGE

LABEL = "L0"
FILE = "inspect_evals/writingbench/benchmark_all.jsonl"
MAX_BYTES = 1_500
UNSETTLED = frozenset(
    {
        "Legal Consultation", "Litigation Documents", "Defense Plea", "Legal Opinion", "Event Planning",
        "Business Correspondence", "Educational Consulting", "Parent-Teacher Meeting", "Travel Guide", "Game Design",
        "Greeting Message", "Legal Agreement", "Contract", "Technical Documentation", "Requirements Specification",
        "Human Resource Management", "Sales Letter",
    }
)  # fmt: skip
_CODE = re.compile(
    r"\bcod(?:e|ing)\b|python|java|html|\bsql\b|latex|website|web page|代码|编程|网页|网站", re.IGNORECASE
)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def rows(context: BuildContext) -> Iterator[AnyRow]:
    """The kept queries; the language is Chinese where more than one character in ten is."""
    text = (context.packages.folder(PACKAGE) / FILE).read_text(encoding="utf-8")
    cases = (json.loads(line) for line in text.splitlines())
    kept = (
        Request(case["query"].strip(), f"writingbench:{case['domain2']}", language(case["query"]))
        for case in cases
        if case["domain2"] not in UNSETTLED
        and not _CODE.search(case["query"])
        and len(case["query"].encode()) <= MAX_BYTES
    )
    return single_turn("writingbench", LABEL, sample(context.random, kept, context.limit))


def language(text: str) -> str:
    """`zh` or `en` by the share of Chinese characters."""
    return "zh" if len(_CHINESE.findall(text)) * 10 > len(text) else "en"
