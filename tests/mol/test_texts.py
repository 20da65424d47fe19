"""Texts in memory: bounded in number, bytes and time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from macaron.conversation import Message, Text
from macaron.mol.identity import ItemDigests
from macaron.mol.texts import Bounds, Texts


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.text(max_size=12)), max_size=40))
def test_neither_bound_is_ever_passed(puts: list[tuple[str, str]]) -> None:
    texts = Texts(Bounds(3, 20))
    for name, text in puts:
        texts.put(name, text)
        assert len(texts) <= 3
        assert texts.bytes <= 20
        assert texts.get(name) == (text if len(text.encode("utf-8", "surrogatepass")) <= 20 else None)


def test_the_least_recently_used_goes_first() -> None:
    texts = Texts(Bounds(2, 100))
    texts.put("a", "1")
    texts.put("b", "2")
    assert texts.get("a") == "1"
    texts.put("c", "3")
    assert (texts.get("a"), texts.get("b"), texts.get("c")) == ("1", None, "3")


def test_a_text_goes_when_nobody_has_used_it_for_long() -> None:
    clock = Clock()
    texts = Texts(Bounds(9, 100, seconds=10), clock)
    texts.put("a", "1")
    texts.put("b", "2")
    clock.now = 9
    assert texts.get("b") == "2"
    clock.now = 10
    texts.sweep()
    assert ("a" in texts, "b" in texts, texts.bytes) == (False, True, 1)
    clock.now = 19
    texts.sweep()
    assert (len(texts), texts.bytes) == (0, 0)


def test_the_first_text_stays() -> None:
    texts = Texts(Bounds(9, 100))
    assert texts.put_first("a", "1") == "1"
    assert texts.put_first("a", "2") == "1"


def test_remembered_messages_go_with_time_too() -> None:
    clock = Clock()
    digests = ItemDigests(clock=clock)
    message = Message("user", (Text("x" * 600),))
    digest = digests(message)
    clock.now = 10
    digests.sweep(11)
    assert not digests.unknown([message])
    digests.sweep(10)
    assert digests.unknown([message]) == [message]
    assert digests(message) == digest
