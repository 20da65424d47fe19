"""What a dry run shows of a row."""

from __future__ import annotations

import pytest

from macaron.train.dry import SHOWN_TOKENS, marked
from macaron.train.encode import Encoded


class Bytes:
    """A tokenizer with one token a byte."""

    def decode(self, ids: list[int]) -> str:
        return bytes(ids).decode("utf-8", "replace")


def spans(row: Encoded) -> list[tuple[str, str]]:
    text = marked(row, Bytes())
    return [(text.plain[span.start : span.end], str(span.style)) for span in text.spans]


def encoded(*pieces: tuple[str, bool]) -> Encoded:
    ids: list[int] = []
    learned: list[int] = []
    for text, learns in pieces:
        data = list(text.encode())
        learned += range(len(ids), len(ids) + len(data)) if learns else ()
        ids += data
    return Encoded(ids, learned)


def test_characters_of_several_tokens_are_shown_whole() -> None:
    shown = spans(encoded(("问：", False), ("答案", True)))
    assert [text for text, _ in shown] == ["问：", "答案"]
    assert shown[0][1] != shown[1][1]


@pytest.mark.parametrize("learns", [True, False])
def test_every_stretch_of_loss_is_marked_apart(learns: bool) -> None:
    shown = spans(encoded(("a", not learns), ("bb", learns), ("c", not learns)))
    assert [text for text, _ in shown] == ["a", "bb", "c"]
    assert shown[0][1] == shown[2][1] != shown[1][1]


def test_the_middle_of_a_long_row_is_cut_where_it_says_so() -> None:
    row = encoded(("x" * SHOWN_TOKENS, False), ("y" * SHOWN_TOKENS, True))
    text = marked(row, Bytes()).plain
    assert text == "x" * (SHOWN_TOKENS // 2) + " […] " + "y" * (SHOWN_TOKENS // 2)
