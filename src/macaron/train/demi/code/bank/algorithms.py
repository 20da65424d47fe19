"""Sorting, searching, recursion and dynamic programming."""


def binary_search(numbers: list[int], target: int) -> int:
    """Return the index of target in a sorted list, or -1 if it is not there.

    >>> binary_search([1, 3, 5, 7, 9], 7)
    3
    >>> binary_search([1, 3], 2)
    -1
    """
    low, high = 0, len(numbers) - 1
    while low <= high:
        middle = (low + high) // 2
        if numbers[middle] == target:
            return middle
        if numbers[middle] < target:
            low = middle + 1
        else:
            high = middle - 1
    return -1


def bubble_sort(numbers: list[int]) -> list[int]:
    """Return a sorted copy of a list with bubble sort.

    >>> bubble_sort([4, 2, 9, 1])
    [1, 2, 4, 9]
    >>> bubble_sort([])
    []
    """
    result = numbers[:]
    for i in range(len(result)):
        for j in range(len(result) - 1 - i):
            if result[j] > result[j + 1]:
                result[j], result[j + 1] = result[j + 1], result[j]
    return result


def insertion_sort(numbers: list[int]) -> list[int]:
    """Return a sorted copy of a list with insertion sort.

    >>> insertion_sort([3, 1, 2])
    [1, 2, 3]
    >>> insertion_sort([5])
    [5]
    """
    result: list[int] = []
    for number in numbers:
        i = len(result)
        while i > 0 and result[i - 1] > number:
            i -= 1
        result.insert(i, number)
    return result


def quick_sort(numbers: list[int]) -> list[int]:
    """Sort a list with quicksort and return the result.

    >>> quick_sort([3, 6, 1, 8, 3])
    [1, 3, 3, 6, 8]
    >>> quick_sort([])
    []
    """
    if len(numbers) <= 1:
        return numbers
    pivot = numbers[0]
    smaller = [x for x in numbers[1:] if x < pivot]
    larger = [x for x in numbers[1:] if x >= pivot]
    return [*quick_sort(smaller), pivot, *quick_sort(larger)]


def merge_sort(numbers: list[int]) -> list[int]:
    """Sort a list with merge sort and return the result.

    >>> merge_sort([5, 2, 8, 1])
    [1, 2, 5, 8]
    >>> merge_sort([1])
    [1]
    """
    if len(numbers) <= 1:
        return numbers
    middle = len(numbers) // 2
    left = merge_sort(numbers[:middle])
    right = merge_sort(numbers[middle:])
    merged = []
    while left and right:
        merged.append(left.pop(0) if left[0] <= right[0] else right.pop(0))
    return merged + left + right


def edit_distance(first: str, second: str) -> int:
    """Return the smallest number of insertions, deletions and replacements that turn first into second.

    >>> edit_distance("kitten", "sitting")
    3
    >>> edit_distance("", "abc")
    3
    """
    previous = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        current = [i]
        for j, b in enumerate(second, 1):
            cost = 0 if a == b else 1
            current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost))
        previous = current
    return previous[-1]


def longest_common_subsequence(a: str, b: str) -> int:
    """Return the length of the longest common subsequence of two strings.

    >>> longest_common_subsequence("abcde", "ace")
    3
    >>> longest_common_subsequence("abc", "xyz")
    0
    """
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a)):
        for j in range(len(b)):
            if a[i] == b[j]:
                table[i + 1][j + 1] = table[i][j] + 1
            else:
                table[i + 1][j + 1] = max(table[i][j + 1], table[i + 1][j])
    return table[len(a)][len(b)]


def coin_change(coins: list[int], amount: int) -> int:
    """Return the smallest number of coins that make up amount, or -1 if it is impossible.

    >>> coin_change([1, 5, 10], 27)
    5
    >>> coin_change([4], 6)
    -1
    """
    best = [0] + [amount + 1] * amount
    for value in range(1, amount + 1):
        for coin in coins:
            if coin <= value:
                best[value] = min(best[value], best[value - coin] + 1)
    return best[amount] if best[amount] <= amount else -1


def climb_stairs(n: int) -> int:
    """Count the ways to climb n stairs when each step takes one, two or three of them.

    >>> climb_stairs(3)
    4
    >>> climb_stairs(0)
    1
    """
    ways = [1] + [0] * n
    for i in range(1, n + 1):
        for step in (1, 2, 3):
            if i >= step:
                ways[i] += ways[i - step]
    return ways[n]


def permutations(items: list[int]) -> list[list[int]]:
    """Return all permutations of a list.

    >>> permutations([1, 2, 3])
    [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]]
    >>> permutations([])
    [[]]
    """
    if not items:
        return [[]]
    result = []
    for i, item in enumerate(items):
        rest = items[:i] + items[i + 1 :]
        for tail in permutations(rest):
            result.append([item, *tail])
    return result


def subsets(items: list[int]) -> list[list[int]]:
    """Return all subsets of a list.

    >>> subsets([1, 2])
    [[], [1], [2], [1, 2]]
    >>> subsets([])
    [[]]
    """
    result: list[list[int]] = [[]]
    for item in items:
        result += [[*subset, item] for subset in result]
    return result


def subset_sum(numbers: list[int], target: int) -> bool:
    """Check whether some of the positive numbers add up to target.

    >>> subset_sum([3, 34, 4, 12], 7)
    True
    >>> subset_sum([2, 4], 5)
    False
    """
    if target == 0:
        return True
    if not numbers or target < 0:
        return False
    first, rest = numbers[0], numbers[1:]
    return subset_sum(rest, target - first) or subset_sum(rest, target)


