"""Dictionaries, sets and grouping."""

from collections import defaultdict
from typing import Any


def invert_dict(mapping: dict[str, int]) -> dict[int, list[str]]:
    """Turn a dictionary around: each value becomes a key with the list of keys that had it.

    >>> invert_dict({"a": 1, "b": 2, "c": 1})
    {1: ['a', 'c'], 2: ['b']}
    >>> invert_dict({})
    {}
    """
    result: dict[int, list[str]] = {}
    for key, value in mapping.items():
        result.setdefault(value, []).append(key)
    return result


def word_count(text: str) -> dict[str, int]:
    """Count how often each word occurs in text, ignoring case.

    >>> word_count("the cat and The dog")
    {'the': 2, 'cat': 1, 'and': 1, 'dog': 1}
    >>> word_count("")
    {}
    """
    counts: dict[str, int] = {}
    for word in text.lower().split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def merge_counts(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    """Merge two dictionaries of numbers, adding the values of keys that are in both.

    >>> merge_counts({"a": 1, "b": 2}, {"b": 3, "c": 4})
    {'a': 1, 'b': 5, 'c': 4}
    >>> merge_counts({}, {"x": 1})
    {'x': 1}
    """
    result = dict(first)
    for key, value in second.items():
        result[key] = result.get(key, 0) + value
    return result


def group_anagrams(words: list[str]) -> list[list[str]]:
    """Group the words that are anagrams of each other, in order of first appearance.

    >>> group_anagrams(["eat", "tan", "tea", "ate", "nat"])
    [['eat', 'tea', 'ate'], ['tan', 'nat']]
    >>> group_anagrams([])
    []
    """
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault("".join(sorted(word)), []).append(word)
    return list(groups.values())


def group_by_length(words: list[str]) -> dict[int, list[str]]:
    """Group words by their length.

    >>> group_by_length(["a", "to", "be", "cat"])
    {1: ['a'], 2: ['to', 'be'], 3: ['cat']}
    >>> group_by_length([])
    {}
    """
    groups = defaultdict(list)
    for word in words:
        groups[len(word)].append(word)
    return dict(groups)


def most_common(items: list[str]) -> str | None:
    """Return the item that occurs most often, the first one in case of a tie, or None for an empty list.

    >>> most_common(["a", "b", "b", "c"])
    'b'
    >>> most_common([]) is None
    True
    """
    best = None
    for item in items:
        if best is None or items.count(item) > items.count(best):
            best = item
    return best


def filter_dict(scores: dict[str, int], minimum: int) -> dict[str, int]:
    """Keep only the entries whose value is at least minimum.

    >>> filter_dict({"ann": 90, "bob": 55, "eve": 70}, 70)
    {'ann': 90, 'eve': 70}
    >>> filter_dict({}, 1)
    {}
    """
    return {name: score for name, score in scores.items() if score >= minimum}


def deep_get(data: dict[str, Any], path: str, default: Any = None) -> Any:
    """Look up a value in nested dictionaries by a path with dots, or return default.

    >>> deep_get({"a": {"b": {"c": 5}}}, "a.b.c")
    5
    >>> deep_get({"a": 1}, "a.x", "none")
    'none'
    """
    current: Any = data
    for key in path.split("."):
        if not isinstance(current, dict) or key not in current:
            return default
        current = current[key]
    return current


def flatten_dict(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested dictionaries into one with keys joined by dots.

    >>> flatten_dict({"a": 1, "b": {"c": 2, "d": {"e": 3}}})
    {'a': 1, 'b.c': 2, 'b.d.e': 3}
    >>> flatten_dict({})
    {}
    """
    result = {}
    for key, value in data.items():
        if isinstance(value, dict):
            result.update(flatten_dict(value, prefix + key + "."))
        else:
            result[prefix + key] = value
    return result


def average_by_key(pairs: list[tuple[str, float]]) -> dict[str, float]:
    """Compute the average value of each key in a list of (key, value) pairs.

    >>> average_by_key([("a", 2), ("b", 5), ("a", 4)])
    {'a': 3.0, 'b': 5.0}
    >>> average_by_key([])
    {}
    """
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for key, value in pairs:
        sums[key] = sums.get(key, 0) + value
        counts[key] = counts.get(key, 0) + 1
    return {key: sums[key] / counts[key] for key in sums}


def top_scores(scores: dict[str, int], n: int) -> list[str]:
    """Return the n names with the highest scores, best first; equal scores are sorted by name.

    >>> top_scores({"ann": 3, "bob": 9, "cy": 3}, 2)
    ['bob', 'ann']
    >>> top_scores({}, 3)
    []
    """
    names = sorted(scores, key=lambda name: (-scores[name], name))
    return names[:n]


def dict_diff(old: dict[str, int], new: dict[str, int]) -> tuple[list[str], list[str], list[str]]:
    """Compare two dictionaries and return the sorted keys that were added, removed and changed.

    >>> dict_diff({"a": 1, "b": 2}, {"b": 3, "c": 4})
    (['c'], ['a'], ['b'])
    >>> dict_diff({}, {})
    ([], [], [])
    """
    added = sorted(key for key in new if key not in old)
    removed = sorted(key for key in old if key not in new)
    changed = sorted(key for key in old if key in new and old[key] != new[key])
    return added, removed, changed


def index_by(records: list[dict[str, Any]], field: str) -> dict[Any, dict[str, Any]]:
    """Build a dictionary from the value of a field to the record that has it.

    >>> index_by([{"id": 1, "name": "x"}, {"id": 2, "name": "y"}], "id")[2]["name"]
    'y'
    >>> index_by([], "id")
    {}
    """
    return {record[field]: record for record in records}


def cart_total(cart: dict[str, int], prices: dict[str, float]) -> float:
    """Return the total price of a cart that maps products to quantities; products without a price are ignored.

    >>> cart_total({"apple": 3, "pear": 2}, {"apple": 0.5, "pear": 1.0})
    3.5
    >>> cart_total({"ghost": 1}, {})
    0
    """
    return sum(quantity * prices[product] for product, quantity in cart.items() if product in prices)


def jaccard(a: set[int], b: set[int]) -> float:
    """Return the size of the intersection of two sets divided by the size of their union, or 1.0 if both are empty.

    >>> jaccard({1, 2, 3}, {2, 3, 4})
    0.5
    >>> jaccard(set(), set())
    1.0
    """
    union = a | b
    if not union:
        return 1.0
    return len(a & b) / len(union)


def symmetric_items(a: list[int], b: list[int]) -> list[int]:
    """Return the sorted numbers that are in exactly one of two lists.

    >>> symmetric_items([1, 2, 3], [3, 4])
    [1, 2, 4]
    >>> symmetric_items([], [])
    []
    """
    return sorted(set(a) ^ set(b))
