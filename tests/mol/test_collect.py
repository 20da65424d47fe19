"""Answers put together from pieces."""

from __future__ import annotations

from macaron.conversation import Delta, Finish, Usage
from macaron.engine.base import Queued
from macaron.mol.collect import Collector


def test_the_wait_for_the_engine_is_counted_and_is_no_piece_of_the_answer() -> None:
    collector = Collector()
    assert collector.add([Queued(0.5)]) == []
    assert collector.add([Queued(0.25), Delta(text="a"), Finish("stop"), Usage(3, 1)]) == [Delta(text="a")]
    assert (collector.queued, collector.usage) == (0.75, Usage(3, 1))
    assert [answer.text for answer in collector.answers()] == ["a"]