def hanoi_moves(n: int, source: str = "A", target: str = "C", spare: str = "B") -> list[tuple[str, str]]:
    """Return the moves that solve the Tower of Hanoi with n disks.

    >>> hanoi_moves(2)
    [('A', 'B'), ('A', 'C'), ('B', 'C')]
    >>> hanoi_moves(0)
    []
    """
    if n == 0:
        return []
    before = hanoi_moves(n - 1, source, spare, target)
    after = hanoi_moves(n - 1, spare, target, source)
    return [*before, (source, target), *after]


def count_islands(grid: list[list[int]]) -> int:
    """Count the groups of ones that are connected horizontally or vertically in a grid of zeros and ones.

    >>> count_islands([[1, 1, 0], [0, 0, 0], [1, 0, 1]])
    3
    >>> count_islands([[0]])
    0
    """
    cells = {(i, j) for i, row in enumerate(grid) for j, cell in enumerate(row) if cell}
    count = 0
    while cells:
        count += 1
        stack = [cells.pop()]
        while stack:
            i, j = stack.pop()
            for near in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                if near in cells:
                    cells.remove(near)
                    stack.append(near)
    return count


def shortest_path(graph: dict[str, list[str]], start: str, goal: str) -> list[str] | None:
    """Find a shortest path between two nodes of a graph with breadth-first search, or None.

    >>> shortest_path({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, "a", "d")
    ['a', 'b', 'd']
    >>> shortest_path({"a": [], "b": []}, "a", "b") is None
    True
    """
    queue = [[start]]
    seen = {start}
    while queue:
        path = queue.pop(0)
        if path[-1] == goal:
            return path
        for node in graph[path[-1]]:
            if node not in seen:
                seen.add(node)
                queue.append([*path, node])
    return None


def merge_intervals(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge overlapping intervals and return them sorted.

    >>> merge_intervals([(1, 3), (8, 10), (2, 6)])
    [(1, 6), (8, 10)]
    >>> merge_intervals([])
    []
    """
    merged: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def matrix_multiply(a: list[list[int]], b: list[list[int]]) -> list[list[int]]:
    """Multiply two matrices given as lists of rows.

    >>> matrix_multiply([[1, 2], [3, 4]], [[5, 6], [7, 8]])
    [[19, 22], [43, 50]]
    >>> matrix_multiply([[2]], [[3]])
    [[6]]
    """
    result = []
    for row in a:
        result.append([sum(row[k] * b[k][j] for k in range(len(b))) for j in range(len(b[0]))])
    return result


def evaluate_rpn(tokens: list[str]) -> int:
    """Evaluate an expression in reverse Polish notation with the operators +, - and *.

    >>> evaluate_rpn(["2", "3", "+", "4", "*"])
    20
    >>> evaluate_rpn(["7"])
    7
    """
    stack: list[int] = []
    for token in tokens:
        if token in ("+", "-", "*"):
            b = stack.pop()
            a = stack.pop()
            stack.append(a + b if token == "+" else a - b if token == "-" else a * b)
        else:
            stack.append(int(token))
    return stack.pop()


def tree_depth(tree: dict[str, list[str]], root: str) -> int:
    """Return the depth of a tree given as a dictionary from nodes to their children; a single node has depth 1.

    >>> tree_depth({"a": ["b", "c"], "b": ["d"]}, "a")
    3
    >>> tree_depth({}, "x")
    1
    """
    children = tree.get(root, [])
    return 1 + max((tree_depth(tree, child) for child in children), default=0)


def topological_order(tasks: dict[str, list[str]]) -> list[str]:
    """Order tasks so that each one comes after the tasks it depends on; tasks maps names to dependencies.

    >>> topological_order({"shoes": ["socks"], "socks": [], "coat": ["shoes"]})
    ['socks', 'shoes', 'coat']
    >>> topological_order({})
    []
    """
    order: list[str] = []

    def visit(task: str) -> None:
        if task not in order:
            for dependency in tasks[task]:
                visit(dependency)
            order.append(task)

    for task in tasks:
        visit(task)
    return order


def game_of_life(board: list[list[int]]) -> list[list[int]]:
    """Return the next generation of Conway's Game of Life on a board of zeros and ones.

    >>> game_of_life([[0, 1, 0], [0, 1, 0], [0, 1, 0]])
    [[0, 0, 0], [1, 1, 1], [0, 0, 0]]
    >>> game_of_life([[1]])
    [[0]]
    """
    height, width = len(board), len(board[0])
    result = []
    for i in range(height):
        row = []
        for j in range(width):
            near = sum(
                board[y][x]
                for y in range(max(i - 1, 0), min(i + 2, height))
                for x in range(max(j - 1, 0), min(j + 2, width))
                if (y, x) != (i, j)
            )
            row.append(1 if near == 3 or (near == 2 and board[i][j]) else 0)
        result.append(row)
    return result


def knapsack(weights: list[int], values: list[int], capacity: int) -> int:
    """Return the largest total value of items whose total weight is at most capacity.

    >>> knapsack([1, 3, 4], [15, 20, 30], 4)
    35
    >>> knapsack([5], [10], 4)
    0
    """
    best = [0] * (capacity + 1)
    for weight, value in zip(weights, values, strict=True):
        for room in range(capacity, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[capacity]
