"""A profile ready to encode rows."""

from __future__ import annotations

import pytest

from macaron.errors import ConfigError
from macaron.hcp import Loaded
from macaron.train.base import Base, BaseTokenizer
from macaron.train.studio import Studio
from tests.train.tiny import sft_rows


def test_a_newcomers_rows_begin_with_its_own_system_prompt(
    tiny_loaded: Loaded, tiny_base: Base, tokenizer: BaseTokenizer
) -> None:
    studio = Studio(tiny_loaded, tiny_base, tokenizer, newcomers={"L9": "You write poems."})
    encoded = studio.sft(sft_rows(1)[0], "L9")
    assert "You write poems." in "".join(map(tokenizer.text, encoded.ids))


def test_a_label_of_the_profile_keeps_the_profiles_system_prompt(
    tiny_loaded: Loaded, tiny_base: Base, tokenizer: BaseTokenizer
) -> None:
    with pytest.raises(ConfigError, match="its own system prompt for L0"):
        Studio(tiny_loaded, tiny_base, tokenizer, newcomers={"L0": "You write poems."})


def test_a_label_that_nobody_has_is_told_how_to_join(studio: Studio) -> None:
    with pytest.raises(ConfigError, match="--identity"):
        studio.check("L9")
