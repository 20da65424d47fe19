"""Parsing, dates, times and formats."""

import re
from datetime import date, timedelta


def parse_query(query: str) -> dict[str, str]:
    """Parse a URL query string into a dictionary.

    >>> parse_query("page=2&sort=name")
    {'page': '2', 'sort': 'name'}
    >>> parse_query("")
    {}
    """
    result = {}
    for part in query.split("&"):
        if "=" in part:
            key, value = part.split("=", 1)
            result[key] = value
    return result


def parse_config(text: str) -> dict[str, str]:
    """Parse lines of the form key = value, ignoring empty lines and lines that start with #.

    >>> parse_config("# settings\\nhost = example.org\\n\\nport=80")
    {'host': 'example.org', 'port': '80'}
    >>> parse_config("")
    {}
    """
    result = {}
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            key, value = line.split("=", 1)
            result[key.strip()] = value.strip()
    return result


def parse_duration(text: str) -> int:
    """Convert a duration such as "1h30m" or "45s" to seconds.

    >>> parse_duration("1h30m")
    5400
    >>> parse_duration("45s")
    45
    """
    seconds = {"h": 3600, "m": 60, "s": 1}
    total = 0
    number = ""
    for char in text:
        if char.isdigit():
            number += char
        else:
            total += int(number) * seconds[char]
            number = ""
    return total


def format_duration(seconds: int) -> str:
    """Format a number of seconds as hours, minutes and seconds in the form H:MM:SS.

    >>> format_duration(3725)
    '1:02:05'
    >>> format_duration(59)
    '0:00:59'
    """
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}"


def to_24_hour(time: str) -> str:
    """Convert a time such as "03:15 PM" to the 24-hour format.

    >>> to_24_hour("03:15 PM")
    '15:15'
    >>> to_24_hour("12:05 AM")
    '00:05'
    """
    clock, period = time.split()
    hour, minute = clock.split(":")
    hours = int(hour) % 12
    if period == "PM":
        hours += 12
    return f"{hours:02}:{minute}"


def is_leap_year(year: int) -> bool:
    """Check whether a year is a leap year.

    >>> is_leap_year(2024)
    True
    >>> is_leap_year(1900)
    False
    """
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year: int, month: int) -> int:
    """Return the number of days of a month.

    >>> days_in_month(2023, 2)
    28
    >>> days_in_month(2024, 2)
    29
    """
    if month == 2:
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return 29 if leap else 28
    return 30 if month in (4, 6, 9, 11) else 31


def add_business_days(start: date, days: int) -> date:
    """Add a number of working days to a date, skipping Saturdays and Sundays.

    >>> add_business_days(date(2024, 5, 3), 1)
    datetime.date(2024, 5, 6)
    >>> add_business_days(date(2024, 5, 6), 0)
    datetime.date(2024, 5, 6)
    """
    current = start
    while days > 0:
        current += timedelta(days=1)
        if current.weekday() < 5:
            days -= 1
    return current


def age_on(birthday: date, day: date) -> int:
    """Return a person's age in full years on a given day.

    >>> age_on(date(2000, 6, 15), date(2024, 6, 14))
    23
    >>> age_on(date(2000, 6, 15), date(2024, 6, 15))
    24
    """
    age = day.year - birthday.year
    if (day.month, day.day) < (birthday.month, birthday.day):
        age -= 1
    return age


def compare_versions(a: str, b: str) -> int:
    """Compare two version numbers: return -1, 0 or 1 if a is older than, equal to or newer than b.

    >>> compare_versions("1.10", "1.9")
    1
    >>> compare_versions("2.0", "2")
    0
    """
    first = [int(part) for part in a.split(".")]
    second = [int(part) for part in b.split(".")]
    length = max(len(first), len(second))
    first += [0] * (length - len(first))
    second += [0] * (length - len(second))
    return (first > second) - (first < second)


