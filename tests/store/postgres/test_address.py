"""What is understood of a server's address, and that its password is never shown."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macaron.errors import ConfigError
from macaron.store import database_path, is_shared, open_store
from macaron.store.base import Limits
from macaron.store.postgres import check_url, redacted

GOOD = [
    "postgresql://h/d",
    "postgresql://u:p%40ss@h:5432/d?sslmode=require",
    "postgresql://u@/d?host=/run/postgresql&port=5433",
    "postgresql://u@one,two:5433/d",
]
BAD = [
    ("postgresql://", "names no database"),
    ("postgresql://u:hunter2@h", "names no database"),
    ("postgresql://u:hunter2@h/a/b", "names no database"),
    ("postgresql://u:hunter2@h:0/d", "not an address of the form"),
    ("postgresql://u:hunter2@h:hunter2/d", "not an address; percent-encode"),
    ("postgresql://u:hunter2 x@h/d", "not an address of the form"),
    ("postgresql://h/d?password=hunter2", "an option that is not understood"),
    ("postgresql://u:x?hunter2=1@h/d", "not an address; percent-encode"),
    ("postgresql://h/d?hunter2", "not an address"),
]


@pytest.mark.parametrize("url", GOOD)
def test_an_address_is_understood(url: str) -> None:
    check_url(url)
    assert is_shared(url)
    assert database_path(url) is None


@pytest.mark.parametrize(("url", "reason"), BAD)
def test_another_address_is_refused_without_its_secrets(url: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        database_path(url)
    assert "hunter2@" not in str(refused.value)
    assert "password=" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgress", "mysql"])
@given(password=st.text(st.characters(codec="ascii", exclude_characters="@"), min_size=8))
def test_a_password_is_never_shown(scheme: str, password: str) -> None:
    shown = redacted(f"{scheme}://user:{password}@host/base?sslmode=require")
    assert shown == f"{scheme}://***@host/base"
    assert "secret" not in redacted(f"user:secret{password}@host")


def test_a_store_of_an_unknown_scheme_is_refused_without_its_password() -> None:
    with pytest.raises(ConfigError, match=r"'mysql://\*\*\*@h/d' is not understood.*postgresql://user@host"):
        database_path("mysql://u:hunter2@h/d")


def test_a_missing_driver_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(ConfigError, match=r"needs the package asyncpg: install it with `pip install 'macaron\["):
        open_store("postgresql://h/d", limits=Limits(), durability="normal")
