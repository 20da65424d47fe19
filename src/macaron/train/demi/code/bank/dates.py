"""Dates, times, and small languages of commands."""


def staircase(word: str) -> list[str]:
    """Return the word with one letter, then with two letters and so on, each padded with dots to the full length.

    >>> staircase("sun")
    ['s..', 'su.', 'sun']
    >>> staircase("")
    []
    """
    lines = []
    for size in range(1, len(word) + 1):
        lines.append(word[:size] + "." * (len(word) - size))
    return lines


def next_day(date: str) -> str:
    """Return the day after a date written as YYYY-MM-DD.

    >>> next_day("2023-12-31")
    '2024-01-01'
    >>> next_day("2000-02-28")
    '2000-02-29'
    """
    year, month, day = [int(part) for part in date.split("-")]
    days = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        days[1] = 29
    day += 1
    if day > days[month - 1]:
        day = 1
        month += 1
    if month > 12:
        month = 1
        year += 1
    return f"{year:04d}-{month:02d}-{day:02d}"


def day_of_year(date: str) -> int:
    """Return which day of its year a date in the form DD.MM.YYYY is, counting from 1.

    >>> day_of_year("01.03.2000")
    61
    >>> day_of_year("31.01.2023")
    31
    """
    day, month, year = [int(part) for part in date.split(".")]
    lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        lengths[1] = 29
    total = day
    for length in lengths[: month - 1]:
        total += length
    return total


def reorder_date(date: str) -> str:
    """Turn a date written as month/day/year into the form year-month-day with leading zeros.

    >>> reorder_date("7/4/1999")
    '1999-07-04'
    >>> reorder_date("12/25/2020")
    '2020-12-25'
    """
    month, day, year = date.split("/")
    return f"{year}-{month.zfill(2)}-{day.zfill(2)}"


def latest_date(dates: list[str]) -> str | None:
    """Return the latest of several dates in the form DD.MM.YYYY, or None if there are none.

    >>> latest_date(["03.05.2021", "28.12.2020"])
    '03.05.2021'
    >>> latest_date([]) is None
    True
    """
    latest = None
    latest_key = None
    for date in dates:
        day, month, year = date.split(".")
        key = (int(year), int(month), int(day))
        if latest_key is None or key > latest_key:
            latest = date
            latest_key = key
    return latest


def minutes_between(start: str, end: str) -> int:
    """Return the minutes from one time of day to another, both HH:MM; an earlier end is on the next day.

    >>> minutes_between("09:30", "11:05")
    95
    >>> minutes_between("23:50", "00:10")
    20
    """
    hours, minutes = start.split(":")
    first = int(hours) * 60 + int(minutes)
    hours, minutes = end.split(":")
    second = int(hours) * 60 + int(minutes)
    if second < first:
        second += 24 * 60
    return second - first


def parse_header(line: str) -> tuple[str, str]:
    """Split a header line at its first colon into a name in lower case and a value without outer spaces.

    >>> parse_header("Content-Type: text/plain")
    ('content-type', 'text/plain')
    >>> parse_header("Broken")
    ('broken', '')
    """
    if ":" not in line:
        return (line.strip().lower(), "")
    name, value = line.split(":", 1)
    return (name.strip().lower(), value.strip())


def evaluate_sum(expression: str) -> int:
    """Evaluate an expression of whole numbers, plus and minus signs with spaces between them.

    >>> evaluate_sum("3 + 10 - 4")
    9
    >>> evaluate_sum("7")
    7
    """
    tokens = expression.split()
    value = int(tokens[0])
    for i in range(1, len(tokens), 2):
        number = int(tokens[i + 1])
        if tokens[i] == "+":
            value += number
        else:
            value -= number
    return value


def follow_commands(text: str) -> int:
    """Run commands "add N", "sub N" and "double" separated by semicolons on 0 and return the value at the end.

    >>> follow_commands("add 5;double;sub 3")
    7
    >>> follow_commands("")
    0
    """
    value = 0
    for command in text.split(";"):
        words = command.split()
        if not words:
            continue
        if words[0] == "add":
            value += int(words[1])
        elif words[0] == "sub":
            value -= int(words[1])
        elif words[0] == "double":
            value *= 2
    return value


def replay_typing(keys: str) -> str:
    """Return the text that is left after typing keys, where "<" deletes the character before it, if there is one.

    >>> replay_typing("helo<lo")
    'hello'
    >>> replay_typing("<<a")
    'a'
    """
    typed: list[str] = []
    for key in keys:
        if key == "<":
            if typed:
                typed.pop()
        else:
            typed.append(key)
    return "".join(typed)


def matches_pattern(text: str, pattern: str) -> bool:
    """Check whether text has the length of pattern and its characters, where "." in the pattern stands for any one.

    >>> matches_pattern("cat", "c.t")
    True
    >>> matches_pattern("cart", "c.t")
    False
    """
    if len(text) != len(pattern):
        return False
    for i, wanted in enumerate(pattern):
        if wanted != "." and wanted != text[i]:
            return False
    return True
