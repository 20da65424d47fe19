"""Which split a row goes to. A group is never divided, and never moves because rows are added. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from macaron.train.data.recipe import Split, SplitSection
from macaron.train.data.rows import AnyRow

# What is held out stays held out: where two claims meet, the first of these wins.
PRECEDENCE: tuple[Split, ...] = ("test", "dev", "train")


def group_of(row: AnyRow) -> str:
    """What must not be divided: groups are common to all sources of a recipe."""
    return row.group or row.source


def split_of(group: str, shares: SplitSection) -> Split:
    """The split of a group that no source fixes.

    It depends on the group's name only, neither on the other rows nor on the recipe's seed, so that data sets made by
    different recipes with the same shares hold out the same groups.
    """
    number = int.from_bytes(hashlib.sha256(group.encode()).digest()[:8]) / 2**64
    if number < shares.test:
        return "test"
    return "dev" if number < shares.test + shares.dev else "train"


def fixed_splits(claims: Iterable[tuple[str, Split]]) -> Mapping[str, Split]:
    """The split of every group that sources fix, from all pairs of group and split.

    A group that several claim is held out: test before dev before train.
    """
    fixed: dict[str, Split] = {}
    for group, split in claims:
        fixed[group] = min(fixed.get(group, split), split, key=PRECEDENCE.index)
    return fixed
