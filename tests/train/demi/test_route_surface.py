"""Surface wrappers: those that are learned, and those that only the test has."""

from __future__ import annotations

import json
import re

from macaron.train.demi.route.phrases import load_table
from macaron.train.demi.route.surface import surface_rows
from tests.train.demi.routing import asked

BRIEFS = ["做个番茄钟", 'show "it"\nnow', "plain", "four", "five", "six", "seven"]


def skeleton(wrapper: str) -> str:
    """A wrapper without its marks, ids and white space."""
    return re.sub(r"@\w+@|\s+", "", wrapper)


def test_no_held_out_wrapper_is_one_that_is_learned() -> None:
    table = load_table("surfaces")
    learned = {skeleton(wrapper) for wrapper in (*table["wrappers"], *table["actions"])}
    assert learned.isdisjoint(map(skeleton, table["held_out"]))


def test_all_held_out_rows_are_for_the_interface_in_the_order_of_the_briefs() -> None:
    rows = list(surface_rows(BRIEFS))
    assert [row.label for row in rows] == ["L3"] * len(BRIEFS)
    for brief, row in zip(BRIEFS, rows, strict=True):
        assert brief in asked(row) or json.dumps(brief, ensure_ascii=False) in asked(row)


def test_the_same_briefs_give_the_same_rows() -> None:
    assert list(surface_rows(BRIEFS)) == list(surface_rows(BRIEFS))


def test_the_wrappers_take_turns() -> None:
    wrappers = load_table("surfaces")["held_out"]
    shapes = [asked(row).replace("x", "") for row in surface_rows(["x"] * len(wrappers))]
    assert len(set(shapes)) == len(wrappers)


def test_a_json_wrapper_stays_json_whatever_the_brief_says() -> None:
    wrapper = load_table("surfaces")["held_out"].index(
        '{"input": @json@, "meta": {"surface": {"ref": "@id@", "rev": @n@, "placement": "@host@"}}}'
    )
    rows = list(surface_rows(['say "hi"\nand {go}'] * (wrapper + 1)))
    assert json.loads(asked(rows[wrapper]))["input"] == 'say "hi"\nand {go}'
