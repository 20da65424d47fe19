"""The recipes of the router: what is learned, what is held out, and that neither is in the other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from macaron.hcp import load
from macaron.profiles import find_profile
from macaron.train.data.build import build
from macaron.train.data.recipe import Recipe, Split, find_recipe, load_recipe
from macaron.train.data.rows import AnyRow, RouteRow, SftRow
from tests.train.demi.routing import CachedPackages, asked

LEARNED, HELD_OUT = "demi-l0", "demi-routing-heldout"


def recipe(name: str) -> Recipe:
    return load_recipe(find_recipe(name))


def rows(name: str, folder: Path, split: Split) -> list[AnyRow]:
    build(recipe(name), folder / name, CachedPackages())
    lines = (folder / name / f"{split}.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=RouteRow | SftRow) for line in lines]


def test_no_builder_is_both_learned_from_and_held_out() -> None:
    learned = {source.builder for source in recipe(LEARNED).source}
    assert learned.isdisjoint(source.builder for source in recipe(HELD_OUT).source)


def test_held_out_sources_are_never_trained_on() -> None:
    assert {source.split for source in recipe(HELD_OUT).source} == {"test"}


def test_every_source_says_its_licence_and_what_it_is() -> None:
    for name in (LEARNED, HELD_OUT):
        assert all(source.licence and source.note for source in recipe(name).source)


@pytest.mark.slow
def test_real_packages_give_every_label_a_fair_share_of_what_is_learned(tmp_path: Path) -> None:
    learned = [row for row in rows(LEARNED, tmp_path, "train") if isinstance(row, RouteRow)]
    labels = Counter(row.label for row in learned)
    assert set(labels) == {"L0", "L1", "L2", "L3"}
    assert max(labels.values()) <= 1.8 * min(labels.values())
    sources = Counter(row.source for row in learned)
    assert max(sources.values()) <= len(learned) // 8


@pytest.mark.slow
def test_real_packages_give_at_least_two_held_out_sources_and_a_hundred_rows_a_class(tmp_path: Path) -> None:
    held_out = [row for row in rows(HELD_OUT, tmp_path, "test") if isinstance(row, RouteRow)]
    for label in ("L0", "L1", "L2"):
        of_label = [row for row in held_out if row.label == label]
        assert len(of_label) >= 100
        assert len({row.source for row in of_label}) >= 2


@pytest.mark.slow
def test_no_held_out_request_is_learned(tmp_path: Path) -> None:
    learned = {asked(row).lower() for row in rows(LEARNED, tmp_path, "train") if isinstance(row, RouteRow)}
    held_out = {asked(row).lower() for row in rows(HELD_OUT, tmp_path, "test") if isinstance(row, RouteRow)}
    assert not learned & held_out
    assert not [text for text in held_out if len(text) > 30 and any(text in other for other in learned)]


def test_the_profiles_routing_set_is_what_its_recipe_builds(tmp_path: Path) -> None:
    build(recipe("demi-routing-check"), tmp_path / "built", CachedPackages())
    shipped = load(find_profile("demi")).text("mol.route.examples_path")
    assert (tmp_path / "built" / "test.jsonl").read_text("utf-8") == shipped


def test_every_label_has_some_seventy_rows_in_the_profiles_routing_set() -> None:
    lines = load(find_profile("demi")).text("mol.route.examples_path").splitlines()
    labels = Counter(msgspec.json.decode(line, type=RouteRow).label for line in lines)
    assert set(labels) == {"L0", "L1", "L2", "L3"}
    assert min(labels.values()) >= 70
