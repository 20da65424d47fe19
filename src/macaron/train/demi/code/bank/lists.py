"""Lists."""

from typing import Any


def second_largest(numbers: list[int]) -> int | None:
    """Return the second largest distinct number, or None if there is none.

    >>> second_largest([4, 9, 9, 7])
    7
    >>> second_largest([5, 5]) is None
    True
    """
    distinct = sorted(set(numbers))
    if len(distinct) < 2:
        return None
    return distinct[-2]


def rotate_list(items: list[int], k: int) -> list[int]:
    """Rotate a list to the right by k places.

    >>> rotate_list([1, 2, 3, 4, 5], 2)
    [4, 5, 1, 2, 3]
    >>> rotate_list([], 3)
    []
    """
    if not items:
        return []
    k = k % len(items)
    return items[-k:] + items[:-k] if k else items[:]


def chunk_list(items: list[int], size: int) -> list[list[int]]:
    """Split a list into parts of the given size; the last part may be shorter.

    >>> chunk_list([1, 2, 3, 4, 5], 2)
    [[1, 2], [3, 4], [5]]
    >>> chunk_list([], 3)
    []
    """
    return [items[i : i + size] for i in range(0, len(items), size)]


def flatten_nested(items: list[Any]) -> list[Any]:
    """Flatten a list of arbitrarily nested lists.

    >>> flatten_nested([1, [2, [3, 4]], [], 5])
    [1, 2, 3, 4, 5]
    >>> flatten_nested([[[]]])
    []
    """
    result = []
    for item in items:
        if isinstance(item, list):
            result.extend(flatten_nested(item))
        else:
            result.append(item)
    return result


def move_zeros(numbers: list[int]) -> list[int]:
    """Move all zeros to the end of a list, keeping the order of the other numbers.

    >>> move_zeros([0, 1, 0, 3, 12])
    [1, 3, 12, 0, 0]
    >>> move_zeros([0, 0])
    [0, 0]
    """
    others = [number for number in numbers if number != 0]
    return others + [0] * (len(numbers) - len(others))


def running_total(numbers: list[int]) -> list[int]:
    """Return the list of cumulative sums.

    >>> running_total([1, 2, 3, 4])
    [1, 3, 6, 10]
    >>> running_total([])
    []
    """
    totals = []
    total = 0
    for number in numbers:
        total += number
        totals.append(total)
    return totals


def two_sum(numbers: list[int], target: int) -> tuple[int, int] | None:
    """Find the indices of two different elements that add up to target, or None.

    >>> two_sum([2, 7, 11, 15], 9)
    (0, 1)
    >>> two_sum([1, 2], 10) is None
    True
    """
    seen: dict[int, int] = {}
    for i, number in enumerate(numbers):
        if target - number in seen:
            return seen[target - number], i
        seen[number] = i
    return None


def missing_number(numbers: list[int]) -> int:
    """Find the one number from 0 to n that is missing in a list of n numbers.

    >>> missing_number([3, 0, 1])
    2
    >>> missing_number([0])
    1
    """
    n = len(numbers)
    return n * (n + 1) // 2 - sum(numbers)


def majority_element(items: list[int]) -> int | None:
    """Return the element that makes up more than half of the list, or None.

    >>> majority_element([2, 2, 1, 2])
    2
    >>> majority_element([1, 2]) is None
    True
    """
    for item in set(items):
        if items.count(item) * 2 > len(items):
            return item
    return None


def transpose_matrix(matrix: list[list[int]]) -> list[list[int]]:
    """Transpose a matrix given as a list of rows.

    >>> transpose_matrix([[1, 2, 3], [4, 5, 6]])
    [[1, 4], [2, 5], [3, 6]]
    >>> transpose_matrix([])
    []
    """
    if not matrix:
        return []
    return [[row[i] for row in matrix] for i in range(len(matrix[0]))]


def spiral_order(matrix: list[list[int]]) -> list[int]:
    """Return the elements of a matrix in clockwise spiral order, starting at the top left.

    >>> spiral_order([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    [1, 2, 3, 6, 9, 8, 7, 4, 5]
    >>> spiral_order([[1], [2]])
    [1, 2]
    """
    result = []
    rows = [list(row) for row in matrix]
    while rows:
        result.extend(rows.pop(0))
        rows = [list(row) for row in zip(*rows, strict=True)][::-1]
    return result


def diagonal_sum(matrix: list[list[int]]) -> int:
    """Return the sum of the main diagonal of a square matrix.

    >>> diagonal_sum([[1, 2], [3, 4]])
    5
    >>> diagonal_sum([[7]])
    7
    """
    return sum(matrix[i][i] for i in range(len(matrix)))


def pairs_with_difference(numbers: list[int], k: int) -> int:
    """Count the pairs of positions whose numbers differ by exactly k.

    >>> pairs_with_difference([1, 5, 3, 4, 2], 2)
    3
    >>> pairs_with_difference([1, 1], 0)
    1
    """
    count = 0
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            if abs(numbers[i] - numbers[j]) == k:
                count += 1
    return count


