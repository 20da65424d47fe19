"""The command line from outside: what a user sees when a library is not installed."""

from __future__ import annotations

import pytest

from macaron import cli


def failing(name: str) -> object:
    def build() -> object:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    return build


def test_a_missing_library_is_one_message_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "build_cli", failing("transformers"))
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    assert capsys.readouterr().err == "macaron: this needs transformers: pip install 'macaron[train,evals]'\n"


def test_a_missing_part_of_our_own_is_a_bug_and_shown_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "build_cli", failing("macaron.nothing"))
    with pytest.raises(ModuleNotFoundError):
        cli.main()
