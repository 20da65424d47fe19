"""Recipes: strict, and explained where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from macaron.errors import ConfigError
from macaron.train.data import recipe as recipes
from macaron.train.data.recipe import find_recipe, load_recipe, recipe_names

HEAD = 'name = "mine"\nseed = 7\n'
SOURCE = '[[source]]\nname = "a"\nlicence = "MIT"\npath = "a.jsonl"\n'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def problems(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_recipe(written(tmp_path, text))
    return caught.value.message


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    recipe = load_recipe(written(tmp_path, HEAD + SOURCE))
    assert (recipe.name, recipe.seed, recipe.folder) == ("mine", 7, tmp_path)
    assert (recipe.split.dev, recipe.split.test) == (0.05, 0.05)
    assert (recipe.dedup.enabled, recipe.dedup.threshold) == (True, 0.8)
    assert (recipe.overlap.action, recipe.overlap.max_containment) == ("refuse", 0.8)
    source = recipe.source[0]
    assert (source.split, source.scrub, source.dedup, source.limit, source.packages) == ("auto", True, True, 0, ())


def test_one_package_or_several_may_be_named(tmp_path: Path) -> None:
    builder = SOURCE.replace('path = "a.jsonl"', 'builder = "a.b:c"')
    one = load_recipe(written(tmp_path, HEAD + builder + 'package = "Bfcl_Eval==1.0"'))
    two = load_recipe(written(tmp_path, HEAD + builder + 'package = ["x==1", "y==2"]'))
    assert one.source[0].packages == ("bfcl-eval==1.0",)
    assert two.source[0].packages == ("x==1", "y==2")


def test_the_hash_is_of_what_is_said_not_of_where_or_how(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    first = load_recipe(written(tmp_path, HEAD + SOURCE))
    second = load_recipe(written(tmp_path / "elsewhere", f"# a remark\n{HEAD}\n\n{SOURCE}\n[split]\ndev = 0.05\n"))
    third = load_recipe(written(tmp_path, HEAD.replace("7", "8") + SOURCE))
    assert first.sha256() == second.sha256() != third.sha256()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "name: is missing"),
        ("", "source: is missing"),
        (HEAD + "source = []", "source: a recipe needs at least one [[source]]"),
        (HEAD + "source = 7", "line 3: source: expected `array`, got `int`, the value is 7"),
        (HEAD + "source = [7]", "expected `object`, got `int`"),
        ("sed = 1\n" + SOURCE, "line 1: sed: unknown key; did you mean 'seed'?"),
        (HEAD + SOURCE.replace("licence", "license"), "line 5: source.0.license: unknown key; did you mean 'licence'?"),
        (HEAD + SOURCE.replace("licence", "license"), "source.0.licence: is missing"),
        (HEAD + SOURCE + "zzz = 1", "zzz: unknown key; allowed here: name, licence, builder"),
        (HEAD + SOURCE + "[split]\ntrain = 0.9", "split.train: unknown key; allowed here: dev, test"),
        (HEAD + SOURCE + "[split]\ndev = 0.5\ntest = 0.5", "dev and test together are 1; nothing is left"),
        (HEAD + SOURCE + "[split]\ndev = -1", "split.dev: must be from 0 to 1, the value is -1"),
        (HEAD + SOURCE + "[dedup]\nthreshold = 8", "dedup.threshold: must be from 0 to 1, the value is 8"),
        (HEAD + SOURCE + '[dedup]\nthreshold = "high"', "dedup.threshold: expected `float`, got `str`"),
        (HEAD + SOURCE + '[overlap]\naction = "ignore"', "overlap.action: invalid enum value 'ignore'"),
        (HEAD + SOURCE + "[overlap]\nmax_containment = 2", "overlap.max_containment: must be from 0 to 1"),
        (HEAD.replace("mine", "My Data/") + SOURCE, "line 1: name: 'My Data/' is not a name"),
        (HEAD + SOURCE + SOURCE, "source.1.name: 'a' is the name of an earlier source"),
        (HEAD + SOURCE.replace('"a"', '" "'), "source.0.name: is empty"),
        (HEAD + SOURCE.replace("MIT", ""), "source.0.licence: is empty; write an SPDX expression"),
        (HEAD + SOURCE.replace("path", "note"), "source.0: must have either builder or path"),
        (HEAD + SOURCE + 'builder = "a:b"', "source.0: must have either builder or path"),
        (
            HEAD + SOURCE.replace('path = "a.jsonl"', 'builder = "os.system"'),
            "'os.system' is not package.module:function",
        ),
        (HEAD + SOURCE + 'package = "x==1"', "source.0.package: is only for a builder"),
        (HEAD + SOURCE + 'package = "x>1"', "'x>1' is not name==version"),
        (HEAD + SOURCE + 'package = ["x==1", "X==1"]', "source.0.package: names a package twice"),
        (HEAD + SOURCE + "limit = -1", "source.0.limit: must be 0, for all, or more, the value is -1"),
        (HEAD + SOURCE + 'split = "' + "x" * 90 + '"', "..."),
        ("name = ", "is not TOML"),
    ],
)
def test_a_wrong_recipe_is_told_what_is_wrong_where(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in problems(tmp_path, text)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    assert "4 problems" in problems(tmp_path, 'nam = "x"\n' + SOURCE + "limt = 1")


def test_a_recipe_is_a_file_or_the_name_of_one_that_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "shipped_recipes", lambda: tmp_path)
    path = written(tmp_path, HEAD + SOURCE)
    assert recipe_names() == ("mine",)
    assert find_recipe("mine") == path
    assert find_recipe("./mine.toml") == Path("mine.toml")
    with pytest.raises(ConfigError, match="did you mean 'mine'"):
        find_recipe("mien")
    with pytest.raises(ConfigError, match="recipes that ship: mine"):
        find_recipe("something")


def test_every_recipe_that_ships_is_in_order() -> None:
    for name in recipe_names():
        assert load_recipe(find_recipe(name)).name == name
