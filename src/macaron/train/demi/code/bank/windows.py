"""Runs, windows, pairs and intervals."""

from typing import Any


def window_maxima(numbers: list[int], size: int) -> list[int]:
    """Return the largest number of every window of size neighbours, or an empty list if the list is too short.

    >>> window_maxima([1, 5, 2, 4, 3], 3)
    [5, 5, 4]
    >>> window_maxima([1], 2)
    []
    """
    result = []
    for start in range(len(numbers) - size + 1):
        result.append(max(numbers[start : start + size]))
    return result


def first_window_with_sum(numbers: list[int], size: int, target: int) -> int:
    """Return the index at which the first window of size numbers that adds up to target starts, or -1.

    >>> first_window_with_sum([1, 2, 3, 4, 2], 2, 6)
    3
    >>> first_window_with_sum([1, 1], 2, 5)
    -1
    """
    for start in range(len(numbers) - size + 1):
        total = 0
        for i in range(start, start + size):
            total += numbers[i]
        if total == target:
            return start
    return -1


def group_runs(items: list[Any]) -> list[list[Any]]:
    """Group equal neighbours into lists of their own.

    >>> group_runs([1, 1, 2, 1])
    [[1, 1], [2], [1]]
    >>> group_runs([])
    []
    """
    groups: list[list[Any]] = []
    for item in items:
        if groups and groups[-1][0] == item:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def split_rising(numbers: list[int]) -> list[list[int]]:
    """Cut a list into pieces that rise strictly, starting a new piece wherever a number is not greater than the last.

    >>> split_rising([1, 3, 2, 2, 5])
    [[1, 3], [2], [2, 5]]
    >>> split_rising([])
    []
    """
    pieces: list[list[int]] = []
    for number in numbers:
        if pieces and number > pieces[-1][-1]:
            pieces[-1].append(number)
        else:
            pieces.append([number])
    return pieces


def longest_zigzag(numbers: list[int]) -> int:
    """Return the length of the longest stretch in which the numbers go up and down by turns.

    >>> longest_zigzag([1, 3, 2, 4, 5])
    4
    >>> longest_zigzag([7, 7])
    1
    >>> longest_zigzag([])
    0
    """
    if not numbers:
        return 0
    best = 1
    length = 1
    direction = 0
    for i in range(1, len(numbers)):
        step = (numbers[i] > numbers[i - 1]) - (numbers[i] < numbers[i - 1])
        if step == 0:
            length = 1
        elif step == -direction:
            length += 1
        else:
            length = 2
        direction = step
        best = max(best, length)
    return best


def count_pairs_with_sum(numbers: list[int], target: int) -> int:
    """Count the pairs of positions whose numbers add up to target.

    >>> count_pairs_with_sum([1, 3, 2, 2, 1], 4)
    3
    >>> count_pairs_with_sum([], 4)
    0
    """
    count = 0
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            if numbers[i] + numbers[j] == target:
                count += 1
    return count


def all_pairs(items: list[Any]) -> list[tuple[Any, Any]]:
    """Return every pair of an item and a later item, in the order of the list.

    >>> all_pairs(["a", "b", "c"])
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    >>> all_pairs([1])
    []
    """
    pairs = []
    for i, first in enumerate(items):
        for second in items[i + 1 :]:
            pairs.append((first, second))
    return pairs


def largest_gap(numbers: list[int]) -> int:
    """Return the largest distance between neighbours once the numbers are sorted, or 0 for fewer than two numbers.

    >>> largest_gap([10, 1, 4])
    6
    >>> largest_gap([3])
    0
    """
    ordered = sorted(numbers)
    gap = 0
    for i in range(1, len(ordered)):
        gap = max(gap, ordered[i] - ordered[i - 1])
    return gap


def count_local_minima(numbers: list[int]) -> int:
    """Count the numbers that are smaller than both of their neighbours; the first and the last do not count.

    >>> count_local_minima([5, 1, 4, 2, 6])
    2
    >>> count_local_minima([1, 2])
    0
    """
    count = 0
    for i in range(1, len(numbers) - 1):
        if numbers[i] < numbers[i - 1] and numbers[i] < numbers[i + 1]:
            count += 1
    return count


