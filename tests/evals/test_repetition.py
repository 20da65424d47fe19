"""The watch for answers that loop."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from macaron.evals.repetition import LEAST, TIMES, RepetitionWatch, loops


@given(st.text(string.printable, min_size=4, max_size=300), st.text(max_size=300))
def test_a_passage_repeated_often_enough_is_a_loop(passage: str, before: str) -> None:
    assert loops(before + passage * max(TIMES, LEAST // len(passage) + 1))


@given(st.text("abcdefgh \n", max_size=1500))
def test_a_loop_is_found_wherever_the_text_is_cut(text: str) -> None:
    looping = text + "  <Row label='a' />\n" * 60
    watch = RepetitionWatch()
    assert any(watch.repeats(looping[at : at + 7]) for at in range(0, len(looping), 7))


def test_a_list_of_like_lines_is_no_loop() -> None:
    lines = "".join(f"  <Item id={{{number}}} label='Row {number}' />\n" for number in range(200))
    watch = RepetitionWatch()
    assert not any(watch.repeats(line) for line in lines.splitlines(keepends=True))


def test_a_passage_five_times_is_no_loop() -> None:
    passage = "".join(chr(97 + number % 26) + str(number) for number in range(80))
    assert not loops("x" + passage * (TIMES - 1))
