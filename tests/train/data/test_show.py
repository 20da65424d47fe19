"""Looking at rows."""

from __future__ import annotations

from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from macaron.train.data.render import render_row, visible
from macaron.train.data.rows import AnyRow
from macaron.train.data.show import Wanted, count_rows, sample
from tests.train.data.making import TOOL, answered, assistant, calling, preference, route, sft, user


def shown(row: AnyRow, *, whole: bool = False) -> str:
    console = Console(file=StringIO(), width=80, markup=False, highlight=False)
    for part in render_row(row, whole=whole):
        console.print(part)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return str(text)


def test_a_sample_is_in_order_and_the_same_for_the_same_seed() -> None:
    rows = [sft(str(number)) for number in range(100)]
    one = [int(row.id) for row in sample(rows, Wanted(), 5, seed=1)]
    assert one == sorted(one)
    assert len(set(one)) == 5
    assert one == [int(row.id) for row in sample(rows, Wanted(), 5, seed=1)]
    assert one != [int(row.id) for row in sample(rows, Wanted(), 5, seed=2)]


@given(st.integers(0, 20), st.integers(1, 20), st.integers(0, 9))
def test_a_sample_has_as_many_rows_as_there_are_at_most(there: int, wanted: int, seed: int) -> None:
    rows = [sft(str(number)) for number in range(there)]
    assert len(sample(rows, Wanted(), wanted, seed)) == min(there, wanted)


def test_rows_are_chosen_by_id_source_and_label() -> None:
    rows: list[AnyRow] = [
        route("1", label="L1"),
        route("2", label="L2"),
        sft("3"),
        route("4", label="L2", source="other"),
    ]

    def chosen(**wanted: str) -> list[str]:
        return [row.id for row in sample(rows, Wanted(**wanted), 9, 0)]

    assert chosen(label="L2") == ["2", "4"]
    assert chosen(label="L2", source="made") == ["2"]
    assert chosen(id="3") == ["3"]
    assert chosen(source="nowhere") == []


def test_rows_are_counted_by_source_kind_and_label() -> None:
    rows: list[AnyRow] = [
        route("1", "12345"),
        route("2", "1", language="zh"),
        route("3", label="L2"),
        sft("4"),
        preference("5"),
    ]
    counts = list(count_rows("train", rows))
    assert [(item.kind, item.label, item.rows) for item in counts] == [
        ("preference", "", 1), ("route", "L1", 2), ("route", "L2", 1), ("sft", "", 1),
    ]  # fmt: skip
    routed = counts[1]
    assert (routed.split, routed.groups, routed.languages) == ("train", 1, ("en", "zh"))
    assert (routed.characters, routed.longest) == (3, 5)


def test_a_conversation_is_shown_as_bubbles_with_its_tools_folded() -> None:
    system = {"role": "system", "content": "be brief"}
    text = shown(sft("7", messages=(system, user("weather?"), calling(), answered("sunny"), assistant("Sunny."))))
    assert text.startswith("7  sft · source made · en")
    places = [text.index(part) for part in ("─ system", "be brief", "─ user", "→ weather(", "─ tool", "Sunny.")]
    assert places == sorted(places)
    folded = shown(sft("7", tools=(TOOL, {"type": "function", "function": {"name": "bare"}})))
    assert "tool weather(city)" in folded
    assert "tool bare()" in folded
    assert "'properties'" not in folded
    assert "'properties'" in shown(sft("7", tools=(TOOL,)), whole=True)


def test_the_labels_of_a_routed_conversation_are_shown() -> None:
    text = shown(route("7", messages=(user("hi"), {**assistant("yes"), "label": "L2"}, user("go on")), label="L3"))
    assert "assistant L2" in text
    assert text.rstrip().endswith("answered by L3")


def test_both_answers_of_a_preference_are_shown() -> None:
    text = shown(preference("7", tools=(TOOL,)))
    assert text.index("which?") < text.index("chosen") < text.index("this") < text.index("rejected")


def test_a_long_text_is_clipped_unless_the_whole_row_is_wanted() -> None:
    row = sft("7", question="x" * 5000)
    assert "(3,800 more characters)" in shown(row)
    assert shown(row, whole=True).count("x") == 5000


def test_a_row_cannot_steer_the_terminal() -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egpj\r\x7f"
    tool = {"type": "function", "function": {"name": f"f{hostile}", "parameters": {"properties": [hostile]}}}
    row = sft(hostile, hostile, hostile, source=hostile, group=hostile, tools=(tool,))
    text = shown(row, whole=True)
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e", "\r", "\x7f"}
    assert visible("a\tb\n\x1b\u202e") == "a\tb\n␛<U+202E>"
