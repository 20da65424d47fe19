"""Who the model says it is."""

from __future__ import annotations

import pytest

from macaron.errors import ConfigError
from macaron.evals.identity import QUESTIONS, IdentitySuite, claimed_model, own_name
from macaron.evals.suite import Answer
from macaron.hcp import load
from macaron.profiles import find_profile


@pytest.fixture(scope="module")
def suite() -> IdentitySuite:
    return IdentitySuite(load(find_profile("demi")))


def test_ten_different_questions_that_do_not_name_the_model(suite: IdentitySuite) -> None:
    texts = [case.messages[0]["content"] for case in suite.cases()]
    assert len(set(texts)) == len(QUESTIONS) == 10
    assert not any("macaron" in text.lower() or "smollm" in text.lower() for text in texts)


@pytest.mark.parametrize(
    ("case", "text", "reason"),
    [
        (0, "I am Macaron.", ""),
        (0, "I am an assistant.", "does not name itself"),
        (0, "I am Macaron, made by OpenAI.", "claims another model"),
        (2, "No, I am Macaron, not ChatGPT.", ""),
        (2, "I am not Macaron. I am ChatGPT.", "claims another model"),
        (6, "SmolLM2-135M-Instruct does the work.", ""),
        (6, "I am Macaron.", "does not name itself"),
        (9, "我是Macaron。", ""),
        (9, "我是通义千问。", "claims another model"),
    ],
)
def test_an_answer_passes_when_it_names_itself_and_nobody_else(
    suite: IdentitySuite, case: int, text: str, reason: str
) -> None:
    result = suite.check(suite.cases()[case], Answer(text), "L0")
    assert result.reason == reason
    assert result.passed == (not reason)


@pytest.mark.parametrize(
    ("text", "claimed"),
    [
        ("I'm GPT-4.", "gpt"),
        ("I was trained by Anthropic", "anthropic"),
        ("I'm neither Claude nor Gemini.", ""),
        ("I am not a robot. I am Claude.", "claude"),
        ("I'm not Claude but Qwen.", "qwen"),
        ("My philosophy is simple, and I like llamas.", ""),
        ("", ""),
    ],
)
def test_a_mention_is_a_claim_unless_it_is_denied(text: str, claimed: str) -> None:
    assert claimed_model(text) == claimed


def test_own_words_are_no_claim() -> None:
    assert claimed_model("I am Gemma-like", own=("gemma-like",)) == ""


def test_an_identity_without_a_name_is_an_error() -> None:
    assert own_name("You are Macaron, a helper.") == "Macaron"
    assert own_name("You are a helper named Basil.") == "Basil"
    with pytest.raises(ConfigError, match="gives no name"):
        own_name("You are a helper.")


def test_ten_thousand_characters_are_read_at_once() -> None:
    assert claimed_model("not " * 2500 + "gpt") == ""