def interval_overlap(first: tuple[int, int], second: tuple[int, int]) -> int:
    """Return the length of the common part of two intervals (start, end), which is 0 if they do not meet.

    >>> interval_overlap((1, 6), (4, 9))
    2
    >>> interval_overlap((1, 2), (5, 6))
    0
    """
    start = max(first[0], second[0])
    end = min(first[1], second[1])
    return max(0, end - start)


def covered_length(intervals: list[tuple[int, int]]) -> int:
    """Compute how much of the number line a list of intervals covers, counting overlaps once.

    >>> covered_length([(1, 4), (3, 6), (8, 9)])
    6
    >>> covered_length([])
    0
    """
    total = 0
    reached = None
    for start, end in sorted(intervals):
        if reached is None or start > reached:
            total += end - start
            reached = end
        elif end > reached:
            total += end - reached
            reached = end
    return total


def free_slots(busy: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """Return the gaps between start and end that no busy interval fills; the busy intervals do not overlap.

    >>> free_slots([(10, 12), (14, 15)], 9, 17)
    [(9, 10), (12, 14), (15, 17)]
    >>> free_slots([], 1, 2)
    [(1, 2)]
    """
    gaps = []
    current = start
    for begin, finish in sorted(busy):
        if begin > current:
            gaps.append((current, begin))
        current = finish
    if current < end:
        gaps.append((current, end))
    return gaps


def most_at_once(visits: list[tuple[int, int]]) -> int:
    """Count how many visitors were there at the same time at most; visits are (arrival, departure).

    A visitor who leaves at the hour at which another arrives does not meet them.

    >>> most_at_once([(1, 5), (2, 4), (4, 6)])
    2
    >>> most_at_once([])
    0
    """
    events = []
    for arrival, departure in visits:
        events.append((arrival, 1))
        events.append((departure, -1))
    most = 0
    present = 0
    for _, change in sorted(events):
        present += change
        most = max(most, present)
    return most


def number_ranges(numbers: list[int]) -> str:
    """Write sorted whole numbers as ranges, such as 1-3,7.

    >>> number_ranges([1, 2, 3, 7, 9, 10])
    '1-3,7,9-10'
    >>> number_ranges([])
    ''
    """
    parts = []
    i = 0
    while i < len(numbers):
        j = i
        while j + 1 < len(numbers) and numbers[j + 1] == numbers[j] + 1:
            j += 1
        if i == j:
            parts.append(str(numbers[i]))
        else:
            parts.append(f"{numbers[i]}-{numbers[j]}")
        i = j + 1
    return ",".join(parts)


def nearest_smaller(numbers: list[int]) -> list[int | None]:
    """Find for every number the closest number to its left that is smaller, or None if there is none.

    >>> nearest_smaller([4, 2, 5, 3])
    [None, None, 2, 2]
    >>> nearest_smaller([])
    []
    """
    result: list[int | None] = []
    for i in range(len(numbers)):
        found = None
        for j in range(i - 1, -1, -1):
            if numbers[j] < numbers[i]:
                found = numbers[j]
                break
        result.append(found)
    return result


def visible_towers(heights: list[int]) -> int:
    """Count the towers that can be seen from the left end: those higher than every tower before them.

    >>> visible_towers([3, 1, 4, 4, 6])
    3
    >>> visible_towers([])
    0
    """
    count = 0
    highest = 0
    for height in heights:
        if height > highest:
            count += 1
            highest = height
    return count


def days_until_warmer(temperatures: list[int]) -> list[int]:
    """Return for each day how many days one has to wait for a warmer one, 0 if none comes.

    >>> days_until_warmer([20, 18, 21, 19])
    [2, 1, 0, 0]
    >>> days_until_warmer([])
    []
    """
    waits = []
    for i in range(len(temperatures)):
        wait = 0
        for j in range(i + 1, len(temperatures)):
            if temperatures[j] > temperatures[i]:
                wait = j - i
                break
        waits.append(wait)
    return waits


def shortest_stretch(numbers: list[int], target: int) -> int:
    """Return the length of the shortest run of neighbours whose sum is at least target, or 0 if there is none.

    The numbers are positive.

    >>> shortest_stretch([2, 3, 1, 4, 3], 7)
    2
    >>> shortest_stretch([1, 1], 5)
    0
    """
    best = 0
    for start in range(len(numbers)):
        total = 0
        for end in range(start, len(numbers)):
            total += numbers[end]
            if total >= target:
                length = end - start + 1
                if best == 0 or length < best:
                    best = length
                break
    return best
