"""The cards that the interface specialist is trained on: right, of the promised size, and the same every time."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from macaron.evals.tsx import UI4A, check_tsx, find_card
from macaron.evals.ui import own_briefs
from macaron.train.data.dedup import jaccard
from macaron.train.data.recipe import load_recipe, shipped_recipes
from macaron.train.data.rows import SftRow
from macaron.train.data.source import BuildContext
from macaron.train.data.split import split_of
from macaron.train.data.text import shingles
from macaron.train.demi.ui import bank
from macaron.train.demi.ui.card import IMPORTS, Marks, imports, render
from macaron.train.demi.ui.cards import load, rows

BRIEFS = Path(__file__).parents[4] / "shared" / "data" / "ui_briefs.jsonl"
"""Held-out briefs by others, where they lie beside the project."""


class NoPackages:
    def folder(self, requirement: str) -> Path:
        raise AssertionError(f"the generator reads no package, it asked for {requirement}")


def build(limit: int, seed: int = 3) -> list[SftRow]:
    return list(rows(BuildContext(packages=NoPackages(), random=Random(seed), limit=limit)))


@pytest.fixture(scope="module")
def full() -> list[SftRow]:
    """As many rows as the recipe asks for."""
    return build(load_recipe(shipped_recipes() / "demi-l3.toml").source[0].limit)


def answers(row: SftRow) -> list[str]:
    return [message["content"] for message in row.messages if message["role"] == "assistant"]


def requests(row: SftRow) -> list[str]:
    return [message["content"] for message in row.messages if message["role"] == "user"]


def test_every_card_of_a_full_build_is_clean(full: list[SftRow]) -> None:
    for row in full:
        for answer in answers(row):
            card = find_card(answer)
            assert card is not None, row.id
            report = check_tsx(card)
            assert report.clean, (row.id, report, card)
            assert not report.undefined


def test_an_answer_is_one_block_and_nothing_else(full: list[SftRow]) -> None:
    for answer in (answer for row in full for answer in answers(row)):
        assert answer.startswith("```tsx\nimport ")
        assert answer.endswith("\n}\n```")
        assert answer.count("```") == 2


def test_every_template_is_clean_with_every_entry_of_its_bank() -> None:
    data = load()
    random = Random(1)
    for kind in (*data.kinds.values(), *data.actions.values()):
        for entry in data.banks[kind["bank"]]:
            values = bank.values(random, kind["bank"], entry, data.words[entry["lang"]])
            report = check_tsx(find_card(render(random, kind["code"], values)) or "")
            assert report.clean, (kind["name"], bank.key(entry), report)


def test_no_mark_is_left_in_a_row(full: list[SftRow]) -> None:
    for row in full:
        for message in row.messages:
            assert "@" not in message["content"]
            assert not any(line.startswith("%") for line in message["content"].splitlines())


def test_the_same_seed_gives_the_same_rows() -> None:
    assert build(120) == build(120)
    assert build(120) != build(120, seed=4)


def test_a_limit_is_met_exactly(full: list[SftRow]) -> None:
    assert len(build(37)) == 37
    assert len({row.id for row in full}) == len(full)


def test_without_a_limit_there_is_a_row_for_every_kind_and_entry() -> None:
    data = load()
    assert len(build(0)) == sum(len(data.banks[kind["bank"]]) for kind in data.kinds.values())


def test_there_are_forty_kinds_and_more_in_two_languages_mostly_chinese(full: list[SftRow]) -> None:
    kinds = Counter(row.group.split("/")[0] for row in full)
    assert len(kinds) >= 40
    assert min(kinds.values()) >= 5
    languages = Counter(row.language for row in full)
    assert languages["zh"] > len(full) / 2
    assert languages["zh"] + languages["en"] == len(full)


def test_no_brief_is_given_twice(full: list[SftRow]) -> None:
    assert len({requests(row)[0] for row in full}) == len(full)


def test_some_rows_answer_an_action_with_a_changed_card(full: list[SftRow]) -> None:
    acted = [row for row in full if len(row.messages) == 4]
    assert 0.03 < len(acted) / len(full) < 0.08
    for row in acted:
        first, second = answers(row)
        assert first != second
        assert "surface_action" in requests(row)[1]


def test_a_group_is_one_kind_with_one_entry_and_dev_is_not_empty(full: list[SftRow]) -> None:
    shares = load_recipe(shipped_recipes() / "demi-l3.toml").split
    splits = Counter(split_of(row.group, shares) for row in full)
    assert splits["dev"] >= 20
    assert splits["test"] == 0
    assert len({row.group for row in full}) > 500


def test_a_card_declares_no_import_that_ui4a_lacks() -> None:
    for module, names in IMPORTS.items():
        assert set(names) <= UI4A[module]


def test_imports_come_in_one_order() -> None:
    body = (
        'useState(0); useEffect(go); <Tabs />; <Card title="a">; <Line />; sendAction("x"); usePersistedState("y", 1)'
    )
    assert imports(body).splitlines() == [
        'import { useEffect, useState } from "react";',
        'import { Card, Tabs } from "$ui4a/ui";',
        'import { Line } from "$ui4a/ui/charts";',
        'import { sendAction } from "$ui4a/chat";',
        'import { usePersistedState } from "$ui4a/state";',
    ]


def test_a_component_whose_name_begins_like_another_is_not_imported_for_it() -> None:
    assert imports("<LineChart>") == 'import { LineChart } from "$ui4a/ui/charts";'


def test_a_mark_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        Marks("@title @nothing").substitute({"title": "x"})


def test_optional_lines_of_one_letter_come_together_and_are_sometimes_left_out() -> None:
    cards = {render(Random(seed), "a(\n%b  one\n%b  two\n)", {}) for seed in range(40)}
    assert cards == {"```tsx\n\n\na(\n)\n```", "```tsx\n\n\na(\n    one\n    two\n)\n```"}


def test_no_own_brief_of_the_suite_is_near_a_training_request(full: list[SftRow]) -> None:
    held = [shingles(brief.text, 3) for brief in own_briefs()]
    for row in full:
        for request in requests(row):
            assert max(jaccard(shingles(request, 3), other) for other in held) < 0.4, request


def test_no_held_out_brief_is_in_training(full: list[SftRow]) -> None:
    place = os.environ.get("MACARON_UI_BRIEFS") or str(BRIEFS)
    if not Path(place).is_file():
        pytest.skip("the held-out briefs are not here; name their file in MACARON_UI_BRIEFS")
    from macaron.evals.ui import UiSuite

    held = [case.messages[0]["content"] for case in UiSuite(Path(place), count=10_000).cases()]
    texts = {_letters(text) for text in held}
    grams = [_trigrams(text) for text in held]
    for row in full:
        for request in requests(row):
            assert _letters(request) not in texts, request
            mine = _trigrams(request)
            assert max(jaccard(mine, other) for other in grams) < 0.7, request


@pytest.mark.slow
def test_cards_have_the_promised_number_of_tokens(full: list[SftRow]) -> None:
    from macaron.hcp import load as load_contract
    from macaron.profiles import find_profile
    from macaron.train.base import BaseTokenizer, find_base, load_tokenizer

    tokenizer = BaseTokenizer(load_tokenizer(find_base(load_contract(find_profile("demi")))))
    cards = [len(tokenizer.ids(answer)) for row in full for answer in answers(row)]
    briefs = [len(tokenizer.ids(request)) for row in full for request in requests(row)]
    assert sum(cards) / len(cards) <= 231
    assert max(cards) <= 340
    assert sum(cards) + sum(briefs) <= 320_000


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _trigrams(text: str) -> frozenset[str]:
    letters = _letters(text)
    return frozenset(letters[start : start + 3] for start in range(max(1, len(letters) - 2)))
