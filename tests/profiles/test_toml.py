"""A table survives the way through TOML."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.profiles.toml import toml_text

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
PLAIN = st.one_of(
    TEXTS, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    PLAIN,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_a_table_is_read_back_as_it_was(table: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(table)) == table


def test_a_long_array_has_an_item_a_line() -> None:
    assert toml_text({"tokens": ["x" * 60, "y" * 60]}).count("\n") == 4


def test_what_has_no_form_is_an_error() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        toml_text({"a": None})
