"""What is in use, and until when."""

from __future__ import annotations

from macaron.mol.residency import Residency


def test_an_adapter_is_in_use_until_the_last_use_has_ended() -> None:
    residency = Residency()
    with residency.use("a"):
        with residency.use("a"), residency.use("b"):
            assert residency.in_use() == {"a", "b"}
        assert residency.in_use() == {"a"}
    assert residency.in_use() == frozenset()


def test_a_use_ends_also_where_it_failed() -> None:
    residency = Residency()
    try:
        with residency.use("a"):
            raise ValueError
    except ValueError:
        assert residency.in_use() == frozenset()


def test_the_bare_base_is_not_counted() -> None:
    residency = Residency()
    residency.keep(None, 1)
    with residency.use(None):
        assert residency.in_use() == frozenset()


def test_what_is_kept_for_a_turn_that_goes_on_is_let_go_after_its_time() -> None:
    now = 0.0
    residency = Residency(lambda: now)
    residency.keep("a", 10)
    now = 9.0
    assert residency.in_use() == {"a"}
    residency.keep("a", 10)
    now = 18.0
    assert residency.in_use() == {"a"}
    now = 20.0
    assert residency.in_use() == frozenset()
