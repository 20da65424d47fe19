"""The suite `ui`: its cases and the rule that decides them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.evals.suite import Answer, Suite
from macaron.evals.tsx import check_tsx, find_card
from macaron.evals.ui import HELD_OUT, OWN, UiSuite, own_briefs

CARD = "```tsx\nexport default () => <p>hi</p>;\n```"


def briefs_file(folder: Path, count: int) -> Path:
    path = folder / "briefs.jsonl"
    lines = ({"id": f"b{number}", "text": f"做个卡片 {number}", "surface": "inline"} for number in range(count))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_without_a_file_there_are_sixty_briefs_of_our_own() -> None:
    suite: Suite = UiSuite()
    cases = suite.cases()
    assert len(cases) == 60
    assert {case.source for case in cases} == {OWN}
    assert {case.language for case in cases} == {"en"}


def test_a_file_gives_the_asked_number_of_cases_as_a_source_of_its_own(tmp_path: Path) -> None:
    cases = UiSuite(briefs_file(tmp_path, 500)).cases()
    held_out = [case for case in cases if case.source == HELD_OUT]
    assert len(held_out) == 180
    assert {case.language for case in held_out} == {"zh"}
    assert len({case.id for case in cases}) == 240


def test_the_same_file_gives_the_same_cases_and_a_longer_one_keeps_most(tmp_path: Path) -> None:
    first = UiSuite(briefs_file(tmp_path, 500)).cases()
    assert UiSuite(tmp_path / "briefs.jsonl").cases() == first
    longer = UiSuite(briefs_file(tmp_path, 520)).cases()
    assert len({case.id for case in first} & {case.id for case in longer}) > 215


def test_briefs_that_were_read_before_the_training_data_was_written_are_no_cases(tmp_path: Path) -> None:
    path = tmp_path / "briefs.jsonl"
    path.write_text('{"id": "ui-0047", "text": "seen"}\n{"id": "ui-0048", "text": "not seen"}\n')
    held_out = [case.id for case in UiSuite(path).cases() if case.source == HELD_OUT]
    assert held_out == ["ui-briefs/ui-0048"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n', ":2 has the id 'a'"),
        ('{"id": "a"}\n', ":1 is not a brief"),
        ("\n{broken\n", ":2 is not a brief"),
        ('"text"\n', ":1 is not a brief"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "briefs.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        UiSuite(path).cases()
    assert words in refused.value.message


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.jsonl"):
        UiSuite(tmp_path / "nothing.jsonl").cases()


def test_the_examples_are_solved_and_none_of_them_is_a_case() -> None:
    suite = UiSuite()
    examples = suite.examples()
    assert [message["role"] for message in examples] == ["user", "assistant"] * 2
    for message in examples[1::2]:
        assert check_tsx(find_card(message["content"]) or "").clean
    assert not {message["content"] for message in examples} & {brief.text for brief in own_briefs()}


def test_an_answer_with_a_clean_card_passes() -> None:
    suite = UiSuite()
    result = suite.check(suite.cases()[0], Answer(CARD, seconds=1.5, tokens=9), "L3")
    assert result.passed
    assert (result.case, result.source, result.subject) == ("own-briefs/own-01", OWN, "L3")
    assert (result.reason, result.seconds, result.tokens) == ("", 1.5, 9)
    assert result.detail["copied"] is False


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer("Sure, what colour?"), "no card"),
        (Answer("```tsx\nexport default () => <p>\n```"), "does not parse"),
        (Answer("```tsx\nexport default () => <p>", status="incomplete"), "cut off"),
        (Answer("", status="incomplete"), "cut off"),
        (Answer(CARD.replace("<p>", "<Box>").replace("</p>", "</Box>")), "uses what is not defined"),
    ],
)
def test_an_answer_that_fails_says_why(answer: Answer, reason: str) -> None:
    suite = UiSuite()
    result = suite.check(suite.cases()[0], answer, "base")
    assert not result.passed
    assert result.reason == reason


def test_every_fault_is_kept_where_there_are_several() -> None:
    suite = UiSuite()
    result = suite.check(suite.cases()[0], Answer("```tsx\nimport 'fs';\nexport const a = <B />;\n```"), "base")
    assert result.detail["reasons"] == [
        "no default export",
        "imports a module that is not there",
        "uses what is not defined",
    ]
    assert result.detail["undefined"] == ["B"]


def test_a_copied_example_passes_and_is_marked() -> None:
    suite = UiSuite()
    result = suite.check(suite.cases()[0], Answer(suite.examples()[1]["content"]), "base+examples")
    assert result.passed
    assert result.detail["copied"] is True


def test_a_long_answer_is_kept_clipped() -> None:
    suite = UiSuite()
    assert len(suite.check(suite.cases()[0], Answer("x" * 50_000), "base").output) == 8_000
