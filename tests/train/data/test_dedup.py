"""Rows that say the same as an earlier one."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macaron.errors import ConfigError
from macaron.train.data.dedup import ExactDuplicates, near_duplicates
from macaron.train.data.rows import AnyRow
from macaron.train.data.text import prompt_text, shingles, whole_text
from tests.train.data.making import answered, assistant, calling, preference, route, sft, user

LONG = "please write me a small function that sorts a list of words by their length and then by the alphabet"


def dropped(*rows: AnyRow, threshold: float = 0.8) -> list[tuple[int, int]]:
    return list(near_duplicates(rows, threshold))


def test_an_exact_duplicate_differs_in_id_source_group_and_language_only() -> None:
    seen = ExactDuplicates()
    assert not seen.repeats(sft("1", "hi"))
    assert seen.repeats(sft("2", "hi", source="other", group="g", language="de"))
    assert not seen.repeats(sft("3", "hi", answer="no"))
    assert not seen.repeats(route("4", "hi", label="L1"))
    assert not seen.repeats(route("5", "hi", label="L2"))


def test_a_prompt_that_differs_in_case_and_punctuation_is_a_near_duplicate() -> None:
    assert dropped(sft("1", LONG), sft("2", "other"), sft("3", f"{LONG.upper()}!", answer="no")) == [(2, 0)]


def test_a_prompt_with_one_word_more_is_a_near_duplicate_and_one_with_other_words_is_not() -> None:
    assert dropped(sft("1", LONG), sft("2", f"{LONG} now")) == [(1, 0)]
    assert dropped(sft("1", LONG), sft("2", LONG.replace("sorts", "prints").replace("length", "colour"))) == []


def test_the_threshold_decides() -> None:
    rows = sft("1", LONG), sft("2", LONG.replace("alphabet", "number of vowels"))
    assert dropped(*rows, threshold=0.95) == []
    assert dropped(*rows, threshold=0.6) == [(1, 0)]
    assert dropped(sft("1", LONG), sft("2", LONG), threshold=1.0) == [(1, 0)]


def test_chinese_is_compared_by_characters() -> None:
    assert dropped(sft("1", "帮我写一个能搜索整个仓库的小工具"), sft("2", "帮我写一个能搜索整个仓库的小工具吧")) == [
        (1, 0)
    ]
    assert dropped(sft("1", "帮我写一个能搜索整个仓库的小工具"), sft("2", "今天的天气怎么样")) == []


def test_a_shared_system_message_makes_no_near_duplicates() -> None:
    system = {"role": "system", "content": LONG * 20}
    rows = [sft(str(number), messages=(system, user(f"task {number}"), assistant("done"))) for number in range(3)]
    assert dropped(*rows) == []


def test_prompts_of_punctuation_are_compared_and_empty_ones_are_not() -> None:
    assert dropped(sft("1", "??"), sft("2", "??"), sft("3", "!!")) == [(1, 0)]
    assert dropped(*(sft(name, messages=(assistant("a"),)) for name in "ab")) == []


def test_a_very_long_prompt_is_no_burden() -> None:
    text = " ".join(map(str, range(30_000)))
    assert dropped(sft("1", text), sft("2", f"{text} end")) == [(1, 0)]


WORDS = st.lists(st.sampled_from(["red", "green", "blue", "sun", "moon", "sea"]), min_size=1, max_size=12).map(" ".join)


@settings(max_examples=20)
@given(st.lists(WORDS, max_size=15), st.sampled_from([0.5, 0.8, 1.0]))
def test_dropping_near_duplicates_again_drops_nothing(prompts: list[str], threshold: float) -> None:
    rows = [sft(str(number), prompt) for number, prompt in enumerate(prompts)]
    gone = {number for number, _ in near_duplicates(rows, threshold)}
    left = [row for number, row in enumerate(rows) if number not in gone]
    assert list(near_duplicates(left, threshold)) == []
    assert len({shingles(prompt_text(row), 3) for row in left}) == len(left)


def test_without_the_training_packages_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketch", None)
    with pytest.raises(ConfigError, match=r"macaron\[train\]"):
        dropped(sft("1"))


def test_the_texts_of_rows() -> None:
    loop = (user("weather?"), calling(), answered("sunny"), assistant("It is."))
    assert prompt_text(sft("1", messages=loop)) == 'weather?\nweather {"city":"Rome"}\nsunny'
    assert whole_text(sft("1", messages=loop)).endswith("sunny\nIt is.")
    assert prompt_text(route("1", "hi")) == whole_text(route("1", "hi")) == "hi"
    assert prompt_text(preference("1")) == "which?"
    assert whole_text(preference("1")) == "which?\nthis\nthat"
