"""Grids, graphs and nested lists."""

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
