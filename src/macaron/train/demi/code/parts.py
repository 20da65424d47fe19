"""What composed tasks are made of: which elements, what of each one, and what of them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Pick(NamedTuple):
    """Which elements count.

    Attributes:
        name: its part of a function's name.
        before: words in front of the noun, such as `even`; or
        after: words behind it, such as `that are greater than limit`.
        condition: on the element `x`.
        parameter: name and examples of what the caller gives besides the list.
    """

    name: str
    condition: str
    before: str = ""
    after: str = ""
    parameter: tuple[str, str, Sequence[object]] | None = None


class Make(NamedTuple):
    """What is taken of each element: words in front of the elements, an expression of `x`, and its type."""

    name: str
    words: str
    expression: str
    type: str


class Gather(NamedTuple):
    """What is made of all that was taken.

    Attributes:
        words: the request, around `{things}`.
        returns: the type, around `{type}`.
        short: the body as one expression of `{items}`, a generator.
        start, step, end: the same as a loop.
        types: of elements it is for.
        clever: the expression only proves the loop and is not shown.
    """

    name: str
    words: str
    returns: str
    short: str
    start: str
    step: str
    end: str
    types: tuple[str, ...]
    clever: bool = False


_LIMIT = ("limit", "int", (3, 5, 10))
_SIZE = ("size", "int", (3, 4, 5))
_LETTER = ("letter", "str", ("a", "e", "n"))

NUMBER_PICKS = (
    Pick("even", "x % 2 == 0", before="even"),
    Pick("odd", "x % 2 == 1", before="odd"),
    Pick("positive", "x > 0", before="positive"),
    Pick("negative", "x < 0", before="negative"),
    Pick("nonzero", "x != 0", after="that are not zero"),
    Pick("multiple", "x % 3 == 0", after="that are divisible by 3"),
    Pick("two_digit", "10 <= abs(x) <= 99", after="that have exactly two digits"),
    Pick("above", "x > limit", after="that are greater than limit", parameter=_LIMIT),
    Pick("below", "x < limit", after="that are less than limit", parameter=_LIMIT),
    Pick("divisible", "x % limit == 0", after="that are divisible by limit", parameter=_LIMIT),
    Pick("ending_in_five", "abs(x) % 10 == 5", after="whose last digit is 5"),
    Pick("small", "abs(x) <= limit", after="whose absolute value is at most limit", parameter=_LIMIT),
    Pick("mirrored", "str(abs(x)) == str(abs(x))[::-1]", after="whose digits read the same from both ends"),
    Pick("heavy", "sum(map(int, str(abs(x)))) > limit", after="with a digit sum above limit", parameter=_LIMIT),
    Pick("odd_multiple", "x % 2 == 1 and x % 3 == 0", before="odd", after="that are divisible by 3"),
    Pick("outside", "x < 0 or x > limit", after="that are negative or greater than limit", parameter=_LIMIT),
)
NUMBER_MAKES = (
    Make("", "", "x", "int"),
    Make("squares", "the squares of ", "x * x", "int"),
    Make("cubes", "the cubes of ", "x**3", "int"),
    Make("doubled", "the doubles of ", "2 * x", "int"),
    Make("absolute", "the absolute values of ", "abs(x)", "int"),
    Make("last_digits", "the last digits of ", "abs(x) % 10", "int"),
    Make("digit_counts", "the numbers of digits of ", "len(str(abs(x)))", "int"),
    Make("digit_sums", "the digit sums of ", "sum(int(digit) for digit in str(abs(x)))", "int"),
    Make("halves", "the halves, rounded down, of ", "x // 2", "int"),
    Make("binary", "the binary forms of the absolute values of ", 'format(abs(x), "b")', "str"),
    Make("as_text", "the strings of ", "str(x)", "str"),
)
WORD_PICKS = (
    Pick("long", "len(x) > size", after="that have more than size letters", parameter=_SIZE),
    Pick("short", "len(x) < size", after="that have fewer than size letters", parameter=_SIZE),
    Pick("exact", "len(x) == size", after="that have exactly size letters", parameter=_SIZE),
    Pick("starting", "x.startswith(letter)", after="that start with letter", parameter=_LETTER),
    Pick("ending", "x.endswith(letter)", after="that end with letter", parameter=_LETTER),
    Pick("containing", "letter in x", after="that contain letter", parameter=_LETTER),
    Pick("without", "letter not in x", after="that do not contain letter", parameter=_LETTER),
    Pick("vowel", 'x[0] in "aeiou"', after="that start with a vowel"),
    Pick("repeating", "len(set(x)) < len(x)", after="that use some letter more than once"),
    Pick("even_length", "len(x) % 2 == 0", after="that have an even number of letters"),
    Pick("mirrored", "x == x[::-1]", after="that read the same backwards"),
    Pick("framed", "x[0] == x[-1]", after="that begin and end with the same letter"),
    Pick("sorted_letters", "list(x) == sorted(x)", after="whose letters are in alphabetical order"),
)
WORD_MAKES = (
    Make("", "", "x", "str"),
    Make("upper", "the upper case forms of ", "x.upper()", "str"),
    Make("reversed", "the reversed forms of ", "x[::-1]", "str"),
    Make("initials", "the first letters of ", "x[0]", "str"),
    Make("last_letters", "the last letters of ", "x[-1]", "str"),
    Make("lengths", "the lengths of ", "len(x)", "int"),
    Make("vowel_counts", "the numbers of vowels of ", 'sum(letter in "aeiou" for letter in x)', "int"),
    Make("middles", "the middle letters of ", "x[len(x) // 2]", "str"),
    Make("starred", "the forms with stars in the place of each a of ", 'x.replace("a", "*")', "str"),
    Make("titles", "the capitalized forms of ", "x.capitalize()", "str"),
)
_ANY = ("int", "str")
GATHERS = (
    Gather(
        "list",
        "Return a list of {things}.",
        "list[{type}]",
        "[{items}]",
        "result = []",
        "result.append({e})",
        "result",
        _ANY,
    ),
    Gather(
        "sum",
        "Return the sum of {things}.",
        "int",
        "sum({items})",
        "total = 0",
        "total += {e}",
        "total",
        ("int",),
    ),
    Gather(
        "product",
        "Return the product of {things}; it is 1 if there are none.",
        "int",
        "math.prod({items})",
        "product = 1",
        "product *= {e}",
        "product",
        ("int",),
    ),
    Gather(
        "count",
        "Count {things}.",
        "int",
        "len([{items}])",
        "count = 0",
        "count += 1",
        "count",
        ("plain",),
    ),
    Gather(
        "largest",
        "Return the largest of {things}, or None if there are none.",
        "int | None",
        "max(({items}), default=None)",
        "best = None",
        "if best is None or {e} > best:\n    best = {e}",
        "best",
        ("int",),
    ),
    Gather(
        "smallest",
        "Return the smallest of {things}, or None if there are none.",
        "int | None",
        "min(({items}), default=None)",
        "best = None",
        "if best is None or {e} < best:\n    best = {e}",
        "best",
        ("int",),
    ),
    Gather(
        "sorted",
        "Return {things} in ascending order.",
        "list[{type}]",
        "sorted({items})",
        "result = []",
        "result.append({e})",
        "sorted(result)",
        _ANY,
    ),
    Gather(
        "descending",
        "Return {things} in descending order.",
        "list[{type}]",
        "sorted(({items}), reverse=True)",
        "result = []",
        "result.append({e})",
        "sorted(result, reverse=True)",
        _ANY,
    ),
    Gather(
        "distinct",
        "Return {things} as a sorted list without duplicates.",
        "list[{type}]",
        "sorted({{{items}}})",
        "seen = set()",
        "seen.add({e})",
        "sorted(seen)",
        _ANY,
    ),
    Gather(
        "joined",
        "Return {things} joined by commas.",
        "str",
        '",".join({items})',
        "parts = []",
        "parts.append({e})",
        '",".join(parts)',
        ("str",),
    ),
    Gather(
        "first",
        "Return the first of {things}, or None if there are none.",
        "{type} | None",
        "next(({items}), None)",
        "",
        "return {e}",
        "None",
        _ANY,
    ),
    Gather(
        "last",
        "Return the last of {things}, or None if there are none.",
        "{type} | None",
        "([None] + [{items}])[-1]",
        "found = None",
        "found = {e}",
        "found",
        _ANY,
        clever=True,
    ),
    Gather(
        "average",
        "Return the average of {things} rounded down, or 0 if there are none.",
        "int",
        "sum({items}) // max(1, len([{items}]))",
        "total = 0\ncount = 0",
        "total += {e}\ncount += 1",
        "total // count if count else 0",
        ("int",),
        clever=True,
    ),
    Gather(
        "counts",
        "Return a dictionary that maps each of {things} to how often it occurs.",
        "dict[{type}, int]",
        "dict(Counter({items}))",
        "counts = {{}}",
        "counts[{e}] = counts.get({e}, 0) + 1",
        "counts",
        _ANY,
    ),
)
