"""Settings: recipes, overrides, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from macaron.errors import ConfigError
from macaron.train.config import build_config, differences, read_recipe

LEAST: dict[str, Any] = {"kind": "sft", "profile": "demi", "adapter": "L0", "data": ["x"]}


def test_the_command_line_overrides_a_recipe(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("epochs = 3\n[lora]\nrank = 16\nalpha = 7\n")
    config = build_config(read_recipe(str(tmp_path / "mine.toml")), {**LEAST, "lora.rank": 4, "seed": None})
    assert (config.epochs, config.lora.rank, config.lora.alpha, config.seed) == (3, 4, 7, 1)


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ({"lora.rnk": 4}, "rnk"),
        ({"optimizer.lr": 0}, r"optimizer\.lr is 0.* it must be between 0 and 1"),
        ({"mix.route": -1}, r"mix\.route is -1.*it must be 0 or more"),
        ({"epochs": "two"}, "epochs"),
        ({"adapter": "../x"}, r"adapter is '../x'.*it must be 1 to 32 letters"),
        ({"data": []}, "data is .* it must be at least one folder"),
    ],
)
def test_a_wrong_setting_is_named(override: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        build_config(LEAST, override)


def test_an_unknown_recipe_names_those_that_ship() -> None:
    with pytest.raises(ConfigError, match=r"no recipe 'nothing'; recipes that ship: .*demi"):
        read_recipe("nothing")


def test_threads_and_checkpoints_may_change_when_a_run_is_resumed() -> None:
    stored = build_config(LEAST, {})
    assert differences(stored, build_config(LEAST, {"threads": 4, "checkpoint.minutes": 1.0})) == []
    assert differences(stored, build_config(LEAST, {"seed": 2, "lora.rank": 2})) == ["lora.rank", "seed"]
