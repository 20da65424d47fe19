"""Iterators, functions that take functions, tables, and choices."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def apply_where(function: Callable[[Any], Any], test: Callable[[Any], bool], items: Iterable[Any]) -> list[Any]:
    """Apply a function to the items that pass a test and leave the others as they are.

    >>> apply_where(lambda x: -x, lambda x: x < 0, [1, -2, 3])
    [1, 2, 3]
    >>> apply_where(str.upper, str.islower, ["a", "B"])
    ['A', 'B']
    """
    result = []
    for item in items:
        if test(item):
            result.append(function(item))
        else:
            result.append(item)
    return result


def every_kth(items: Iterable[Any], k: int) -> Iterator[Any]:
    """Yield the k-th item, the 2k-th item and so on of any iterable.

    >>> list(every_kth("abcdefg", 3))
    ['c', 'f']
    >>> list(every_kth([], 2))
    []
    """
    for number, item in enumerate(items, 1):
        if number % k == 0:
            yield item


def with_previous(items: Iterable[Any], first: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of the previous item and the item; the first item is paired with first.

    >>> list(with_previous([1, 2, 3]))
    [(None, 1), (1, 2), (2, 3)]
    >>> list(with_previous([], 0))
    []
    """
    previous = first
    for item in items:
        yield (previous, item)
        previous = item


def until_repeat(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items until one comes that was there before.

    >>> list(until_repeat([3, 1, 4, 1, 5]))
    [3, 1, 4]
    >>> "".join(until_repeat("xyz"))
    'xyz'
    """
    seen = set()
    for item in items:
        if item in seen:
            return
        seen.add(item)
        yield item


def spread_out(items: Iterable[Any], times: int = 2) -> Iterator[Any]:
    """Yield every item several times in a row.

    >>> list(spread_out([1, 2]))
    [1, 1, 2, 2]
    >>> list(spread_out("ab", times=1))
    ['a', 'b']
    """
    for item in items:
        for _ in range(times):
            yield item


def count_where(test: Callable[[Any], bool], *collections: Iterable[Any]) -> int:
    """Count the items of all collections that pass a test.

    >>> count_where(lambda x: x > 2, [1, 3], [5], [])
    2
    >>> count_where(str.isdigit)
    0
    """
    count = 0
    for collection in collections:
        for item in collection:
            if test(item):
                count += 1
    return count


def best_by(items: Iterable[Any], score: Callable[[Any], Any], default: Any = None) -> Any:
    """Return the first item with the highest score, or default if there are no items.

    >>> best_by(["fig", "apple", "melon"], len)
    'apple'
    >>> best_by([], len, default="none")
    'none'
    """
    best = default
    best_score = None
    for item in items:
        value = score(item)
        if best_score is None or value > best_score:
            best = item
            best_score = value
    return best


def group_items(key: Callable[[Any], Any], items: Iterable[Any]) -> dict[Any, list[Any]]:
    """Group items in a dictionary by what a function says about them.

    >>> group_items(len, ["a", "bb", "c"])
    {1: ['a', 'c'], 2: ['bb']}
    >>> group_items(len, [])
    {}
    """
    groups: dict[Any, list[Any]] = {}
    for item in items:
        name = key(item)
        if name not in groups:
            groups[name] = []
        groups[name].append(item)
    return groups


def change_keys(function: Callable[[Any], Any], table: dict[Any, Any]) -> dict[Any, Any]:
    """Return a dictionary with the same values in which a function was applied to every key.

    >>> change_keys(str.lower, {"A": 1, "B": 2})
    {'a': 1, 'b': 2}
    >>> change_keys(str, {})
    {}
    """
    result = {}
    for key, value in table.items():
        result[function(key)] = value
    return result


def without_keys(table: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a copy of a dictionary without some of its keys; names that are not there do not matter.

    >>> without_keys({"a": 1, "b": 2}, "b", "x")
    {'a': 1}
    >>> without_keys({})
    {}
    """
    result = {}
    for key, value in table.items():
        if key not in names:
            result[key] = value
    return result


def deep_update(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a nested dictionary with changes, which may be nested as well.

    >>> deep_update({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}, "b": 4})
    {'a': {'x': 1, 'y': 3}, 'b': 4}
    >>> deep_update({}, {"a": {}})
    {'a': {}}
    """
    result = dict(base)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = deep_update(result[key], value)
        else:
            result[key] = value
    return result


def choose_k(items: list[Any], k: int) -> list[list[Any]]:
    """List all ways to choose k items, each in the order of the list.

    >>> choose_k([1, 2, 3], 2)
    [[1, 2], [1, 3], [2, 3]]
    >>> choose_k([1], 0)
    [[]]
    """
    if k == 0:
        return [[]]
    if len(items) < k:
        return []
    with_first = [[items[0], *rest] for rest in choose_k(items[1:], k - 1)]
    return with_first + choose_k(items[1:], k)


def sum_ways(total: int, parts: list[int]) -> int:
    """Count the ways to write total as an ordered sum of the given positive parts.

    >>> sum_ways(4, [1, 2])
    5
    >>> sum_ways(3, [5])
    0
    """
    ways = [1] + [0] * total
    for amount in range(1, total + 1):
        for part in parts:
            if part <= amount:
                ways[amount] += ways[amount - part]
    return ways[total]


def longest_rising_choice(numbers: list[int]) -> int:
    """Return how many numbers one can choose at most, without changing their order, so that they rise strictly.

    >>> longest_rising_choice([3, 1, 4, 2, 5])
    3
    >>> longest_rising_choice([])
    0
    """
    lengths: list[int] = []
    for i in range(len(numbers)):
        best = 1
        for j in range(i):
            if numbers[j] < numbers[i]:
                best = max(best, lengths[j] + 1)
        lengths.append(best)
    return max(lengths, default=0)


def selection_order(numbers: list[int]) -> list[int]:
    """Sort a list by picking the smallest number that is left again and again; the list itself stays as it is.

    >>> selection_order([4, 1, 3])
    [1, 3, 4]
    >>> selection_order([])
    []
    """
    left = numbers[:]
    result = []
    while left:
        smallest = left[0]
        for number in left:
            if number < smallest:
                smallest = number
        left.remove(smallest)
        result.append(smallest)
    return result


def insertion_place(numbers: list[int], target: int) -> int:
    """Search a sorted list by halving for the first index whose number is not less than target.

    >>> insertion_place([1, 3, 5, 7], 4)
    2
    >>> insertion_place([], 4)
    0
    """
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


def share_evenly(total: int, people: int) -> list[int]:
    """Divide a whole number into parts that differ by one at most, the larger parts first.

    >>> share_evenly(10, 3)
    [4, 3, 3]
    >>> share_evenly(2, 4)
    [1, 1, 0, 0]
    """
    size, extra = divmod(total, people)
    return [size + 1 if i < extra else size for i in range(people)]