def is_valid_ipv4(address: str) -> bool:
    """Check whether a string is a valid IPv4 address.

    >>> is_valid_ipv4("192.168.0.1")
    True
    >>> is_valid_ipv4("256.1.1.1")
    False
    """
    parts = address.split(".")
    if len(parts) != 4:
        return False
    return all(part.isdigit() and int(part) <= 255 for part in parts)


def hex_to_rgb(color: str) -> tuple[int, int, int]:
    """Convert a color such as "#ff8800" to a tuple of red, green and blue.

    >>> hex_to_rgb("#ff8800")
    (255, 136, 0)
    >>> hex_to_rgb("#000000")
    (0, 0, 0)
    """
    color = color.lstrip("#")
    return int(color[0:2], 16), int(color[2:4], 16), int(color[4:6], 16)


def human_size(size: int) -> str:
    """Format a number of bytes with one decimal and the unit B, KB, MB or GB, where 1 KB is 1024 B.

    >>> human_size(1536)
    '1.5 KB'
    >>> human_size(10)
    '10.0 B'
    """
    value = float(size)
    for unit in ("B", "KB", "MB"):
        if value < 1024:
            return f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GB"


def split_csv_line(line: str) -> list[str]:
    """Split a line of CSV at its commas, but not at commas inside double quotes.

    >>> split_csv_line('a,"b,c",d')
    ['a', 'b,c', 'd']
    >>> split_csv_line("")
    ['']
    """
    fields = [""]
    quoted = False
    for char in line:
        if char == '"':
            quoted = not quoted
        elif char == "," and not quoted:
            fields.append("")
        else:
            fields[-1] += char
    return fields


def extract_numbers(text: str) -> list[int]:
    """Return all integers that appear in text, including negative ones.

    >>> extract_numbers("from -3 to 12 in 4 steps")
    [-3, 12, 4]
    >>> extract_numbers("none")
    []
    """
    return [int(number) for number in re.findall(r"-?\d+", text)]


def hashtags_of(post: str) -> list[str]:
    """Return the hashtags of a post without the # sign, in order.

    >>> hashtags_of("Sunny day #beach #fun")
    ['beach', 'fun']
    >>> hashtags_of("no tags")
    []
    """
    return re.findall(r"#(\w+)", post)


def is_strong_password(password: str) -> bool:
    """Check whether a password has at least 8 characters, a lower case and an upper case letter and a digit.

    >>> is_strong_password("Passw0rdX")
    True
    >>> is_strong_password("password")
    False
    """
    return (
        len(password) >= 8
        and any(char.islower() for char in password)
        and any(char.isupper() for char in password)
        and any(char.isdigit() for char in password)
    )


def parse_range(text: str) -> list[int]:
    """Expand a page range such as "1-3,7" into a list of numbers.

    >>> parse_range("1-3,7")
    [1, 2, 3, 7]
    >>> parse_range("5")
    [5]
    """
    numbers: list[int] = []
    for part in text.split(","):
        if "-" in part:
            start, end = part.split("-")
            numbers.extend(range(int(start), int(end) + 1))
        else:
            numbers.append(int(part))
    return numbers


def count_log_levels(lines: list[str]) -> dict[str, int]:
    """Count the lines of a log by their level, which is the first word of each line.

    >>> count_log_levels(["INFO start", "ERROR disk full", "INFO end"])
    {'INFO': 2, 'ERROR': 1}
    >>> count_log_levels([])
    {}
    """
    counts: dict[str, int] = {}
    for line in lines:
        level = line.split()[0]
        counts[level] = counts.get(level, 0) + 1
    return counts


def markdown_links(text: str) -> list[tuple[str, str]]:
    """Find all Markdown links in text and return pairs of label and address.

    >>> markdown_links("see [docs](a.html) and [home](b.html)")
    [('docs', 'a.html'), ('home', 'b.html')]
    >>> markdown_links("nothing")
    []
    """
    return re.findall(r"\[([^\]]*)\]\(([^)]*)\)", text)
