"""Routing rows from our own banks."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

from macaron.errors import ConfigError
from macaron.train.data.source import Builder
from macaron.train.demi.route import contrast, deliverables, injections, own, surface, turns
from macaron.train.demi.route.noise import Noise
from macaron.train.demi.route.phrases import Bank, fill, load_bank, load_table, requests
from tests.train.demi.routing import asked, made, routes

BANKS = [
    *((name, language) for name in ("chat", "writing", "life", "code", "interface") for language in ("en", "zh")),
    ("workspace", "en"),
]
BUILDERS: list[tuple[Builder, set[str], set[str]]] = [
    (own.chat_en, {"L0"}, {"en"}),
    (own.chat_zh, {"L0"}, {"zh"}),
    (own.writing_en, {"L0"}, {"en"}),
    (own.writing_zh, {"L0"}, {"zh"}),
    (own.life_en, {"L1"}, {"en"}),
    (own.life_zh, {"L1"}, {"zh"}),
    (own.workspace_en, {"L1"}, {"en"}),
    (own.code_en, {"L2"}, {"en"}),
    (own.code_zh, {"L2"}, {"zh"}),
    (own.interface_en, {"L3"}, {"en"}),
    (own.interface_zh, {"L3"}, {"zh"}),
    (surface.wrapped_en, {"L3"}, {"en"}),
    (surface.wrapped_zh, {"L3"}, {"zh"}),
    (own.other_languages, {"L0", "L1", "L2", "L3"}, set(own.OTHER_LANGUAGES)),
    (own.long_requests, {"L0", "L1", "L2", "L3"}, {"en", "zh"}),
    (contrast.rows, {"L0", "L1", "L2", "L3"}, {"en", "zh"}),
    (deliverables.rows, {"L0", "L1", "L3"}, {"en", "zh"}),
    (injections.rows, {"L0", "L1", "L2", "L3"}, {"en", "zh"}),
    (turns.rows, {"L0", "L1", "L2", "L3"}, {"en", "zh"}),
]
IDS = [f"{builder.__module__.rpartition('.')[2]}.{builder.__name__}" for builder, _, _ in BUILDERS]
ROWS = 120


@pytest.mark.parametrize(("builder", "labels", "languages"), BUILDERS, ids=IDS)
def test_a_builder_makes_exactly_the_rows_asked_for_with_its_labels_and_languages(
    builder: Builder, labels: set[str], languages: set[str]
) -> None:
    rows = routes(made(builder, ROWS))
    assert len(rows) == len({row.id for row in rows}) == ROWS
    assert {row.label for row in rows} == labels
    assert {row.language for row in rows} == languages
    assert all(row.group and asked(row).strip() for row in rows)


@pytest.mark.parametrize(("builder", "labels", "languages"), BUILDERS, ids=IDS)
def test_the_seed_decides_the_rows(builder: Builder, labels: set[str], languages: set[str]) -> None:
    assert made(builder, 40, seed=3) == made(builder, 40, seed=3)
    assert made(builder, 40, seed=3) != made(builder, 40, seed=4)


@pytest.mark.parametrize(("builder", "labels", "languages"), BUILDERS, ids=IDS)
def test_no_slot_or_mark_is_left_in_a_request(builder: Builder, labels: set[str], languages: set[str]) -> None:
    for row in routes(made(builder, ROWS)):
        left = [mark for mark in ("@brief@", "@ask@", "@other@", "{name}", "{topic}") if mark in asked(row)]
        assert not left


@pytest.mark.parametrize(("name", "language"), BANKS)
def test_every_phrase_of_a_bank_can_be_filled(name: str, language: str) -> None:
    bank = load_bank(name, language)
    phrases = [phrase for said in bank.intents.values() for phrase in said]
    assert all(fill(Random(1), phrase, bank.slots) for phrase in phrases)
    assert all(fill(Random(1), value, bank.slots) for values in bank.slots.values() for value in values)


@pytest.mark.parametrize("label", ["L0", "L1", "L2", "L3"])
def test_the_banks_of_a_label_have_at_least_sixty_phrases_in_english(label: str) -> None:
    name = {"L0": "chat", "L1": "life", "L2": "code", "L3": "interface"}[label]
    phrases = {phrase for said in load_bank(name, "en").intents.values() for phrase in said}
    if label == "L3":
        phrases |= {phrase for said in load_bank("briefs", "en").intents.values() for phrase in said}
    assert len(phrases) >= 60


def test_no_phrase_stands_under_two_labels() -> None:
    said = {
        name: {phrase.lower() for phrases in load_bank(name, language).intents.values() for phrase in phrases}
        for name, language in BANKS
    }
    names = list(said)
    shared = {
        phrase
        for number, first in enumerate(names)
        for second in names[number + 1 :]
        for phrase in said[first] & said[second]
    }
    assert not shared


@pytest.mark.parametrize("word", ["card", "table", "form", "chart", "quiz", "calculator", "timer", "checklist"])
def test_a_word_of_interfaces_stands_under_at_least_three_labels(word: str) -> None:
    banks = [load_bank(name, "en") for name in ("chat", "life", "code", "interface")]
    having = {bank.name for bank in banks if re.search(rf"\b{word}\b", str((bank.intents, bank.slots)))}
    assert "interface.en" in having
    assert len(having) >= 3


@pytest.mark.parametrize("language", ["en", "zh"])
def test_most_phrases_of_interfaces_do_not_say_where_they_are_to_be_shown(language: str) -> None:
    phrases = [phrase for said in load_bank("interface", language).intents.values() for phrase in said]
    plain = [phrase for phrase in phrases if "{here}" not in phrase and "{widget}" not in phrase]
    assert len(plain) > len(phrases) / 2


def test_a_bank_that_has_not_so_many_requests_says_how_many_it_has() -> None:
    bank = Bank("tiny.en", "en", {"greet": ["hello", "hi"]}, {})
    with pytest.raises(ConfigError, match="gives only 2 of 3"):
        list(requests(Random(1), bank, 3))


def test_a_slot_without_values_is_named() -> None:
    with pytest.raises(ConfigError, match=r"\{nowhere\}"):
        fill(Random(1), "go to {nowhere}", {})


def test_slots_that_contain_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="contains itself"):
        fill(Random(1), "{a}", {"a": ["{b}"], "b": ["{a}"]})


def test_noise_keeps_the_words_of_a_language_without_spaces() -> None:
    noise = Noise(Random(1), "zh")
    assert all("帮我订票" in noise("帮我订票") for _ in range(200))


def test_noise_leaves_pasted_text_of_several_lines_alone() -> None:
    noise = Noise(Random(1), "en")
    assert {noise("def f():\n    return 1") for _ in range(200)} == {"def f():\n    return 1"}


def test_contrast_gives_every_subject_all_four_labels() -> None:
    rows = routes(made(contrast.rows, 40))
    for start in range(0, 40, 4):
        four = rows[start : start + 4]
        assert [row.label for row in four] == ["L0", "L1", "L2", "L3"]
        assert len({row.group for row in four}) == 1


def test_a_subject_is_a_text_an_affair_and_something_to_press_and_stands_on_one_side_of_a_split() -> None:
    rows = routes(made(deliverables.rows, 120))
    for start in range(0, 120, 3):
        three = rows[start : start + 3]
        assert [row.label for row in three] == ["L0", "L1", "L3"]
        assert len({(row.group, row.language) for row in three}) == 1
    assert len({row.group for row in rows}) == 40


def test_every_subject_has_a_name_of_its_own_and_three_deliverables() -> None:
    subjects = [subject for table in load_table("deliverables").values() for subject in table]
    assert all(len(subject) == 4 for subject in subjects)
    assert len({name for name, *_ in subjects}) == len(subjects)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ["budget", "booking", "bill", "mail", "app", "form", "dashboard", "questionnaire", "hotel"]),
        ("zh", ["预算", "民宿", "电费", "邮件", "应用", "报名表", "大屏", "问卷", "用药", "文件"]),
    ],
)
def test_texts_are_asked_for_about_what_the_other_labels_do(language: str, words: list[str]) -> None:
    bank = load_bank("writing", language)
    assert not [word for word in words if word not in str((bank.intents, bank.slots))]


@pytest.mark.parametrize("builder", [own.writing_en, own.writing_zh])
def test_texts_are_asked_for_in_a_line_and_in_several_paragraphs(builder: Builder) -> None:
    lines = [asked(row).count("\n") for row in routes(made(builder, ROWS))]
    assert sum(count == 0 for count in lines) >= ROWS // 4
    assert sum(count >= 2 for count in lines) >= ROWS // 4


def test_a_false_label_around_a_request_does_not_change_its_label() -> None:
    labels = {name: label for label, name in injections.BANKS.items()}
    rows = [row for row in routes(made(injections.rows, 200)) if row.group != "injection:quoting"]
    assert all(row.label == labels[row.group.split(":")[1].split(".")[0]] for row in rows)
    assert all(any(other in asked(row) for other in {"L0", "L1", "L2", "L3"} - {row.label}) for row in rows)


def test_a_question_about_a_quoted_request_is_talk_whatever_is_quoted() -> None:
    quoting = [row for row in routes(made(injections.rows, 200)) if row.group == "injection:quoting"]
    assert len(quoting) == 50
    assert {row.label for row in quoting} == {"L0"}


def test_every_earlier_answer_says_who_wrote_it() -> None:
    for row in routes(made(turns.rows, 200)):
        roles = [message["role"] for message in row.messages]
        assert roles[0] == roles[-1] == "user"
        assert "assistant" in roles
        answers = [message for message in row.messages if message["role"] == "assistant"]
        assert all(message["label"] in {"L0", "L1", "L2", "L3"} for message in answers)


def test_half_of_the_rows_of_a_conversation_stay_with_the_last_label_and_half_leave_it() -> None:
    rows = routes(made(turns.rows, 300))
    last = [[message for message in row.messages if message["role"] == "assistant"][-1]["label"] for row in rows]
    stays = Counter(label == row.label for label, row in zip(last, rows, strict=True))
    assert stays == {True: 150, False: 150}


def test_words_that_need_a_turn_before_them_never_open_a_new_subject() -> None:
    vague = set(load_bank("code", "en").intents["vague"])
    for row in routes(made(turns.rows, 300)):
        last = [message for message in row.messages if message["role"] == "assistant"][-1]["label"]
        assert last == row.label or asked(row) not in vague


def test_a_tool_loop_is_shown_with_its_call_and_result() -> None:
    loops = [row for row in routes(made(turns.rows, 200)) if any("tool_calls" in message for message in row.messages)]
    assert loops
    for row in loops:
        calls = {call["id"] for message in row.messages for call in message.get("tool_calls", ())}
        assert {message["tool_call_id"] for message in row.messages if message["role"] == "tool"} == calls


def test_every_scene_has_a_label_and_words_that_follow() -> None:
    table = load_table("turns")
    for scene in (*table["scene"], *table["loop"]):
        assert scene["label"] in {"L0", "L1", "L2", "L3"}
        assert len(scene["next"]) >= 5
