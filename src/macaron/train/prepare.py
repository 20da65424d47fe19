"""Rows of data sets, encoded for a run, with what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from macaron.errors import ConfigError, MacaronError
from macaron.train.config import TrainConfig
from macaron.train.data.read import BrokenRow
from macaron.train.data.rows import PreferenceRow, RouteRow, SftRow
from macaron.train.encode import Encoded, Pair
from macaron.train.inputs import Inputs, Placed
from macaron.train.studio import Studio


class Rows(NamedTuple):
    """Encoded rows of one part of the data sets. A route row is kept, too, since it can be asked in several ways."""

    sft: list[Encoded]
    route: list[tuple[RouteRow, Encoded]]
    pairs: list[Pair]

    @property
    def total(self) -> int:
        """Rows of all kinds."""
        return len(self.sft) + len(self.route) + len(self.pairs)

    @property
    def tokens(self) -> int:
        """Tokens of all rows, each counted whole."""
        plain = sum(len(row.ids) for row in [*self.sft, *(encoded for _, encoded in self.route)])
        return plain + sum(2 * len(pair.prompt) + len(pair.chosen) + len(pair.rejected) for pair in self.pairs)


class Material(NamedTuple):
    """Attributes:
    train, dev: encoded rows.
    bad: rows that were left out, of both.
    used: rows and tokens that are trained on, by the folder they are from.
    """

    train: Rows
    dev: Rows
    bad: list[BrokenRow]
    used: dict[str, tuple[int, int]]


def encode_inputs(studio: Studio, inputs: Inputs, config: TrainConfig) -> Material:
    """Encode what was read.

    Raises:
        ConfigError: a row cannot be used and `skip_broken` is off, a label is none of the profile's, or nothing is left
            to train on.
    """
    for label in sorted({item.label for item in (*inputs.train, *inputs.dev)}):
        studio.check(label)
    bad = list(inputs.broken)
    used: dict[str, tuple[int, int]] = {}
    train, dev = Rows([], [], []), Rows([], [], [])
    for rows, placed in ((train, inputs.train), (dev, inputs.dev)):
        for item in placed:
            try:
                tokens = _add(rows, item, studio, config)
            except MacaronError as error:
                if error.code == "mask_lost":
                    raise
                bad.append(BrokenRow(item.place, error.message))
                continue
            if rows is train:
                count, total = used.get(item.folder, (0, 0))
                used[item.folder] = (count + 1, total + tokens)
    if bad and not config.skip_broken:
        raise _refusal(bad)
    if train.total == 0:
        raise ConfigError("no row is left to train on", param="data")
    return Material(train, dev, bad, used)


def _add(rows: Rows, item: Placed, studio: Studio, config: TrainConfig) -> int:
    """Encode a row into its list; returns its tokens."""
    match row := item.row:
        case SftRow() if config.kind == "sft":
            encoded = studio.sft(row, item.label)
            tokens = len(encoded.ids)
            _check_length(tokens, config.max_tokens)
            rows.sft.append(encoded)
        case RouteRow() if config.kind == "sft":
            encoded = studio.route(row)
            tokens = len(encoded.ids)
            _check_length(tokens, config.max_tokens)
            rows.route.append((row, encoded))
        case PreferenceRow() if config.kind == "dpo":
            pair = studio.pair(row, item.label)
            length = len(pair.prompt) + max(len(pair.chosen), len(pair.rejected))
            tokens = 2 * len(pair.prompt) + len(pair.chosen) + len(pair.rejected)
            _check_length(length, config.max_tokens)
            rows.pairs.append(pair)
        case _:
            kind = type(row).__name__.removesuffix("Row").lower()
            raise ConfigError(f"`macaron train {config.kind}` cannot use rows of kind {kind!r}", param="data")
    return tokens


def _check_length(length: int, limit: int) -> None:
    if length > limit:
        raise ConfigError(
            f"it has {length} tokens, more than max_tokens = {limit}", param="max_tokens", code="too_long"
        )


def _refusal(bad: Sequence[BrokenRow]) -> ConfigError:
    shown = "".join(f"\n  {item.place}: {item.reason}" for item in bad[:10])
    more = f"\n  and {len(bad) - 10} more" if len(bad) > 10 else ""
    return ConfigError(
        f"{len(bad)} rows cannot be used; correct them, or go on without them with --skip-broken:{shown}{more}",
        param="data",
        code="bad_row",
    )
