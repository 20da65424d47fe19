"""The page of a comparison: whole in itself, and nothing in it but text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.train.runs.blocks import Block, Chart, Fold, Grid, Note, Series
from macaron.train.runs.page import page
from macaron.train.runs.plot import HEIGHT, WIDTH, plot, thinned, ticks
from macaron.train.runs.read import Point

HOSTILE = "</title></style></pre><script>alert(1)</script><img src=//x onerror=y>\"' style='&lt;"
VALUES = st.floats(-1e29, 1e29)
POINTS = st.lists(st.builds(Point, st.floats(0, 1e9), VALUES), min_size=1, max_size=20)
EMPTY = {"meta", "br", "line", "polyline", "circle"}


class Reader(HTMLParser):
    """Tags and texts; every tag that opens must close."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def everything(text: str) -> list[Block]:
    return [
        Note(text, warns=True),
        Grid(text, (text, "n"), [(text, "1")], numbers=(1,), marked=frozenset({0})),
        Chart(text, [Series(text, [Point(1, 2.0), Point(2, 1.0)])]),
        Fold(text, [(text, text)]),
    ]


def test_whatever_is_in_a_run_is_shown_as_text() -> None:
    reader = parsed(page(HOSTILE, everything(HOSTILE)))
    assert not {"script", "img"} & set(reader.tags)
    assert not any(name.startswith("on") for name, _ in reader.attributes)
    assert reader.text.count(HOSTILE) == 11


def test_a_page_asks_for_nothing_from_elsewhere() -> None:
    text = page("a", everything("b"))
    reader = parsed(text)
    assert not {"link", "script", "img", "iframe", "base", "object"} & set(reader.tags)
    assert not {"src", "href", "action"} & {name for name, _ in reader.attributes}
    assert not re.search(r"url\(|@import|https?:", text)
    assert "default-src 'none'" in text


def test_a_page_is_for_light_and_dark() -> None:
    text = page("a", [])
    assert "color-scheme: light dark" in text
    assert "prefers-color-scheme: dark" in text


def test_an_empty_table_says_so() -> None:
    assert "<p>nothing</p>" in page("a", [Grid("t", ("a",), [])])


@pytest.mark.parametrize("odd", ["\ud83d", "\0", "你好🙂"])
def test_any_text_can_be_written_as_utf_8(odd: str) -> None:
    page(odd, everything(odd)).encode()


def places(svg: str) -> list[list[tuple[float, float]]]:
    root = ElementTree.fromstring(svg)
    lines = [line.attrib["points"].split() for line in root.iter("polyline")]
    return [[(float(x), float(y)) for x, y in (place.split(",") for place in line)] for line in lines]


@given(first=POINTS, second=POINTS)
def test_every_point_is_within_the_frame(first: list[Point], second: list[Point]) -> None:
    lines = places(plot(Chart("loss", [Series("a", first), Series("b", second)])))
    assert [len(line) for line in lines] == [len(first), len(second)]
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for line in lines for x, y in line)


def test_a_falling_loss_goes_down_and_to_the_right() -> None:
    (line,) = places(plot(Chart("loss", [Series("a", [Point(1, 3.0), Point(2, 2.0), Point(3, 1.5)])])))
    assert line == sorted(line, key=lambda place: place[0])
    assert line == sorted(line, key=lambda place: place[1])


def test_many_points_are_averaged() -> None:
    few = thinned([Point(step, float(step % 2)) for step in range(100_000)])
    assert 250 <= len(few) <= 300
    assert {round(point.value, 2) for point in few} == {0.5}


@given(low=VALUES, reach=st.floats(1e-3, 1e29))
def test_ticks_are_few_and_between(low: float, reach: float) -> None:
    high = low + max(reach, abs(low) * 1e-6)
    found = ticks(low, high)
    assert 1 <= len(found) <= 6
    slack = (high - low) * 1e-6
    assert all(low - slack <= value <= high + slack for value in found)
