"""Rows for the terminal, databases and config files: a request, one fenced block, one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from random import Random

import msgspec
from msgspec import Struct

from macaron.train.data.rows import AnyRow, SftRow
from macaron.train.data.source import BuildContext
from macaron.train.demi.code.wording import answer

DEFAULT_ROWS = 120
_FIELD = re.compile(r"<(\w+)>")


class Snippet(Struct, frozen=True, forbid_unknown_fields=True):
    """Attributes:
    language: of the fence.
    requests: ways to say it; `<word>` stands for a value of that name.
    code: the answer, with the same values.
    remark: one sentence.
    """

    language: str
    requests: tuple[str, ...]
    code: str
    remark: str


class SnippetBank(Struct, frozen=True, forbid_unknown_fields=True):
    """Attributes:
    values: by name, what may stand for `<name>`.
    """

    values: dict[str, tuple[str, ...]]
    snippet: tuple[Snippet, ...]


def bank() -> SnippetBank:
    text = files("macaron.train.demi.code.bank").joinpath("snippets.toml").read_bytes()
    return msgspec.toml.decode(text, type=SnippetBank)


def rows(context: BuildContext) -> Iterable[AnyRow]:
    """`limit` rows, or 120: every snippet comes up before one comes again."""
    wanted = context.limit or DEFAULT_ROWS
    known = bank()
    order: list[int] = []
    for number in range(wanted):
        if not order:
            order = context.random.sample(range(len(known.snippet)), len(known.snippet))
        place = order.pop()
        yield _row(f"shell-{number}", known, place, context.random)


def _row(row_id: str, known: SnippetBank, place: int, random: Random) -> SftRow:
    snippet = known.snippet[place]
    request = random.choice(snippet.requests)
    named = dict.fromkeys(_FIELD.findall(request))
    values = {name: random.choice(known.values[name]) for name in named}
    if "old" in values:
        # The two belong together.
        values["new"] = known.values["new"][known.values["old"].index(values["old"])]
    said = _filled(request, values)
    block = answer(_filled(snippet.code, values), _filled(snippet.remark, values), snippet.language)
    return SftRow(
        id=row_id, source="macaron-shell", group=f"snippet-{place}", messages=({"role": "user", "content": said}, block)
    )


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda found: values.get(found[1], found[0]), text)
