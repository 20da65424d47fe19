"""Tool calls are found in the text as it comes, and what is no call stays text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.conversation import CallDelta
from macaron.engine.llamacpp.calls import CallParser

NAMES = frozenset({"add", "get_weather"})
CALL = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": [2, {"c": "}"}]}}</tool_call>'
ARGUMENTS = '{"a": 1, "b": [2, {"c": "}"}]}'


def parse(pieces: Iterable[str]) -> tuple[str, list[tuple[str, str, str]]]:
    """The text, and of each call its id, name and arguments."""
    numbers = count()
    parser = CallParser(NAMES, lambda: f"id{next(numbers)}")
    seen = [piece for text in pieces for piece in parser.feed(text)]
    seen += parser.end()
    calls: dict[int, tuple[str, str, str]] = {}
    for piece in seen:
        if isinstance(piece, CallDelta):
            call_id, name, arguments = calls.get(piece.index, ("", "", ""))
            calls[piece.index] = (
                call_id + (piece.call_id or ""), name + (piece.name or ""), arguments + piece.arguments
            )  # fmt: skip
    return "".join(piece for piece in seen if isinstance(piece, str)), list(calls.values())


def test_call_is_read() -> None:
    assert parse([CALL]) == ("", [("id0", "add", ARGUMENTS)])


def test_text_before_a_call_is_text() -> None:
    assert parse(["One moment.\n" + CALL]) == ("One moment.\n", [("id0", "add", ARGUMENTS)])


def test_calls_on_lines_of_their_own_are_read_in_order() -> None:
    second = '<tool_call>{"name": "get_weather"}</tool_call>'
    assert parse([f"{CALL}\n{second}\n"]) == ("", [("id0", "add", ARGUMENTS), ("id1", "get_weather", "{}")])


def test_text_after_a_call_is_text() -> None:
    assert parse([CALL + "\nThat was it."])[0] == "\nThat was it."


def test_call_without_its_closing_mark_is_read() -> None:
    assert parse([CALL.removesuffix("</tool_call>")]) == ("", [("id0", "add", ARGUMENTS)])


def test_arguments_are_passed_on_as_they_are_written() -> None:
    parser = CallParser(NAMES)
    list(parser.feed('<tool_call>{"name": "add", "arguments": {"a"'))
    (delta,) = parser.feed(": 12")
    assert delta == CallDelta(index=0, arguments=": 12")


def test_every_call_has_an_id_of_its_own() -> None:
    parser = CallParser(NAMES)
    calls = [piece for piece in parser.feed(CALL * 3) if isinstance(piece, CallDelta) and piece.call_id]
    assert len({call.call_id for call in calls}) == 3


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "unknown", "arguments": {}}</tool_call>',
        "<tool_call>add(1, 2)</tool_call>",
        '<tool_call>{"name": "add", "arguments": "text"}</tool_call>',
        '<tool_call>{"arguments": {}, "name": "add"}</tool_call>',
        '<tool_call>{"name": "add", ',
        "<tool_call>",
        "<tool_call>" + " " * 5000 + "x",
        "<tool_cal",
        "a < b and <tool> or </tool_call>",
    ],
)
def test_what_is_no_call_is_text_to_the_letter(text: str) -> None:
    assert parse([text]) == (text, [])
    assert parse(text) == (text, [])


def test_nothing_is_held_back_for_long() -> None:
    parser = CallParser(NAMES)
    given = "<tool_call>" + "x" * 2000
    said = "".join(piece for character in given for piece in parser.feed(character) if isinstance(piece, str))
    assert len(given) - len(said) < 300


texts = st.text(alphabet="<>tol_ca{}\"'\\ n", max_size=30) | st.just("<tool_call>") | st.just(CALL)


@given(parts=st.lists(texts, max_size=6), cuts=st.lists(st.integers(0, 400), max_size=12))
def test_how_the_text_is_cut_makes_no_difference(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    marks = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[begin:end] for begin, end in pairwise(marks)]
    assert parse(pieces) == parse([text]) == parse(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(arguments=st.dictionaries(st.text(max_size=4), json_values, max_size=4))
def test_any_arguments_come_back_unchanged(arguments: dict[str, object]) -> None:
    written = msgspec.json.encode(arguments).decode()
    text = f'<tool_call>{{"name": "add", "arguments": {written}}}</tool_call>'
    assert parse(text) == ("", [("id0", "add", written)])
