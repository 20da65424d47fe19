"""The data that fills templates: what each bank's entries give to the marks of a template."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from random import Random
from typing import Any

Entry = Mapping[str, Any]


def load(folder: str) -> dict[str, Any]:
    """The tables of all TOML files of a folder beside this module, lists of the same name joined."""
    tables: dict[str, Any] = {}
    for file in sorted((files(__package__) / folder).iterdir(), key=lambda path: path.name):
        for key, value in tomllib.loads(file.read_text(encoding="utf-8")).items():
            tables[key] = tables.get(key, []) + value if isinstance(value, list) else value
    return tables


def key(entry: Entry) -> str:
    """What tells an entry from the others of its bank and language."""
    return str(entry.get("title") or "/".join(str(entry[name]) for name in ("left", "from", "a") if name in entry))


def values(random: Random, bank: str, entry: Entry, words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The values of the marks for one card: the entry's own, its rows as code, words, and the card's outer element."""
    marks = {name: str(value) for name, value in entry.items() if not isinstance(value, list)}
    marks |= {f"w_{name}": random.choice(choices) for name, choices in words.items()}
    marks |= _outside(random, heading(entry))
    rows = list(entry.get("rows", ()))
    match bank:
        case "topics":
            marks |= _topic(random, rows)
        case "series":
            marks |= _numbers(rows)
        case "forms":
            marks |= _form(entry["fields"])
        case "switches" | "polls":
            marks |= _options(random, rows)
        case "quizzes":
            marks |= _quiz(random, entry["questions"])
        case "notes":
            marks |= {"points": lines(rows), "point": rows[0]}
        case "steps" | "compares":
            marks |= {"rows": lines(rows), "steps": lines(rows)}
        case "palettes":
            marks |= _palette(entry["colors"])
        case "timers":
            marks["days"] = listed("一二三四五六日") if entry["lang"] == "zh" else listed(_DAYS)
        case "formulas":
            marks |= {"A": marks["a"].upper(), "B": marks["b"].upper()}
        case "sorts":
            marks["numbers"] = ", ".join(map(str, entry["numbers"]))
        case _:
            marks |= _records(bank, rows)
    return marks


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "terms": ("name", "text"),
    "events": ("when", "text"),
    "logs": ("level", "text"),
    "diffs": ("sign", "text"),
    "files": ("path", "size"),
    "commands": ("name", "run"),
}


def heading(entry: Entry) -> str:
    """An entry's title as a heading has it: in English without an article and with a capital."""
    title = key(entry)
    if entry["lang"] != "en":
        return title
    for article in ("a ", "an ", "the "):
        title = title.removeprefix(article)
    return title[:1].upper() + title[1:]


def lines(rows: Sequence[Any]) -> str:
    """The elements of an array, one a line."""
    return "\n".join(f"  {json.dumps(row, ensure_ascii=False)}," for row in rows)


def listed(names: Sequence[str]) -> str:
    """The strings of an array, in one line."""
    return ", ".join(json.dumps(name, ensure_ascii=False) for name in names)


def records(columns: Sequence[str], rows: Sequence[Sequence[Any]], numbered: bool = True) -> str:
    """An array of objects, one a line, numbered from 1: a small model that counts knows where to stop."""
    return "\n".join(
        "  { " + ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in pairs) + " },"
        for pairs in (
            [*([("id", number)] if numbered else []), *zip(columns, row, strict=True)]
            for number, row in enumerate(rows, 1)
        )
    )


def _outside(random: Random, title: str) -> dict[str, str]:
    if random.random() < 0.85:
        return {"open": f'<Card title="{title}">', "close": "</Card>"}
    return {"open": f"<Stack>\n      <h2>{title}</h2>", "close": "</Stack>"}


def _topic(random: Random, rows: list[Any]) -> dict[str, str]:
    rows = random.sample(rows, min(len(rows), 4))
    whole, rows = rows, rows[:3]
    return _numbers([row[:2] for row in whole]) | {
        "rows": records(("name", "value", "group"), rows),
        "priced": records(("name", "value"), [row[:2] for row in rows]),
        "strings": listed([row[0] for row in rows]),
        "groups": listed(list(dict.fromkeys(row[2] for row in rows))),
        "group": rows[0][2],
    }


def _numbers(rows: Sequence[Sequence[Any]]) -> dict[str, str]:
    numbers = [row[1] for row in rows]
    return {
        "data": records(("name", "value"), rows, numbered=False),
        "first": rows[0][0],
        "max": str(max(numbers)),
        "mean": str(sum(numbers) // len(numbers)),
        "limit": str(_round(sum(numbers))),
    }


def _round(number: int) -> int:
    """A number of one or two digits that matter, such as a person would set as a limit."""
    scale: int = 10 ** max(len(str(number)) - 2, 0)
    return (number // scale + 1) * scale


def _form(fields: Sequence[Sequence[str]]) -> dict[str, str]:
    return {
        "fields": records(("label", "type"), fields, numbered=False),
        "labels": listed([label for label, _ in fields]),
        "field": fields[0][0],
        "field2": fields[1][0],
    }


def _options(random: Random, names: list[str]) -> dict[str, str]:
    names = random.sample(names, 3)
    switches = [[f"s{number}", name, number % 2 == 1] for number, name in enumerate(names, 1)]
    votes = [[name, 1 if number == 0 else 0] for number, name in enumerate(names)]
    return {
        "switches": records(("id", "name", "on"), switches, numbered=False),
        "votes": records(("name", "value"), votes, numbered=False),
        "strings": listed(names),
        "first": names[0],
    }


def _quiz(random: Random, questions: Sequence[Any]) -> dict[str, str]:
    shuffled = [(text, random.sample(options, len(options)), answer) for text, options, answer in questions]
    text, options, answer = random.choice(shuffled)
    return {
        "questions": records(("text", "options", "answer"), shuffled, numbered=False),
        "question": text,
        "options": listed(options),
        "answer": answer,
    }


def _palette(colors: Sequence[str]) -> dict[str, str]:
    red, green, blue = (str(int(colors[0][start : start + 2], 16)) for start in (1, 3, 5))
    return {"colors": listed(colors), "r": red, "g": green, "b": blue}


def _records(bank: str, rows: Sequence[Any]) -> dict[str, str]:
    columns = _COLUMNS.get(bank)
    if columns is None:
        return {}
    first = dict(zip(columns, map(str, rows[0]), strict=True))
    texts = {"event": rows[0][1], "agenda": listed([f"{row[0]} {row[1]}" for row in rows])}
    array = records(columns, rows)
    return first | texts | dict.fromkeys(("terms", "events", "lines", "files", "commands"), array)
