"""One subject as a text to write, as an affair to settle and as something to press."""

from __future__ import annotations

from collections.abc import Iterator

from macaron.train.data.rows import AnyRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.route.phrases import fill, load_table
from macaron.train.demi.route.requests import Request, row

LABELS = ("L0", "L1", "L3")


def rows(context: BuildContext) -> Iterator[AnyRow]:
    """Groups of three rows, one a label, each subject of both languages once; only whole groups."""
    random = context.random
    subjects = [
        (name, language, phrases) for language, table in load_table("deliverables").items() for name, *phrases in table
    ]
    random.shuffle(subjects)
    whole = context.limit // len(LABELS) if context.limit else None
    for number, (name, language, phrases) in enumerate(subjects[:whole]):
        slots = load_table(f"slots.{language}")
        for place, (label, phrase) in enumerate(zip(LABELS, phrases, strict=True)):
            request = Request(fill(random, phrase, slots), f"deliverable:{name}", language)
            yield row("own-deliverables", number * len(LABELS) + place, label, request)
