"""A card that the router does not know: read with its requests, and shown beside the others."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.evals.newcomer import read_newcomer
from macaron.evals.router import Questions
from macaron.hcp import Loaded, load
from macaron.profiles import find_profile
from macaron.registry.cards import Registry, registry_from

CARD = 'label = "L4"\nname = "Maps"\ndescription = "Draws maps."\nen = ["a map of Rome"]\nzh = ["罗马地图"]\n'


@pytest.fixture
def loaded() -> Loaded:
    return load(find_profile("demi"))


@pytest.fixture
def registry(loaded: Loaded) -> Registry:
    return registry_from(loaded)


def written(folder: Path, text: str) -> Path:
    path = folder / "card.toml"
    path.write_text(text)
    return path


def test_the_card_stands_behind_those_of_the_profile(tmp_path: Path, loaded: Loaded, registry: Registry) -> None:
    found = read_newcomer(written(tmp_path, CARD), registry)
    assert found.registry.labels == (*registry.labels, "L4")
    system, _ = Questions(loaded, found.registry).about(found.rows[0].messages)
    assert "\nL4: Draws maps.\n" in system["content"]
    assert "L3, L4" in system["content"]
    assert [(row.label, row.language) for row in found.rows] == [("L4", "en"), ("L4", "zh")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (CARD.replace("L4", "L2"), "is taken"),
        (CARD + "colour = 1\n", "colour"),
        ("label =", "no card"),
        (CARD.replace('name = "Maps"\n', ""), "name"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, registry: Registry, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        read_newcomer(written(tmp_path, text), registry)


def test_a_missing_file_is_refused_by_name(tmp_path: Path, registry: Registry) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml"):
        read_newcomer(tmp_path / "none.toml", registry)


def test_the_newcomer_that_ships_has_forty_requests(registry: Registry) -> None:
    path = Path(str(files("macaron.evals") / "data" / "newcomer.toml"))
    found = read_newcomer(path, registry)
    assert len({row.id for row in found.rows}) == 40
    assert len({str(row.messages) for row in found.rows}) == 40
