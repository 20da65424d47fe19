"""Classes."""

from collections import OrderedDict
from typing import Any


class Stack:
    """A stack with the methods push, pop, peek and is_empty; pop and peek raise IndexError when it is empty.

    >>> stack = Stack()
    >>> stack.push(1)
    >>> stack.push(2)
    >>> stack.pop(), stack.peek(), stack.is_empty()
    (2, 1, False)
    """

    def __init__(self) -> None:
        self.items: list[Any] = []

    def push(self, item: Any) -> None:
        self.items.append(item)

    def pop(self) -> Any:
        return self.items.pop()

    def peek(self) -> Any:
        return self.items[-1]

    def is_empty(self) -> bool:
        return not self.items


class BankAccount:
    """A bank account with a balance and the methods deposit and withdraw.

    Withdrawing more than the balance raises ValueError.

    >>> account = BankAccount(100)
    >>> account.deposit(50)
    >>> account.withdraw(30)
    >>> account.balance
    120
    """

    def __init__(self, balance: float = 0) -> None:
        self.balance = balance

    def deposit(self, amount: float) -> None:
        self.balance += amount

    def withdraw(self, amount: float) -> None:
        if amount > self.balance:
            raise ValueError("insufficient funds")
        self.balance -= amount


class Counter:
    """A counter that counts items with add and returns how often one was added with count.

    >>> counter = Counter()
    >>> counter.add("a")
    >>> counter.add("a")
    >>> counter.count("a"), counter.count("b")
    (2, 0)
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, item: str) -> None:
        self.counts[item] = self.counts.get(item, 0) + 1

    def count(self, item: str) -> int:
        return self.counts.get(item, 0)


class Point:
    """A point in the plane with x and y that can be added to another point and compared with ==.

    >>> Point(1, 2) + Point(3, 4) == Point(4, 6)
    True
    >>> Point(0, 0)
    Point(0, 0)
    """

    def __init__(self, x: float, y: float) -> None:
        self.x = x
        self.y = y

    def __add__(self, other: "Point") -> "Point":
        return Point(self.x + other.x, self.y + other.y)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

    def __repr__(self) -> str:
        return f"Point({self.x}, {self.y})"


class LRUCache:
    """A cache with get and put that holds at most capacity entries and drops the least recently used one.

    >>> cache = LRUCache(2)
    >>> cache.put("a", 1)
    >>> cache.put("b", 2)
    >>> cache.get("a")
    1
    >>> cache.put("c", 3)
    >>> cache.get("b") is None
    True
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.entries: OrderedDict[str, Any] = OrderedDict()

    def get(self, key: str) -> Any:
        if key not in self.entries:
            return None
        self.entries.move_to_end(key)
        return self.entries[key]

    def put(self, key: str, value: Any) -> None:
        self.entries[key] = value
        self.entries.move_to_end(key)
        if len(self.entries) > self.capacity:
            self.entries.popitem(last=False)


class Inventory:
    """An inventory of products with add, remove and total; removing more than there is raises ValueError.

    >>> inventory = Inventory()
    >>> inventory.add("pen", 10)
    >>> inventory.remove("pen", 4)
    >>> inventory.total()
    6
    """

    def __init__(self) -> None:
        self.stock: dict[str, int] = {}

    def add(self, product: str, quantity: int) -> None:
        self.stock[product] = self.stock.get(product, 0) + quantity

    def remove(self, product: str, quantity: int) -> None:
        if self.stock.get(product, 0) < quantity:
            raise ValueError("not enough in stock")
        self.stock[product] -= quantity

    def total(self) -> int:
        return sum(self.stock.values())


class LinkedList:
    """A singly linked list with append, to_list and reverse.

    >>> numbers = LinkedList()
    >>> for number in (1, 2, 3):
    ...     numbers.append(number)
    >>> numbers.reverse()
    >>> numbers.to_list()
    [3, 2, 1]
    """

    def __init__(self) -> None:
        self.head: list[Any] | None = None

    def append(self, value: Any) -> None:
        node: list[Any] = [value, None]
        if self.head is None:
            self.head = node
            return
        current = self.head
        while current[1] is not None:
            current = current[1]
        current[1] = node

    def reverse(self) -> None:
        previous, current = None, self.head
        while current is not None:
            current[1], previous, current = previous, current, current[1]
        self.head = previous

    def to_list(self) -> list[Any]:
        values = []
        current = self.head
        while current is not None:
            values.append(current[0])
            current = current[1]
        return values


class MinStack:
    """A stack of numbers with push, pop and minimum, where minimum returns the smallest number on the stack.

    >>> stack = MinStack()
    >>> for number in (3, 1, 2):
    ...     stack.push(number)
    >>> stack.minimum()
    1
    """

    def __init__(self) -> None:
        self.items: list[int] = []

    def push(self, number: int) -> None:
        self.items.append(number)

    def pop(self) -> int:
        return self.items.pop()

    def minimum(self) -> int:
        return min(self.items)


class MovingAverage:
    """The average of the last size numbers: add takes a number and returns the current average.

    >>> average = MovingAverage(2)
    >>> average.add(4), average.add(6), average.add(10)
    (4.0, 5.0, 8.0)
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.numbers: list[float] = []

    def add(self, number: float) -> float:
        self.numbers.append(number)
        self.numbers = self.numbers[-self.size :]
        return sum(self.numbers) / len(self.numbers)


class Matrix:
    """A matrix of rows with a method scale that returns a new matrix with every number multiplied by a factor.

    >>> Matrix([[1, 2], [3, 4]]).scale(2).rows
    [[2, 4], [6, 8]]
    """

    def __init__(self, rows: list[list[float]]) -> None:
        self.rows = rows

    def scale(self, factor: float) -> "Matrix":
        return Matrix([[number * factor for number in row] for row in self.rows])
