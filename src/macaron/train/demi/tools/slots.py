"""What a generated request fills in: values with the words that a user would say for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from random import Random
from typing import Any, NamedTuple


class Said(NamedTuple):
    """A value of a parameter and how the request says it."""

    text: str
    value: Any


class Slot(NamedTuple):
    """One parameter: its JSON schema, and a way to draw a value that follows it."""

    schema: Mapping[str, Any]
    draw: Callable[[Random], Said]


def text(description: str, values: str) -> Slot:
    """A string out of `values`, which are separated by `|`."""
    pool = values.split("|")
    return Slot({"type": "string", "description": description}, lambda random: _same(random.choice(pool)))


def made(description: str, make: Callable[[Random], str]) -> Slot:
    """A string that `make` draws."""
    return Slot({"type": "string", "description": description}, lambda random: _same(make(random)))


def default(slot: Slot, value: Any) -> Slot:
    """The slot of a parameter that has a value where a request says nothing of it."""
    return Slot({**slot.schema, "default": value}, slot.draw)


def fraction(description: str) -> Slot:
    """A share, said in percent; the description says how a call holds it."""

    def draw(random: Random) -> Said:
        percent = random.choice((1, 2, 4, 5, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75))
        return Said(f"{percent}%", percent / 100)

    return Slot({"type": "number", "description": f"{description}, as a decimal fraction (0.05 for 5%)"}, draw)


def enum(description: str, values: str) -> Slot:
    """One of `values`, separated by `|`; `said=value` where users do not say the value itself."""
    pairs = [Said(said, value or said) for said, _, value in (each.partition("=") for each in values.split("|"))]
    allowed = list(dict.fromkeys(str(pair.value) for pair in pairs))
    schema = {"type": "string", "enum": allowed, "description": description}
    return Slot(schema, lambda random: random.choice(pairs))


def whole(description: str, low: int, high: int, step: int = 1) -> Slot:
    schema = {"type": "integer", "description": description}
    return Slot(schema, lambda random: _same(random.randrange(low, high + 1, step)))


def number(description: str, low: float, high: float, digits: int = 1) -> Slot:
    """A decimal number, now and then without a fraction."""

    def draw(random: Random) -> Said:
        value = round(random.uniform(low, high), digits)
        return _same(int(value) if value.is_integer() or (high > 10 and random.random() < 0.3) else value)

    return Slot({"type": "number", "description": description}, draw)


def money(description: str, low: int, high: int) -> Slot:
    """An amount in dollars, said with the sign or the word."""

    def draw(random: Random) -> Said:
        cents = random.choice((0, 0, 0, 50, 99, random.randrange(1, 99)))
        amount = random.randint(low, high) + cents / 100 if cents else random.randint(low, high)
        shown = f"{amount:.2f}" if cents else str(amount)
        return Said(random.choice((f"${shown}", f"{shown} dollars")), amount)

    return Slot({"type": "number", "description": description}, draw)


def flag(description: str, phrase: str) -> Slot:
    """True where the request says `phrase`."""
    return Slot({"type": "boolean", "description": description}, lambda random: Said(phrase, True))


def switch(description: str, on: str, off: str) -> Slot:
    """True or false by what is said."""
    schema = {"type": "boolean", "description": description}
    return Slot(schema, lambda random: random.choice((Said(on, True), Said(off, False))))


def day(description: str, *, end: bool = False) -> Slot:
    """A date in ISO form, said in one of three ways; the `end` of a period is after any start."""
    first = date(2027, 3, 1) if end else date(2026, 1, 5)

    def draw(random: Random) -> Said:
        chosen = first + timedelta(days=random.randrange(420))
        month = chosen.strftime("%B")
        spoken = (chosen.isoformat(), f"{month} {chosen.day}, {chosen.year}", f"{chosen.day} {month} {chosen.year}")
        return Said(random.choice(spoken), chosen.isoformat())

    return Slot({"type": "string", "description": f"{description}, YYYY-MM-DD"}, draw)


def clock(description: str, *, low: int = 6, high: int = 22) -> Slot:
    """A time of day from `low` to before `high` o'clock as HH:MM, said with or without am and pm."""

    def draw(random: Random) -> Said:
        hour, minute = random.randrange(low, high), random.choice((0, 0, 15, 30, 45))
        noon = "am" if hour < 12 else "pm"
        spoken = f"{(hour - 1) % 12 + 1}" + (f":{minute:02}" if minute else "") + f" {noon}"
        return Said(random.choice((f"{hour:02}:{minute:02}", spoken)), f"{hour:02}:{minute:02}")

    return Slot({"type": "string", "description": f"{description}, HH:MM"}, draw)


def code(description: str, prefix: str, digits: int) -> Slot:
    """An identifier such as `ORD-48213`."""

    def draw(random: Random) -> Said:
        return _same(prefix + str(random.randrange(10 ** (digits - 1), 10**digits)))

    return Slot({"type": "string", "description": description}, draw)


def several(description: str, item: Slot, low: int = 2, high: int = 3) -> Slot:
    """An array of different items, said as a list."""

    def draw(random: Random) -> Said:
        drawn = {said.text: said.value for said in (item.draw(random) for _ in range(random.randint(low, high)))}
        texts = list(drawn)
        spoken = texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + f" and {texts[-1]}"
        return Said(spoken, list(drawn.values()))

    items = {key: value for key, value in item.schema.items() if key != "description"}
    return Slot({"type": "array", "description": description, "items": items}, draw)


def record(description: str, fields: Mapping[str, Slot], spoken: str) -> Slot:
    """An object whose fields are all said, as in `spoken`."""

    def draw(random: Random) -> Said:
        drawn = {name: slot.draw(random) for name, slot in fields.items()}
        words = spoken.format_map({name: said.text for name, said in drawn.items()})
        return Said(words, {name: said.value for name, said in drawn.items()})

    properties = {name: dict(slot.schema) for name, slot in fields.items()}
    schema = {"type": "object", "description": description, "properties": properties, "required": list(fields)}
    return Slot(schema, draw)


def _same(value: Any) -> Said:
    return Said(str(value), value)
