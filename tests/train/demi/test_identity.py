"""Dialogues in which the specialist says who it is."""

from __future__ import annotations

import pytest

from macaron.errors import ConfigError
from macaron.train.demi import identity
from macaron.train.demi.route.phrases import load_table
from tests.train.demi.routing import dialogues, made

ROWS = 200


def test_exactly_so_many_different_dialogues_in_two_languages() -> None:
    rows = dialogues(made(identity.rows, ROWS))
    assert len(rows) == len({repr(row.messages) for row in rows}) == ROWS
    assert {row.language for row in rows} == {"en", "zh"}
    assert made(identity.rows, ROWS) == made(identity.rows, ROWS)


def test_no_answer_claims_to_be_another_model() -> None:
    others = load_table("identity")["slots"]["other"]
    for row in dialogues(made(identity.rows, ROWS)):
        for message in row.messages:
            if message["role"] == "assistant":
                text = str(message["content"])
                named = [other for other in others if other in text]
                assert all(f"not {other}" in text or f"不是{other}" in text for other in named)


def test_every_dialogue_with_a_user_who_insists_ends_with_the_own_name() -> None:
    rows = [row for row in dialogues(made(identity.rows, ROWS)) if len(row.messages) >= 4]
    assert rows
    assert all("Macaron" in str(row.messages[-1]["content"]) for row in rows)


def test_a_system_message_never_says_another_identity() -> None:
    systems = [
        str(message["content"])
        for row in dialogues(made(identity.rows, ROWS))
        for message in row.messages
        if message["role"] == "system"
    ]
    assert systems
    assert not any("named" in text or "your name" in text.lower() for text in systems)


def test_an_answer_names_the_place_that_the_system_message_names() -> None:
    places = load_table("identity")["slots"]["place"]
    for row in dialogues(made(identity.rows, ROWS)):
        if row.group == "identity:en:place":
            told = [place for place in places if place in str(row.messages[0]["content"])]
            assert [place for place in places if place in str(row.messages[-1]["content"])] in (told, [])


def test_the_identity_is_read_from_its_text() -> None:
    text = "You are an assistant named Pavlova, based on Meringue-9 (9 billion parameters)."
    assert identity.read_identity(text) == identity.Identity("Pavlova", "Meringue-9", "9 billion")


def test_an_identity_that_does_not_say_its_base_is_refused() -> None:
    with pytest.raises(ConfigError, match="based on BASE"):
        identity.read_identity("You are Macaron.")
