from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.engine.labels import parse_label

LABELS = ("L0", "L1", "L2", "L3")


@pytest.mark.parametrize(
    "text",
    [
        "L2",
        " L2\n",
        '"L2"',
        "'L2'.",
        "`L2`",
        "**L2**",
        '{"label": "L2"}',
        '["L2"]',
        "The label is L2, not L3.",
        '"{L2}"',
        "应该选择L2。",
    ],
)
def test_one_label_in_any_wrapping_is_found(text: str) -> None:
    assert parse_label(text, LABELS) == "L2"


@pytest.mark.parametrize("text", ["", "L", "L9", "l2", "L22", "XL2", "L2-lite", "_L2", "LL2", '{"label": "L9"}', "{"])
def test_what_is_no_label_as_a_word_is_none(text: str) -> None:
    assert parse_label(text, LABELS) is None


@pytest.mark.parametrize(
    ("prefill", "text"), [("L", "2"), ("L", "L2"), ("model_id=", "L2"), ("model_id=", "model_id=L2")]
)
def test_the_prefill_may_be_repeated_or_not(prefill: str, text: str) -> None:
    assert parse_label(text, LABELS, prefill) == "L2"


def test_the_first_label_of_a_sentence_counts() -> None:
    assert parse_label("L3, though L0 would do", LABELS) == "L3"


@given(st.permutations(["L1", "L10", "L1-a", "L100"]), st.sampled_from(["L1", "L10", "L1-a", "L100"]))
def test_labels_that_begin_one_another_are_told_apart(labels: list[str], label: str) -> None:
    assert parse_label(label, labels) == label
    assert parse_label(f"it is {label}!", labels) == label


def test_json_that_names_two_labels_names_the_first_word() -> None:
    assert parse_label('{"label": "L1", "second": "L2"}', LABELS) == "L1"


def test_without_labels_there_is_none() -> None:
    assert parse_label("L2", ()) is None


@given(st.text(max_size=200))
def test_any_text_gives_a_label_or_none(text: str) -> None:
    assert parse_label(text, LABELS, "L") in (*LABELS, None)


def test_a_label_behind_a_very_long_text_is_not_read() -> None:
    assert parse_label("x " * 100_000 + "L2", LABELS) is None
