"""One subject under all four labels, so that only the deliverable tells them apart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from macaron.train.data.rows import AnyRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.phrases import fill, load_table
from macaron.train.demi.route.requests import Request, row

LABELS = ("L0", "L1", "L2", "L3")


class _Subject(NamedTuple):
    name: str
    language: str
    phrases: dict[str, Any]


def rows(context: BuildContext) -> Iterator[AnyRow]:
    """Groups of four rows, one a label, over the subjects of both languages in turn; only whole groups."""
    random = context.random
    for number, subject in enumerate(islice(_endless(random), context.limit // len(LABELS))):
        for place, label in enumerate(LABELS):
            text = fill(random, random.choice(subject.phrases[label]), {"subject": [subject.name]})
            request = Request(text, f"contrast:{subject.name}", subject.language)
            yield row("own-contrast", number * len(LABELS) + place, label, request)


def _endless(random: Random) -> Iterator[_Subject]:
    subjects = [
        _Subject(name, language, phrases)
        for language, phrases in load_table("contrast").items()
        for name in phrases["subjects"]
    ]
    while True:
        random.shuffle(subjects)
        yield from subjects
