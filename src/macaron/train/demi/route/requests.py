"""What the builders of routing rows share: rows of one request, a sample within the limit, the text of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from macaron.train.data.rows import RouteRow


class Request(NamedTuple):
    """A request of one turn; `group` names what a split must keep together."""

    text: str
    group: str = ""
    language: str = "en"


def row(source: str, number: int, label: str, request: Request) -> RouteRow:
    """A row of one turn; its number makes its id within the source."""
    return RouteRow(
        id=f"{source}-{number:05d}",
        source=source,
        group=request.group,
        language=request.language,
        messages=({"role": "user", "content": request.text},),
        label=label,
    )


def single_turn(source: str, label: str, requests: Iterable[Request]) -> Iterator[RouteRow]:
    """Rows of one label, numbered from 0."""
    return (row(source, number, label, request) for number, request in enumerate(requests))


def sample(random: Random, requests: Iterable[Request], limit: int) -> list[Request]:
    """At most `limit` requests (0 for all) in random order, each text once."""
    distinct = list({request.text: request for request in requests}.values())
    random.shuffle(distinct)
    return distinct[:limit] if limit else distinct


def squeeze(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def shorten(text: str, characters: int) -> str:
    """A text of at most so many characters, cut after a sentence or a line where there is one in its second half."""
    if len(text) <= characters:
        return text
    head = text[:characters]
    cut = max(head.rfind(mark) for mark in (". ", "\n", "? ", "! ", "。"))
    return head[: cut + 1].rstrip() if cut >= characters // 2 else head.rstrip()


def mentions(text: str, words: Sequence[str]) -> bool:
    """Whether one of the words, given in lower case, is in the text."""
    lowered = text.lower()
    return any(word in lowered for word in words)
