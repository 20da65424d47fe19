"""Lists of records: filtering, joining, grouping and formatting."""

import json
from typing import Any


def names_over_age(people: list[dict[str, Any]], age: int) -> list[str]:
    """Return the sorted names of the people who are older than age.

    >>> names_over_age([{"name": "Eve", "age": 40}, {"name": "Al", "age": 20}, {"name": "Cy", "age": 31}], 30)
    ['Cy', 'Eve']
    >>> names_over_age([], 5)
    []
    """
    return sorted(person["name"] for person in people if person["age"] > age)


def total_by_category(items: list[tuple[str, float]]) -> dict[str, float]:
    """Add up the amounts of each category in a list of (category, amount) pairs.

    >>> total_by_category([("food", 5), ("fun", 2), ("food", 3)])
    {'food': 8, 'fun': 2}
    >>> total_by_category([])
    {}
    """
    totals: dict[str, float] = {}
    for category, amount in items:
        totals[category] = totals.get(category, 0) + amount
    return totals


def sort_by_fields(records: list[dict[str, Any]], fields: list[str]) -> list[dict[str, Any]]:
    """Sort records by several fields, the first one being the most important.

    >>> sort_by_fields([{"a": 2, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 1}], ["a", "b"])
    [{'a': 1, 'b': 1}, {'a': 1, 'b': 2}, {'a': 2, 'b': 1}]
    >>> sort_by_fields([], ["a"])
    []
    """
    return sorted(records, key=lambda record: [record[field] for field in fields])


def pick_fields(record: dict[str, Any], fields: list[str]) -> dict[str, Any]:
    """Return a copy of a record with only the given fields, leaving out those it does not have.

    >>> pick_fields({"id": 1, "name": "x", "age": 3}, ["name", "id", "city"])
    {'name': 'x', 'id': 1}
    >>> pick_fields({}, ["a"])
    {}
    """
    return {field: record[field] for field in fields if field in record}


def join_records(users: list[dict[str, Any]], orders: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Pair each order's item with the name of the user whose id is the order's user_id.

    >>> join_records([{"id": 1, "name": "Ann"}], [{"user_id": 1, "item": "pen"}, {"user_id": 9, "item": "cup"}])
    [('Ann', 'pen')]
    >>> join_records([], [])
    []
    """
    names = {user["id"]: user["name"] for user in users}
    pairs = []
    for order in orders:
        if order["user_id"] in names:
            pairs.append((names[order["user_id"]], order["item"]))
    return pairs


def unique_by(records: list[dict[str, Any]], field: str) -> list[dict[str, Any]]:
    """Keep the first record for each value of a field.

    >>> unique_by([{"id": 1, "n": "a"}, {"id": 1, "n": "b"}, {"id": 2, "n": "c"}], "id")
    [{'id': 1, 'n': 'a'}, {'id': 2, 'n': 'c'}]
    >>> unique_by([], "id")
    []
    """
    seen = set()
    result = []
    for record in records:
        if record[field] not in seen:
            seen.add(record[field])
            result.append(record)
    return result


def format_table(rows: list[list[str]]) -> str:
    """Format rows of text as lines with columns padded to equal width and joined by one space.

    >>> print(format_table([["a", "xyz"], ["bcd", "y"]]))
    a   xyz
    bcd y
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        line = " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(line.rstrip())
    return "\n".join(lines)


def csv_to_records(text: str) -> list[dict[str, str]]:
    """Turn comma separated lines, the first of which holds the field names, into a list of dictionaries.

    >>> csv_to_records("name,age\\nAnn,30\\nBob,25")
    [{'name': 'Ann', 'age': '30'}, {'name': 'Bob', 'age': '25'}]
    >>> csv_to_records("name,age")
    []
    """
    lines = text.split("\n")
    fields = lines[0].split(",")
    return [dict(zip(fields, line.split(","), strict=True)) for line in lines[1:]]


def read_json_field(text: str, field: str) -> Any:
    """Parse a JSON object and return one of its fields, or None if the text is not valid JSON or lacks it.

    >>> read_json_field('{"a": 1}', "a")
    1
    >>> read_json_field("oops", "a") is None
    True
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError:
        return None
    return data.get(field)


def grade_average(grades: dict[str, list[int]]) -> dict[str, float]:
    """Return the average grade of each student, rounded to one decimal; students without grades get 0.0.

    >>> grade_average({"Ann": [90, 85], "Bob": []})
    {'Ann': 87.5, 'Bob': 0.0}
    >>> grade_average({})
    {}
    """
    result = {}
    for student, marks in grades.items():
        result[student] = round(sum(marks) / len(marks), 1) if marks else 0.0
    return result


def apply_discount(prices: list[float], percent: float, minimum: float) -> list[float]:
    """Reduce every price of at least minimum by percent, rounded to two decimals, and keep the others.

    >>> apply_discount([10, 50, 99.99], 10, 50)
    [10, 45.0, 89.99]
    >>> apply_discount([], 5, 1)
    []
    """
    return [round(price * (1 - percent / 100), 2) if price >= minimum else price for price in prices]


def paginate(items: list[str], page: int, size: int) -> list[str]:
    """Return the items of a page, where pages are numbered from 1 and hold size items.

    >>> paginate(["a", "b", "c", "d", "e"], 2, 2)
    ['c', 'd']
    >>> paginate(["a"], 3, 2)
    []
    """
    start = (page - 1) * size
    return items[start : start + size]


def busiest_hour(times: list[str]) -> int:
    """Return the hour that occurs most often in a list of times such as "14:05", the earliest in case of a tie.

    >>> busiest_hour(["14:05", "09:30", "14:55"])
    14
    >>> busiest_hour(["10:00", "08:00"])
    8
    """
    hours = sorted(int(time.split(":")[0]) for time in times)
    return max(hours, key=hours.count)


def overdue(loans: dict[str, int], today: int, limit: int) -> list[str]:
    """List the books, in the order given, that were lent more than limit days before today.

    >>> overdue({"Emma": 3, "Dune": 20}, 25, 14)
    ['Emma']
    >>> overdue({}, 1, 1)
    []
    """
    return [book for book, day in loans.items() if today - day > limit]


def allocate_seats(guests: list[str], seats: int) -> tuple[list[str], list[str]]:
    """Divide guests into those who get a seat and the waiting list, first come first served.

    >>> allocate_seats(["a", "b", "c"], 2)
    (['a', 'b'], ['c'])
    >>> allocate_seats([], 4)
    ([], [])
    """
    return guests[:seats], guests[seats:]