def longest_run(items: list[int]) -> int:
    """Return the length of the longest run of equal neighbouring elements.

    >>> longest_run([1, 1, 2, 2, 2, 3])
    3
    >>> longest_run([])
    0
    """
    best = 0
    current = 0
    for i, item in enumerate(items):
        current = current + 1 if i > 0 and items[i - 1] == item else 1
        best = max(best, current)
    return best


def longest_increasing_run(numbers: list[int]) -> list[int]:
    """Return the longest part of neighbouring elements that is strictly increasing, the first one in a tie.

    >>> longest_increasing_run([5, 1, 2, 3, 2, 8])
    [1, 2, 3]
    >>> longest_increasing_run([])
    []
    """
    best: list[int] = []
    current: list[int] = []
    for number in numbers:
        if current and number > current[-1]:
            current.append(number)
        else:
            current = [number]
        if len(current) > len(best):
            best = current[:]
    return best


def max_window_sum(numbers: list[int], k: int) -> int:
    """Return the largest sum of k consecutive elements.

    >>> max_window_sum([1, 4, 2, 10, 3], 2)
    13
    >>> max_window_sum([5, -2, 3], 3)
    6
    """
    best = window = sum(numbers[:k])
    for i in range(k, len(numbers)):
        window += numbers[i] - numbers[i - k]
        best = max(best, window)
    return best


def split_by_pivot(numbers: list[int], pivot: int) -> tuple[list[int], list[int]]:
    """Split numbers into those smaller than pivot and the others, keeping their order.

    >>> split_by_pivot([4, 1, 7, 3], 4)
    ([1, 3], [4, 7])
    >>> split_by_pivot([], 0)
    ([], [])
    """
    smaller = [number for number in numbers if number < pivot]
    others = [number for number in numbers if number >= pivot]
    return smaller, others


def merge_two_sorted(first: list[int], second: list[int]) -> list[int]:
    """Merge two sorted lists into one sorted list.

    >>> merge_two_sorted([1, 4, 6], [2, 3, 7])
    [1, 2, 3, 4, 6, 7]
    >>> merge_two_sorted([], [1])
    [1]
    """
    result = []
    i = j = 0
    while i < len(first) and j < len(second):
        if first[i] <= second[j]:
            result.append(first[i])
            i += 1
        else:
            result.append(second[j])
            j += 1
    return result + first[i:] + second[j:]


def differences(numbers: list[int]) -> list[int]:
    """Return the differences between neighbouring elements.

    >>> differences([1, 4, 9, 16])
    [3, 5, 7]
    >>> differences([5])
    []
    """
    return [numbers[i + 1] - numbers[i] for i in range(len(numbers) - 1)]


def index_of_peak(numbers: list[int]) -> int:
    """Return the index of the first element that is larger than both neighbours, or -1.

    >>> index_of_peak([1, 3, 2, 5, 1])
    1
    >>> index_of_peak([1, 2, 3])
    -1
    """
    for i in range(1, len(numbers) - 1):
        if numbers[i] > numbers[i - 1] and numbers[i] > numbers[i + 1]:
            return i
    return -1


def dot_product(a: list[float], b: list[float]) -> float:
    """Return the dot product of two vectors of the same length.

    >>> dot_product([1, 2, 3], [4, 5, 6])
    32
    >>> dot_product([], [])
    0
    """
    total: float = 0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


def every_nth(items: list[int], n: int) -> list[int]:
    """Return every n-th element, starting with the first.

    >>> every_nth([1, 2, 3, 4, 5, 6, 7], 3)
    [1, 4, 7]
    >>> every_nth([], 2)
    []
    """
    return items[::n]


def insert_sorted(numbers: list[int], value: int) -> list[int]:
    """Insert value into a sorted list so that it stays sorted, and return the new list.

    >>> insert_sorted([1, 3, 5], 4)
    [1, 3, 4, 5]
    >>> insert_sorted([], 2)
    [2]
    """
    for i, number in enumerate(numbers):
        if value < number:
            return [*numbers[:i], value, *numbers[i:]]
    return [*numbers, value]


def product_except_self(numbers: list[int]) -> list[int]:
    """Return a list in which each element is the product of all other elements.

    >>> product_except_self([1, 2, 3, 4])
    [24, 12, 8, 6]
    >>> product_except_self([5, 0])
    [0, 5]
    """
    result = []
    for i in range(len(numbers)):
        product = 1
        for j, number in enumerate(numbers):
            if i != j:
                product *= number
        result.append(product)
    return result


def stock_profit(prices: list[int]) -> int:
    """Return the largest profit from buying once and selling later, or 0.

    >>> stock_profit([7, 1, 5, 3, 6, 4])
    5
    >>> stock_profit([5, 4, 3])
    0
    """
    best = 0
    lowest = None
    for price in prices:
        if lowest is None or price < lowest:
            lowest = price
        best = max(best, price - lowest)
    return best


def count_inversions(numbers: list[int]) -> int:
    """Count the pairs of elements that are in the wrong order.

    >>> count_inversions([2, 4, 1, 3])
    3
    >>> count_inversions([1, 2, 3])
    0
    """
    count = 0
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            if numbers[i] > numbers[j]:
                count += 1
    return count
