"""Whether held-out rows stand in training rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from macaron.train.data.audit import audit
from macaron.train.data.text import prompt_text, shingles, whole_text
from tests.train.data.making import preference, route, sft, user

BRIEF = "draw a dashboard with the temperature of every room and a button that opens the window"


def test_a_prompt_inside_a_longer_training_prompt_is_found() -> None:
    found = audit([route("h", BRIEF)], [sft("1", "hello there"), sft("2", f"Here is the task: {BRIEF}. Thanks")], 0.8)
    assert [(hit.held_out, hit.train, hit.containment) for hit in found.hits] == [(0, 1, 1.0)]


def test_a_prompt_inside_a_training_answer_is_found() -> None:
    found = audit([route("h", BRIEF)], [preference("1", rejected=(user(BRIEF),))], 0.8)
    assert len(found.hits) == 1


def test_what_a_training_row_holds_within_the_limit_is_only_reported() -> None:
    half = " ".join(BRIEF.split()[:9])
    found = audit([route("h", BRIEF)], [sft("1", half)], 0.5)
    assert found.hits == []
    assert found.highest == 5 / 12
    assert len(audit([route("h", BRIEF)], [sft("1", half)], 0.3).hits) == 1


def test_a_short_prompt_overlaps_only_where_it_is_the_same() -> None:
    assert audit([route("h", "commit it")], [route("1", "commit it all")], 0.8).hits == []
    assert len(audit([route("h", "commit it")], [route("1", "Commit it!")], 0.8).hits) == 1


def test_the_words_of_a_wrapper_that_many_rows_share_are_no_overlap() -> None:
    wrapper = (
        "You are asked to build a surface for the person below and nothing else than that: {} Answer with code only"
    )
    train = [route(str(number), wrapper.format(f"a list of {number} tasks")) for number in range(60)]
    assert audit([route("h", wrapper.format(BRIEF))], train, 0.5).hits == []
    leak = [*train, route("leak", wrapper.format(f"{BRIEF} please"))]
    assert [hit.train for hit in audit([route("h", wrapper.format(BRIEF))], leak, 0.5).hits] == [60]


def test_a_prompt_that_everybody_has_word_for_word_is_found_however_often() -> None:
    train = [route(str(number), f"{BRIEF} {number}") for number in range(60)]
    assert len(audit([route("h", BRIEF)], train, 0.8).hits) == 60


def test_a_limit_of_one_refuses_the_whole_prompt_only() -> None:
    assert len(audit([route("h", BRIEF)], [sft("1", BRIEF)], 1.0).hits) == 1


def test_nothing_held_out_is_no_overlap() -> None:
    assert audit([], [sft("1")], 0.5) == ([], 0.0)
    assert audit([route("h")], [], 0.5) == ([], 0.0)


TEXTS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", "中", "文"]), min_size=1, max_size=9).map(" ".join)


@given(st.lists(TEXTS, max_size=6), st.lists(TEXTS, max_size=9), st.floats(0, 1))
def test_hits_are_those_that_comparing_every_pair_finds(held: list[str], trained: list[str], limit: float) -> None:
    held_out, train = [route(text, text) for text in held], [sft(text, text) for text in trained]
    expected = set()
    for number, row in enumerate(held_out):
        prompt = shingles(prompt_text(row), 5)
        for other, known in enumerate(train):
            share = len(prompt & shingles(whole_text(known), 5)) / len(prompt)
            if share > limit or share == 1:
                expected.add((number, other, share))
    assert {tuple(hit) for hit in audit(held_out, train, limit).hits} == expected
