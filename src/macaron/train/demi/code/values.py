"""Kinds of values that chained tasks take and give: their types, their words, and examples of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

_WORDS = (
    "amber", "anna", "apple", "bird", "cloud", "deed", "eagle", "east", "fern", "glass", "hill", "ink", "jam", "kayak",
    "lemon", "level", "mint", "noon", "oak", "otter", "pepper", "rain", "river", "sea", "stone", "tea", "umbrella",
    "violin", "wood", "zebra", "on", "at", "a",
)  # fmt: skip
_NAMES = ("ada", "ben", "cleo", "dan", "eve", "finn", "gus", "hana", "iris", "joe")
_SENTENCES = (
    "Rain falls on 3 old roofs", "meet me at 10 or 11", "Level crossings open at noon", "Pack 2 apples and 12 pears",
    "the bookkeeper keeps notes", "Otto saw Anna", "row 7, seat 21", "A small hill, a tall tree", "see Zoo  at 8",
    "summer wood", "Tea 4 two", "committee rooms", "x1y22z333", "aabbbc", "noon", "hello moon", "Was it a cat",
)  # fmt: skip


class Kind(NamedTuple):
    """A kind of value.

    Attributes:
        type: its annotation.
        thing: what a step calls it if it has no name.
        given: what a docstring says that the function is given.
        names: of the parameter.
        example: makes one.
    """

    type: str
    thing: str = ""
    given: str = ""
    names: tuple[str, ...] = ()
    example: Callable[[Random], Any] | None = None


def numbers(random: Random) -> list[int]:
    """Few enough numbers to be read, some of them equal, negative or zero; sometimes none."""
    size = random.choice((0, 1, 3, 4, 5, 6, 7))
    values = [random.choice((random.randint(-9, 12), random.randint(0, 40))) for _ in range(size)]
    return values + values[:1] if size > 3 and random.random() < 0.5 else values


def words(random: Random) -> list[str]:
    """Some words, one of them twice now and then; sometimes none."""
    chosen = random.sample(_WORDS, random.choice((0, 2, 3, 4, 5)))
    return chosen + chosen[:1] if random.random() < 0.4 else chosen


def text(random: Random) -> str:
    return random.choice((*_SENTENCES, *_SENTENCES, " ".join(random.sample(_WORDS, 3)), ""))


def number(random: Random) -> int:
    return random.choice((1, 2, 6, 7, 10, 12, 18, 24, 30, 45, 64))


def grid(random: Random) -> list[list[int]]:
    width = random.randint(2, 3)
    return [[random.randint(-3, 9) for _ in range(width)] for _ in range(random.randint(2, 3))]


def square(random: Random) -> list[list[int]]:
    size = random.randint(2, 4)
    return [[random.randint(0, 9) for _ in range(size)] for _ in range(size)]


def table(random: Random) -> dict[str, int]:
    return {name: random.randint(0, 9) for name in random.sample(_NAMES, random.choice((0, 2, 3, 4)))}


def pairs(random: Random) -> list[tuple[str, int]]:
    names = random.sample(_NAMES, 3)
    return [(random.choice(names), random.randint(-2, 9)) for _ in range(random.randint(2, 5))]


def fields(random: Random) -> str:
    return random.choice((", ", ",", " ,")).join(random.sample(_WORDS, random.randint(2, 4)))


def number_line(random: Random) -> str:
    return ",".join(str(random.randint(-5, 30)) for _ in range(random.randint(2, 6)))


def entry_line(random: Random) -> str:
    return ";".join(f"{name}={value}" for name, value in pairs(random))


def brackets(random: Random) -> str:
    return "".join(random.choice("(()) x") for _ in range(random.randint(3, 10)))


KINDS: Mapping[str, Kind] = {
    "numbers": Kind("list[int]", "the list", "a list of whole numbers", ("numbers", "nums", "values", "data"), numbers),
    "words": Kind("list[str]", "the list", "a list of words", ("words", "names", "strings", "items"), words),
    "text": Kind("str", "the string", "a string", ("text", "string", "line", "sentence", "message"), text),
    "number": Kind("int", "the number", "a positive integer", ("n", "num", "x"), number),
    "small": Kind("int", "the number", "a number of terms", ("n", "count", "size"), lambda r: r.randint(1, 12)),
    "grid": Kind("list[list[int]]", "the grid", "a grid as a list of rows", ("grid", "matrix", "rows", "table"), grid),
    "square": Kind("list[list[int]]", "the grid", "a square grid of numbers", ("grid", "matrix", "board"), square),
    "table": Kind("dict[str, int]", "the dictionary", "a dictionary from names to whole numbers",
        ("scores", "prices", "stock", "points"), table),
    "pairs": Kind("list[tuple[str, int]]", "the pairs", "a list of (name, number) pairs",
        ("pairs", "orders", "records", "entries"), pairs),
    "fields": Kind("str", "the string", "a line of fields with commas between them", ("line", "row", "text"), fields),
    "number_line": Kind("str", "the string", "a string of whole numbers", ("line", "text", "s"), number_line),
    "entry_line": Kind("str", "the string", "a string of settings", ("line", "text", "config"), entry_line),
    "brackets": Kind("str", "the string", "a string with round brackets", ("text", "s", "expression"), brackets),
    "maybe": Kind("int | None"),
    "maybe_text": Kind("str | None"),
    "flag": Kind("bool"),
    "pair": Kind("tuple[int, int]"),
    "text_pair": Kind("tuple[str, str]"),
    "some_rows": Kind("list[list[int]]"),
    "tally": Kind("dict[int, int]"),
    "groups": Kind("dict[int, list[int]]"),
    "word_groups": Kind("dict[str, list[str]]"),
    "name_groups": Kind("dict[int, list[str]]"),
}  # fmt: skip
"""By the name that steps use."""
