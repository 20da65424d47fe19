"""Sequences, generators and higher-order functions."""

from collections.abc import Callable, Iterator
from typing import Any


def look_and_say(term: str) -> str:
    """Return the term of the look-and-say sequence that follows the given one.

    >>> look_and_say("1211")
    '111221'
    >>> look_and_say("3")
    '13'
    """
    result = ""
    i = 0
    while i < len(term):
        j = i
        while j < len(term) and term[j] == term[i]:
            j += 1
        result += str(j - i) + term[i]
        i = j
    return result


def arithmetic_sequence(start: int, step: int, count: int) -> list[int]:
    """Return the first count terms of an arithmetic sequence.

    >>> arithmetic_sequence(3, 4, 4)
    [3, 7, 11, 15]
    >>> arithmetic_sequence(5, 0, 2)
    [5, 5]
    """
    return [start + step * i for i in range(count)]


def is_geometric(numbers: list[int]) -> bool:
    """Check whether each number divided by the one before it gives the same ratio; no number is zero.

    >>> is_geometric([2, 6, 18])
    True
    >>> is_geometric([1, 2, 3])
    False
    """
    return all(numbers[i] * numbers[i - 2] == numbers[i - 1] ** 2 for i in range(2, len(numbers)))


def pairwise_sums(numbers: list[int]) -> list[int]:
    """Return the sums of all pairs of numbers at different positions, in ascending order.

    >>> pairwise_sums([1, 2, 4])
    [3, 5, 6]
    >>> pairwise_sums([7])
    []
    """
    sums = []
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            sums.append(numbers[i] + numbers[j])
    return sorted(sums)


def countdown(n: int) -> Iterator[int]:
    """Yield the numbers from n down to 1.

    >>> list(countdown(3))
    [3, 2, 1]
    >>> list(countdown(0))
    []
    """
    while n > 0:
        yield n
        n -= 1


def take_while_positive(numbers: list[int]) -> list[int]:
    """Return the numbers at the beginning of a list up to the first one that is not positive.

    >>> take_while_positive([3, 1, 0, 5])
    [3, 1]
    >>> take_while_positive([-1, 2])
    []
    """
    result = []
    for number in numbers:
        if number <= 0:
            break
        result.append(number)
    return result


def compose_two(f: Callable[[Any], Any], g: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that applies g to its argument and then f to the result.

    >>> compose_two(len, str)(1234)
    4
    >>> compose_two(abs, int)("-7")
    7
    """

    def composed(value: Any) -> Any:
        return f(g(value))

    return composed


def apply_times(function: Callable[[int], int], n: int, value: int) -> int:
    """Apply a function n times to a value and return the result.

    >>> apply_times(lambda x: x * 2, 3, 1)
    8
    >>> apply_times(lambda x: x + 1, 0, 9)
    9
    """
    for _ in range(n):
        value = function(value)
    return value


def cache_results(function: Callable[[int], int]) -> Callable[[int], int]:
    """Return a version of a function of one argument that remembers its results.

    >>> calls = []
    >>> slow = cache_results(lambda n: calls.append(n) or n * n)
    >>> slow(4), slow(4), calls
    (16, 16, [4])
    """
    results: dict[int, int] = {}

    def remembered(n: int) -> int:
        if n not in results:
            results[n] = function(n)
        return results[n]

    return remembered


def zip_longest_sum(a: list[int], b: list[int]) -> list[int]:
    """Add two lists element by element, treating missing elements of the shorter list as zero.

    >>> zip_longest_sum([1, 2, 3], [10, 20])
    [11, 22, 3]
    >>> zip_longest_sum([], [4])
    [4]
    """
    result = []
    for i in range(max(len(a), len(b))):
        x = a[i] if i < len(a) else 0
        y = b[i] if i < len(b) else 0
        result.append(x + y)
    return result


def ranks(scores: list[int]) -> list[int]:
    """Return the rank of each score, where the highest one has rank 1 and equal scores share a rank.

    >>> ranks([50, 80, 80, 20])
    [3, 1, 1, 4]
    >>> ranks([7])
    [1]
    """
    ordered = sorted(scores, reverse=True)
    return [ordered.index(score) + 1 for score in scores]


def normalize(values: list[float]) -> list[float]:
    """Divide every value by the sum of all values.

    >>> normalize([1, 3])
    [0.25, 0.75]
    >>> normalize([5])
    [1.0]
    """
    total = sum(values)
    return [value / total for value in values]


def moving_average(values: list[float], size: int) -> list[float]:
    """Return the averages of every size consecutive values.

    >>> moving_average([1, 2, 3, 4], 2)
    [1.5, 2.5, 3.5]
    >>> moving_average([1], 2)
    []
    """
    return [sum(values[i : i + size]) / size for i in range(len(values) - size + 1)]


def find_duplicates(items: list[int]) -> list[int]:
    """Return the items that occur more than once, each one once, in order of first appearance.

    >>> find_duplicates([3, 1, 3, 2, 1])
    [3, 1]
    >>> find_duplicates([1, 2])
    []
    """
    result: list[int] = []
    for item in items:
        if items.count(item) > 1 and item not in result:
            result.append(item)
    return result


def split_at_value(items: list[int], separator: int) -> list[list[int]]:
    """Split a list into parts at every separator, which is left out.

    >>> split_at_value([1, 0, 2, 3, 0], 0)
    [[1], [2, 3], []]
    >>> split_at_value([], 0)
    [[]]
    """
    parts: list[list[int]] = [[]]
    for item in items:
        if item == separator:
            parts.append([])
        else:
            parts[-1].append(item)
    return parts


def equilibrium_index(numbers: list[int]) -> int:
    """Return the first index at which the sum of the elements before it equals the sum of those after it, or -1.

    >>> equilibrium_index([1, 7, 3, 6, 5, 6])
    3
    >>> equilibrium_index([1, 2])
    -1
    """
    for i in range(len(numbers)):
        if sum(numbers[:i]) == sum(numbers[i + 1 :]):
            return i
    return -1


def closest_pair(numbers: list[int]) -> tuple[int, int]:
    """Return the two neighbours in sorted order whose difference is smallest, the smaller ones in case of a tie.

    >>> closest_pair([10, 1, 5, 7])
    (5, 7)
    >>> closest_pair([3, 1, 2])
    (1, 2)
    """
    ordered = sorted(numbers)
    pairs = [(ordered[i], ordered[i + 1]) for i in range(len(ordered) - 1)]
    return min(pairs, key=lambda pair: pair[1] - pair[0])


def water_between(heights: list[int]) -> int:
    """Return how much water stays between walls of the given heights after rain.

    >>> water_between([3, 0, 2, 0, 4])
    7
    >>> water_between([1, 2, 3])
    0
    """
    total = 0
    for i in range(len(heights)):
        level = min(max(heights[: i + 1]), max(heights[i:]))
        total += level - heights[i]
    return total
