"""Recorded turns are found with what followed them, and deleted for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.experience import ExperienceFile, Wanted
from tests.experience.made import made, read, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A conversation with a tool loop, a retry, and another tenant's turn."""
    path = tmp_path / "t.experience"
    write(
        path,
        [
            made("calls", asked="the weather?", status="completed"),
            made("answers", parent="calls", turn="calls", asked=""),
            made("thanks", parent="answers", asked="thank you, perfect"),
            made("first", session="s2", question="same", label="L1"),
            made("again", session="s3", question="same", label="L1", revision="sha256:" + "b" * 64),
            made("theirs", tenant="other", session="s9", status="cancelled"),
        ],
    )
    return path


def ids(path: Path, **wanted: tuple[str, ...]) -> list[str]:
    return [turn.record.id for turn in read(path, Wanted(**wanted))]  # type: ignore[arg-type]


def test_what_followed_is_known(path: Path) -> None:
    kinds = {turn.record.id: (turn.reaction.kind, turn.reaction.text) for turn in read(path)}
    assert kinds == {
        "calls": ("tools", ""),
        "answers": ("next", "thank you, perfect"),
        "thanks": ("none", ""),
        "first": ("retried", ""),
        "again": ("none", ""),
        "theirs": ("none", ""),
    }


@pytest.mark.parametrize("name", ["calls", "answers", "first", "again"])
def test_one_turn_is_found_as_among_all(path: Path, name: str) -> None:
    with ExperienceFile(path) as file:
        assert file.find(name) == next(turn for turn in file.turns() if turn.record.id == name)
        assert file.find("nobody") is None


def test_turns_are_chosen_by_what_they_are(path: Path) -> None:
    assert ids(path, tenants=("other",)) == ["theirs"]
    assert ids(path, labels=("L1",), sessions=("s3",)) == ["again"]
    assert ids(path, revisions=("sha256:bbbb",)) == ["again"]
    assert ids(path, reactions=("next", "retried")) == ["answers", "first"]
    assert ids(path, statuses=("cancelled",)) == ["theirs"]


def test_many_turns_are_read_in_pages(tmp_path: Path) -> None:
    path = tmp_path / "t.experience"
    write(path, [made(f"r{number:04}") for number in range(450)])
    assert ids(path) == [f"r{number:04}" for number in range(450)]


def test_sessions_are_listed_latest_first(path: Path) -> None:
    with ExperienceFile(path) as file:
        sessions = file.sessions()
        assert [(item.tenant, item.session, item.answers, item.turns) for item in sessions] == [
            ("other", "s9", 1, 1), ("acme", "s3", 1, 1), ("acme", "s2", 1, 1), ("acme", "s1", 3, 2),
        ]  # fmt: skip
        assert [item.session for item in file.sessions("other")] == ["s9"]


def test_a_session_is_deleted_and_its_words_are_gone_from_the_disk(path: Path) -> None:
    with ExperienceFile(path, writable=True) as file:
        assert file.delete("acme", "s1") == 3
    assert ids(path) == ["first", "again", "theirs"]
    left = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"perfect" not in left
    with ExperienceFile(path) as file:
        assert file.totals().turns == 3
        assert file.totals().bytes == sum(item.bytes for item in file.sessions())


def test_a_tenant_is_deleted_and_nobody_else(path: Path) -> None:
    with ExperienceFile(path, writable=True) as file:
        assert file.delete("acme") == 5
        assert file.delete("acme") == 0
    assert ids(path) == ["theirs"]


def test_another_tenants_session_is_not_deleted(path: Path) -> None:
    with ExperienceFile(path, writable=True) as file:
        assert file.delete("acme", "s9") == 0


def test_recording_goes_on_after_a_deletion(path: Path) -> None:
    with ExperienceFile(path, writable=True) as file:
        file.delete("acme")
    write(path, [made("later")])
    (turn,) = read(path, Wanted(tenants=("acme",)))
    assert turn.consent.consent


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are no recorded turns"):
        ExperienceFile(tmp_path / "t.experience")
