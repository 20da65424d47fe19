"""Writing a table as TOML. Values are those of `msgspec.to_builtins`: no dates, nothing empty that has no form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_LINE = 100
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(table: Mapping[str, Any]) -> str:
    """A document; plain values come before tables, as they must."""
    return "".join(f"{line}\n" for line in _lines(table, ()))


def quoted(text: str) -> str:
    """A TOML basic string; JSON's escapes are a subset of TOML's, only DEL has to be added."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    nested = {key: value for key, value in table.items() if _is_table(value) or _is_tables(value)}
    for key, value in table.items():
        if key not in nested:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in nested.items():
        place = (*path, key)
        name = ".".join(map(_key, place))
        for entry in value if _is_tables(value) else [value]:
            yield ""
            yield f"[[{name}]]" if _is_tables(value) else f"[{name}]"
            yield from _lines(entry, place)


def _value(value: Any) -> str:
    match value:
        case str():
            return quoted(value)
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case dict():
            return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return _array([_value(item) for item in value])
        case _:
            raise TypeError(f"{type(value).__name__} has no form in TOML")


def _array(items: Sequence[str]) -> str:
    line = f"[{', '.join(items)}]"
    return line if len(line) <= _LINE else "[\n" + "".join(f"    {item},\n" for item in items) + "]"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else quoted(key)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_tables(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and bool(value) and all(map(_is_table, value))
