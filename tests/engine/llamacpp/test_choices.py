"""How a label is asked for, with a tokenizer that cuts where it is told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from macaron.engine.llamacpp.choices import ChoicePlan, Tokenize, plan_choice
from macaron.errors import EngineError


def cutting(*vocabulary: str) -> Tokenize:
    """Longest match first, else one character a token."""

    async def tokenize(text: str) -> Sequence[tuple[int, str]]:
        tokens: list[str] = []
        while text:
            tokens.append(max((word for word in vocabulary if text.startswith(word)), key=len, default=text[0]))
            text = text.removeprefix(tokens[-1])
        return [(hash(token), token) for token in tokens]

    return tokenize


async def plan(labels: tuple[str, ...], given: str = "", *vocabulary: str) -> ChoicePlan:
    return await plan_choice(labels, given, cutting(*vocabulary))


async def test_tokens_shared_by_all_labels_are_prefilled_and_one_decides() -> None:
    asked = await plan(("L0", "L1", "L2"))
    assert (asked.prefill, asked.one_token) == ("L", True)
    assert asked.grammar == 'root ::= "0" | "1" | "2"'
    assert asked.label("1") == "L1"


async def test_label_that_begins_another_is_decoded_to_its_end() -> None:
    asked = await plan(("L1", "L10"))
    assert not asked.one_token
    assert asked.label("1") == "L1"
    assert asked.label("10") == "L10"


async def test_shared_letters_that_are_no_token_are_not_prefilled() -> None:
    asked = await plan(("Chat", "Code"), "", "Chat", "Code")
    assert (asked.prefill, asked.one_token) == ("", False)


async def test_beginning_of_a_label_is_enough_where_only_one_has_it() -> None:
    asked = await plan(("Weather", "Story"), "", "Weather", "Story")
    assert asked.one_token
    assert asked.label("We") == "Weather"
    assert asked.label("x") is None


async def test_text_that_fits_several_labels_names_none() -> None:
    assert (await plan(("Chat", "Code"), "", "Chat", "Code")).label("C") is None


@pytest.mark.parametrize(("given", "prefill"), [("L", "L"), ("Label: ", "Label: L"), ("Label: L", "Label: L")])
async def test_prefill_of_the_profile_comes_first(given: str, prefill: str) -> None:
    asked = await plan(("L0", "L1"), given)
    assert asked.prefill == prefill
    assert asked.label("1") == "L1"


async def test_prefill_that_cuts_labels_elsewhere_is_kept() -> None:
    asked = await plan(("Weather", "Wonder"), "W", "Weather", "Wonder")
    assert (asked.prefill, asked.one_token) == ("W", True)
    assert asked.label("o") == "Wonder"


async def test_no_labels_are_an_error() -> None:
    with pytest.raises(EngineError, match="labels"):
        await plan(())
