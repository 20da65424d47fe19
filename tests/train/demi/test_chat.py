"""Dialogues that keep the ability to chat."""

from __future__ import annotations

from pathlib import Path

from macaron.train.demi import chat
from tests.train.demi.routing import FolderPackages, context, dialogues, made, write_json


def test_our_dialogues_alternate_and_end_with_the_assistant() -> None:
    rows = dialogues(made(chat.own, 0))
    assert len(rows) > 50
    for row in rows:
        roles = [message["role"] for message in row.messages]
        assert roles == ["user", "assistant"] * (len(roles) // 2)


def test_dialogues_between_people_are_cut_so_that_the_assistant_has_the_last_word(tmp_path: Path) -> None:
    turns = [[{"text": text}] for text in ("Hello", "Hi", "How are you?", "x" * 500)]
    write_json(tmp_path / "chitchat_dataset/dataset.json", {"d": {"messages": turns}, "e": {"messages": turns[:1]}})
    (row,) = dialogues(chat.people(context(FolderPackages(tmp_path))))
    assert [message["content"] for message in row.messages] == ["Hello", "Hi"]


def test_trivia_takes_one_answer_a_question_on_its_subjects(tmp_path: Path) -> None:
    for language in ("english", "chinese"):
        (tmp_path / "chatterbot_corpus/data" / language).mkdir(parents=True)
    folder = tmp_path / "chatterbot_corpus/data/english"
    (folder / "science.yml").write_text(
        "conversations:\n- - What is ice?\n  - Water.\n- - What is ice?\n  - Frozen water.\n"
    )
    (folder / "botprofile.yml").write_text("conversations:\n- - Who are you?\n  - A program.\n")
    (row,) = dialogues(chat.trivia(context(FolderPackages(tmp_path))))
    assert [message["content"] for message in row.messages] == ["What is ice?", "Frozen water."]
