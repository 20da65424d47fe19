"""Grids, graphs, nested lists, iterators and functions that take functions."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def snake_order(grid: list[list[int]]) -> list[int]:
    """Return the numbers of a grid row by row, every second row from right to left.

    >>> snake_order([[1, 2], [3, 4], [5, 6]])
    [1, 2, 4, 3, 5, 6]
    >>> snake_order([])
    []
    """
    result = []
    for i, row in enumerate(grid):
        if i % 2 == 0:
            result.extend(row)
        else:
            result.extend(row[::-1])
    return result


def find_in_grid(grid: list[list[Any]], target: Any) -> tuple[int, int] | None:
    """Return the row and the column at which target first stands in a grid, or None.

    >>> find_in_grid([[1, 2], [3, 4]], 3)
    (1, 0)
    >>> find_in_grid([], 3) is None
    True
    """
    for i in range(len(grid)):
        for j in range(len(grid[i])):
            if grid[i][j] == target:
                return (i, j)
    return None


def saddle_points(grid: list[list[int]]) -> list[tuple[int, int]]:
    """Return the places (row, column) of numbers that are the largest of their row and the smallest of their column.

    >>> saddle_points([[9, 8, 7], [5, 3, 2], [6, 6, 7]])
    [(1, 0)]
    >>> saddle_points([[1, 2], [2, 1]])
    []
    """
    points = []
    for i, row in enumerate(grid):
        for j, number in enumerate(row):
            column = [other[j] for other in grid]
            if number == max(row) and number == min(column):
                points.append((i, j))
    return points


def anti_diagonal(grid: list[list[int]]) -> list[int]:
    """Return the numbers of a square grid from the upper right corner to the lower left one.

    >>> anti_diagonal([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    [3, 5, 7]
    >>> anti_diagonal([[4]])
    [4]
    """
    size = len(grid)
    return [grid[i][size - 1 - i] for i in range(size)]


def count_neighbours(grid: list[list[int]], row: int, column: int) -> int:
    """Count the cells around a cell, diagonals included, that hold a 1.

    >>> count_neighbours([[1, 0, 1], [0, 1, 0]], 1, 1)
    2
    >>> count_neighbours([[1]], 0, 0)
    0
    """
    count = 0
    for i in range(row - 1, row + 2):
        for j in range(column - 1, column + 2):
            if (i, j) == (row, column):
                continue
            if 0 <= i < len(grid) and 0 <= j < len(grid[i]) and grid[i][j] == 1:
                count += 1
    return count


def flood_fill(grid: list[list[int]], row: int, column: int, colour: int) -> list[list[int]]:
    """Fill the area of equal cells around a cell with a colour and return the new grid; cells meet at their sides.

    >>> flood_fill([[1, 1, 0], [0, 1, 1]], 0, 0, 7)
    [[7, 7, 0], [0, 7, 7]]
    >>> flood_fill([[2]], 0, 0, 2)
    [[2]]
    """
    result = [line[:] for line in grid]
    old = grid[row][column]
    if old == colour:
        return result
    waiting = [(row, column)]
    while waiting:
        i, j = waiting.pop()
        if 0 <= i < len(result) and 0 <= j < len(result[i]) and result[i][j] == old:
            result[i][j] = colour
            waiting += [(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)]
    return result


def cheapest_descent(triangle: list[list[int]]) -> int:
    """Return the smallest sum of a way down a triangle of numbers, moving to one of the two numbers below.

    >>> cheapest_descent([[2], [3, 4], [6, 5, 7]])
    10
    >>> cheapest_descent([[5]])
    5
    """
    costs = triangle[-1][:]
    for row in reversed(triangle[:-1]):
        costs = [row[i] + min(costs[i], costs[i + 1]) for i in range(len(row))]
    return costs[0]


def knight_moves(column: int, row: int) -> list[tuple[int, int]]:
    """Return the squares that a knight on a board of 8 by 8 can reach in one move, sorted; both numbers start at 1.

    >>> knight_moves(1, 1)
    [(2, 3), (3, 2)]
    >>> len(knight_moves(4, 4))
    8
    """
    squares = []
    for across in (-2, -1, 1, 2):
        for up in (-2, -1, 1, 2):
            if abs(across) != abs(up):
                x, y = column + across, row + up
                if 1 <= x <= 8 and 1 <= y <= 8:
                    squares.append((x, y))
    return sorted(squares)


def nested_sum(items: list[Any]) -> int:
    """Add up all numbers in a list of numbers and further such lists.

    >>> nested_sum([1, [2, [3, 4]], []])
    10
    >>> nested_sum([])
    0
    """
    total = 0
    for item in items:
        if isinstance(item, list):
            total += nested_sum(item)
        else:
            total += item
    return total


def list_depth(item: Any) -> int:
    """Return how deep lists are nested in a value: 0 for what is no list, 1 for a list without lists.

    >>> list_depth([1, [2, [3]]])
    3
    >>> list_depth(5)
    0
    """
    if not isinstance(item, list):
        return 0
    deepest = 0
    for part in item:
        deepest = max(deepest, list_depth(part))
    return deepest + 1


def reachable(graph: dict[str, list[str]], start: str) -> list[str]:
    """Return the sorted names of all nodes that can be reached from start along the edges, with start itself.

    >>> reachable({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}, "a")
    ['a', 'b', 'c']
    >>> reachable({}, "x")
    ['x']
    """
    seen = {start}
    waiting = [start]
    while waiting:
        node = waiting.pop()
        for following in graph.get(node, []):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return sorted(seen)


def node_degrees(edges: list[tuple[str, str]]) -> dict[str, int]:
    """Count for each node of an undirected graph how many edges end at it.

    >>> node_degrees([("a", "b"), ("b", "c")])
    {'a': 1, 'b': 2, 'c': 1}
    >>> node_degrees([])
    {}
    """
    degrees: dict[str, int] = {}
    for first, second in edges:
        degrees[first] = degrees.get(first, 0) + 1
        degrees[second] = degrees.get(second, 0) + 1
    return degrees


def adjacency(edges: list[tuple[int, int]]) -> dict[int, list[int]]:
    """Build a dictionary from each node of an undirected graph to the sorted list of its neighbours.

    >>> adjacency([(1, 2), (3, 1)])
    {1: [2, 3], 2: [1], 3: [1]}
    >>> adjacency([])
    {}
    """
    neighbours: dict[int, list[int]] = {}
    for first, second in edges:
        neighbours.setdefault(first, []).append(second)
        neighbours.setdefault(second, []).append(first)
    return {node: sorted(found) for node, found in sorted(neighbours.items())}


def count_groups(n: int, edges: list[tuple[int, int]]) -> int:
    """Count the groups of connected nodes among the nodes from 0 to n - 1.

    >>> count_groups(5, [(0, 1), (3, 4)])
    3
    >>> count_groups(2, [])
    2
    """
    group = list(range(n))
    for first, second in edges:
        old, new = group[first], group[second]
        for node in range(n):
            if group[node] == old:
                group[node] = new
    return len(set(group))


def hops(graph: dict[str, list[str]], start: str) -> dict[str, int]:
    """Return for every node that can be reached the smallest number of edges from start to it.

    >>> hops({"a": ["b", "c"], "b": ["d"], "c": ["d"]}, "a")
    {'a': 0, 'b': 1, 'c': 1, 'd': 2}
    >>> hops({}, "a")
    {'a': 0}
    """
    distances = {start: 0}
    layer = [start]
    while layer:
        following = []
        for node in layer:
            for neighbour in graph.get(node, []):
                if neighbour not in distances:
                    distances[neighbour] = distances[node] + 1
                    following.append(neighbour)
        layer = following
    return distances


def is_mutual(graph: dict[str, list[str]]) -> bool:
    """Check whether every edge of a directed graph also goes the other way.

    >>> is_mutual({"a": ["b"], "b": ["a"]})
    True
    >>> is_mutual({"a": ["b"], "b": []})
    False
    """
    for node in graph:
        for other in graph[node]:
            if node not in graph.get(other, []):
                return False
    return True


def tree_leaves(children: dict[str, list[str]], root: str) -> list[str]:
    """Collect the nodes below root that have no children, from left to right.

    >>> tree_leaves({"r": ["a", "b"], "a": ["c"]}, "r")
    ['c', 'b']
    >>> tree_leaves({}, "r")
    ['r']
    """
    below = children.get(root, [])
    if not below:
        return [root]
    leaves = []
    for child in below:
        leaves += tree_leaves(children, child)
    return leaves


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
