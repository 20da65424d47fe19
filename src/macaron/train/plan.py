"""The steps of a run, decided before it begins by its rows, settings and seed alone, so that it can be resumed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from random import Random

from macaron.train.batches import Limits, batches_of, drawn
from macaron.train.cluster import clustered_batches
from macaron.train.config import TrainConfig
from macaron.train.data.rows import RouteRow
from macaron.train.encode import Encoded, Pair
from macaron.train.prepare import Rows
from macaron.train.studio import Studio
from macaron.train.vary import Card, read_cards, vary

RouteCase = tuple[RouteRow, Encoded]

SMALLER_SETS = 0.3
"""Share of the varied questions from which one of the profile's own labels is kept out."""


WITHOUT_NEWCOMERS = 0.25
"""Share of the other rows that are asked without the added cards: the router serves before and after they come."""

MAX_REPEATS = 8
"""Of a row of an added label in one epoch."""


def plan_steps(studio: Studio, rows: Rows, config: TrainConfig) -> list[list[Encoded]]:
    """The batches of a whole run, one a step, the same for the same rows, settings and seed."""
    cards = read_cards() if config.route.vary else ()
    steps: list[list[Encoded]] = []
    for epoch in range(math.ceil(config.epochs)):
        random = Random(f"{config.seed}:{epoch}")
        batches = clustered_batches(drawn(rows.sft, config.mix.sft, random), _limits(config))
        batches += _route_batches(studio, drawn(rows.route, config.mix.route, random), config, cards, random)
        random.shuffle(batches)
        share = min(config.epochs - epoch, 1.0)
        steps += batches[: math.ceil(share * len(batches))]
    return steps[: config.max_steps or None]


def _route_batches(
    studio: Studio, rows: Sequence[RouteCase], config: TrainConfig, cards: tuple[Card, ...], random: Random
) -> list[list[Encoded]]:
    limits = _limits(config)
    rows, without = _with_newcomers(studio, rows, random)
    cut = math.floor(config.route.vary * len(rows) + 0.5)
    plain = [encoded for _, encoded in rows[cut:]]
    varied = sorted(rows[:cut], key=lambda case: len(case[1].ids))
    batches: list[list[Encoded]] = []
    for start in range(0, cut, limits.rows):
        asked, left = _without_one_label(studio, varied[start : start + limits.rows], random)
        plain += [encoded for _, encoded in left]
        needed = set().union(*(studio.labels(row) for row, _ in asked))
        variant = vary(studio.registry, needed, cards, random)
        question = studio.question(variant.registry, variant.names)
        batches += batches_of([studio.route(row, question) for row, _ in asked], limits)
    random.shuffle(plain)
    batches += batches_of([studio.route_before(row) for row, _ in without], limits)
    return batches + batches_of(plain, limits)


def _with_newcomers(
    studio: Studio, rows: Sequence[RouteCase], random: Random
) -> tuple[Sequence[RouteCase], Sequence[RouteCase]]:
    """Rows with those of added labels repeated, and rows that are asked as if these labels were not there."""
    if not studio.added:
        return rows, ()
    counts = Counter(row.label for row, _ in rows)
    others = [count for label, count in counts.items() if label not in studio.added]
    wanted = math.ceil(sum(others) / len(others)) if others else 0
    asked: list[RouteCase] = []
    without: list[RouteCase] = []
    for case in rows:
        known = studio.added.isdisjoint(studio.labels(case[0]))
        if known and random.random() < WITHOUT_NEWCOMERS:
            without.append(case)
        else:
            asked += [case] * (1 if known else min(MAX_REPEATS, max(1, wanted // counts[case[0].label])))
    random.shuffle(asked)
    return asked, without


def _without_one_label(
    studio: Studio, cases: Sequence[RouteCase], random: Random
) -> tuple[Sequence[RouteCase], Sequence[RouteCase]]:
    """Now and then without the rows that need one of the labels, so that its card can be missing from a question."""
    if random.random() >= SMALLER_SETS:
        return cases, ()
    missing = random.choice(studio.registry.labels)
    kept = [case for case in cases if missing not in studio.labels(case[0])]
    return kept, [case for case in cases if missing in studio.labels(case[0])]


def _limits(config: TrainConfig) -> Limits:
    return Limits(config.batch.tokens, config.batch.rows, config.batch.window)


def plan_pairs(rows: Rows, config: TrainConfig) -> list[list[Pair]]:
    """The batches of a whole preference run, one a step."""
    steps: list[list[Pair]] = []
    for epoch in range(math.ceil(config.epochs)):
        random = Random(f"{config.seed}:{epoch}")
        batches = _pair_batches(drawn(rows.pairs, 1.0, random), config)
        random.shuffle(batches)
        steps += batches[: math.ceil(min(config.epochs - epoch, 1.0) * len(batches))]
    return steps[: config.max_steps or None]


def _pair_batches(pairs: Sequence[Pair], config: TrainConfig) -> list[list[Pair]]:
    batches: list[list[Pair]] = []
    for start in range(0, len(pairs), config.batch.window):
        batch: list[Pair] = []
        for pair in sorted(pairs[start : start + config.batch.window], key=pair_length):
            if batch and (
                len(batch) == config.batch.rows or 2 * (len(batch) + 1) * pair_length(pair) > config.batch.tokens
            ):
                batches.append(batch)
                batch = []
            batch.append(pair)
        batches.append(batch)
    return batches


def pair_length(pair: Pair) -> int:
    """Tokens of the longer of the two conversations."""
    return len(pair.prompt) + max(len(pair.chosen), len(pair.rejected))
