"""Order: neighbours, rotations, ranks and places."""

from typing import Any


def swap_neighbours(items: list[Any]) -> list[Any]:
    """Swap the first item with the second, the third with the fourth and so on; a last single item stays.

    >>> swap_neighbours([1, 2, 3, 4, 5])
    [2, 1, 4, 3, 5]
    >>> swap_neighbours([])
    []
    """
    result = items[:]
    for i in range(0, len(result) - 1, 2):
        result[i], result[i + 1] = result[i + 1], result[i]
    return result


def fold_list(numbers: list[int]) -> list[int]:
    """Add the first number to the last, the second to the last but one and so on; a middle number stays alone.

    >>> fold_list([1, 2, 3, 4])
    [5, 5]
    >>> fold_list([1, 2, 3])
    [4, 2]
    """
    result = []
    left, right = 0, len(numbers) - 1
    while left < right:
        result.append(numbers[left] + numbers[right])
        left += 1
        right -= 1
    if left == right:
        result.append(numbers[left])
    return result


def takes_turns(items: list[Any]) -> bool:
    """Check whether no two neighbours of a list are equal.

    >>> takes_turns([1, 2, 1])
    True
    >>> takes_turns([1, 1, 2])
    False
    """
    for i in range(len(items) - 1):
        if items[i] == items[i + 1]:
            return False
    return True


def is_rotation(first: list[Any], second: list[Any]) -> bool:
    """Check whether one list becomes the other when some of its items are moved from the front to the end.

    >>> is_rotation([1, 2, 3], [3, 1, 2])
    True
    >>> is_rotation([1, 2, 3], [3, 2, 1])
    False
    """
    if len(first) != len(second):
        return False
    if not first:
        return True
    for k in range(len(first)):
        if first[k:] + first[:k] == second:
            return True
    return False


def deal_cards(cards: list[Any], players: int) -> list[list[Any]]:
    """Deal cards one by one to the players in turn and return their hands.

    >>> deal_cards([1, 2, 3, 4, 5], 2)
    [[1, 3, 5], [2, 4]]
    >>> deal_cards([], 2)
    [[], []]
    """
    hands: list[list[Any]] = [[] for _ in range(players)]
    for i in range(len(cards)):
        hands[i % players].append(cards[i])
    return hands


def last_survivor(n: int, k: int) -> int:
    """Find who is left when n people, numbered from 1, stand in a circle and every k-th one leaves.

    >>> last_survivor(7, 3)
    4
    >>> last_survivor(1, 5)
    1
    """
    people = list(range(1, n + 1))
    at = 0
    while len(people) > 1:
        at = (at + k - 1) % len(people)
        people.pop(at)
    return people[0]


def index_map(items: list[Any]) -> dict[Any, list[int]]:
    """Return a dictionary that maps each item to the list of the indexes at which it stands.

    >>> index_map(["a", "b", "a"])
    {'a': [0, 2], 'b': [1]}
    >>> index_map([])
    {}
    """
    places: dict[Any, list[int]] = {}
    for i in range(len(items)):
        if items[i] not in places:
            places[items[i]] = []
        places[items[i]].append(i)
    return places


def rank_differences(first: list[str], second: list[str]) -> dict[str, int]:
    """Return how many places each name of the first list moved up in the second; names that are missing are left out.

    >>> rank_differences(["a", "b", "c"], ["c", "a"])
    {'a': -1, 'c': 2}
    >>> rank_differences([], ["x"])
    {}
    """
    moved = {}
    for place, name in enumerate(first):
        if name in second:
            moved[name] = place - second.index(name)
    return moved
