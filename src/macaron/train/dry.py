"""A dry run: what would be trained on, token by token, and how long it would take."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from macaron.train.base import Base
from macaron.train.batches import computed
from macaron.train.encode import Encoded, Pair
from macaron.train.prepare import Rows
from macaron.train.trainer import Prepared

SHOWN_ROWS = 2
SHOWN_TOKENS = 600
_LEARNED, _GIVEN = "bold black on green", "dim"
_EFFICIENCY = 0.6
"""Of the speed of a bare matrix product, what training reached where it was measured."""


class Volume(NamedTuple):
    """Rows, tokens of the rows, tokens that carry loss."""

    rows: int
    tokens: int
    learned: int


def show(prepared: Prepared, console: Console) -> None:
    """Print some rows with their loss tokens marked, counts, and an estimate of the time."""
    train = prepared.material.train
    for kind, rows in _kinds(train).items():
        for row in rows[:SHOWN_ROWS]:
            console.print(Text(f"{kind}: loss on the marked tokens", style="bold"))
            console.print(marked(row, prepared.tokenizer))
            console.print()
    console.print(_table(prepared))
    if prepared.material.bad:
        console.print(f"{len(prepared.material.bad)} rows left out; the first: {prepared.material.bad[0].reason}")
    tokens = sum(_computed(batch) for batch in prepared.steps)
    minutes = tokens / estimated_speed(prepared.base) / 60
    console.print(
        f"{len(prepared.steps)} steps, {tokens} tokens to compute, about {minutes:.0f} min on this processor",
        highlight=False,
    )


def marked(row: Encoded, tokenizer: Any) -> Text:
    """A row's text with the tokens that carry loss marked; the middle of what is given is cut if it is long."""
    learned = set(row.learned)
    text = Text()
    end = 0
    # A token may be part of a character, so that tokens are shown together as far as they are alike.
    for is_learned, start, stop in _stretches(_shown_places(row), learned):
        if start != end:
            text.append(" […] ", style="italic")
        text.append(tokenizer.decode(row.ids[start:stop]), style=_LEARNED if is_learned else _GIVEN)
        end = stop
    return text


def _stretches(places: Sequence[int], learned: Set[int]) -> Iterator[tuple[bool, int, int]]:
    """Whether it carries loss, start and end of each run of tokens that are next to each other and alike."""
    start = before = places[0]
    for place in places[1:]:
        if place != before + 1 or (place in learned) != (start in learned):
            yield start in learned, start, before + 1
            start = place
        before = place
    yield start in learned, start, before + 1


def volume(rows: Iterable[Encoded]) -> Volume:
    """How much some rows are."""
    listed = list(rows)
    return Volume(len(listed), sum(len(row.ids) for row in listed), sum(len(row.learned) for row in listed))


def _shown_places(row: Encoded) -> list[int]:
    if len(row.ids) <= SHOWN_TOKENS:
        return list(range(len(row.ids)))
    half = SHOWN_TOKENS // 2
    return [*range(half), *range(len(row.ids) - half, len(row.ids))]


def _kinds(rows: Rows) -> dict[str, list[Encoded]]:
    chosen = [_whole(pair.prompt, pair.chosen) for pair in rows.pairs]
    rejected = [_whole(pair.prompt, pair.rejected) for pair in rows.pairs]
    kinds = {"sft": rows.sft, "route": [row for _, row in rows.route], "chosen": chosen, "rejected": rejected}
    return {kind: found for kind, found in kinds.items() if found}


def _whole(prompt: list[int], answer: list[int]) -> Encoded:
    return Encoded(prompt + answer, list(range(len(prompt), len(prompt) + len(answer))))


def _table(prepared: Prepared) -> Table:
    table = Table("part", "kind", "rows", "tokens", "with loss", "median row", "longest", box=None)
    for part, rows in (("train", prepared.material.train), ("dev", prepared.material.dev)):
        for kind, found in _kinds(rows).items():
            lengths = [len(row.ids) for row in found]
            numbers = (*volume(found), int(statistics.median(lengths)), max(lengths))
            table.add_row(part, kind, *map(str, numbers))
    return table


def _computed(batch: Sequence[Encoded] | Sequence[Pair]) -> int:
    rows = [row for row in batch if isinstance(row, Encoded)]
    if rows:
        return computed(rows)
    pairs = [pair for pair in batch if isinstance(pair, Pair)]
    # Once under the adapter and, without gradient and so at a third of the cost, once under what it is held to.
    longest = max(len(pair.prompt) + max(len(pair.chosen), len(pair.rejected)) for pair in pairs)
    return 2 * len(pairs) * longest * 4 // 3


def estimated_speed(base: Base) -> float:
    """Tokens a second that training computes here, from the base's size and the speed of a matrix product."""
    import numpy
    from safetensors import safe_open

    values = 0
    for path in base.folder.glob("*.safetensors"):
        with safe_open(path, "numpy") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys() if "embed" not in name]  # noqa: SIM118
        values += sum(math.prod(shape) for shape in shapes)
    side = 1536
    one = numpy.ones((side, side), numpy.float32)
    one @ one
    begun = time.perf_counter()
    one @ one
    speed = 2 * side**3 / (time.perf_counter() - begun)
    # Forward and, for the activations only, backward: two operations a value each.
    return float(speed * _EFFICIENCY / (4 * values))
