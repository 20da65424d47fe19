"""Strict reading: every key of a document is one this version runs, of the right type, or it is refused by name."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from macaron.hcp.document import Problem
from macaron.hcp.lines import KeyPath, dotted
from macaron.hcp.schema import Contract

_NOT_RUN = frozenset(
    {
        *("run", "js", "env", "auth", "model", "provider_options", "tools", "extensions", "skills", "prompts"),
        *("prompt_templates", "themes", "resources", "workspace", "mcp", "hooks", "session"),
        *("policy", "ui"),
    }
)
_NOT_RUN_KEYS = frozenset({("engine", "operating_points")})
_MAX_SAFE_INTEGER = 2**53 - 1


def structure_problems(table: Mapping[str, Any]) -> Iterator[Problem]:
    """Unknown, missing and mistyped keys of a document, all of them."""
    return _table_problems(Contract, table, ())


def _table_problems(kind: type[Struct], table: Mapping[str, Any], path: KeyPath) -> Iterator[Problem]:
    known = {info.encode_name: info for info in fields(kind)}
    for key, value in table.items():
        if key in known:
            yield from _value_problems(known[key].type, value, (*path, key))
        else:
            yield Problem((*path, key), _unknown(key, known, path))
    for name, info in known.items():
        if info.required and name not in table:
            yield Problem((*path, name), f"is missing{_where(path)}")


def _value_problems(kind: Any, value: Any, path: KeyPath) -> Iterator[Problem]:
    section = _section(kind)
    entry = _entry(kind)
    if section is not None and isinstance(value, Mapping):
        yield from _table_problems(section, value, path)
    elif entry is not None and isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from _table_problems(entry, item, (*path, index))
    else:
        yield from _leaf_problems(kind, value, path)


def _leaf_problems(kind: Any, value: Any, path: KeyPath) -> Iterator[Problem]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message = str(error).partition(" - at ")[0]
        yield Problem(path, f"{message[:1].lower()}{message[1:]}, the value is {_shown(value)}")
        return
    yield from (Problem(path, reason) for reason in _not_json(value))


def _not_json(value: Any) -> Iterator[str]:
    """What RFC 8785 cannot write: dates, infinities, and integers that a double does not hold."""
    match value:
        case bool() | str():
            return
        case int() if abs(value) > _MAX_SAFE_INTEGER:
            yield f"{value} is beyond the integers a contract may hold, ±(2^53 - 1)"
        case float() if not abs(value) < float("inf"):
            yield f"{value} is not a finite number"
        case int() | float():
            return
        case Mapping():
            for item in value.values():
                yield from _not_json(item)
        case list():
            for item in value:
                yield from _not_json(item)
        case _:
            yield f"{_shown(value)} is a date or time, which a contract does not hold; write it as a string"


def _section(kind: Any) -> type[Struct] | None:
    options = get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    return next((item for item in options if isinstance(item, type) and issubclass(item, Struct)), None)


def _entry(kind: Any) -> type[Struct] | None:
    return _section(get_args(kind)[0]) if get_origin(kind) is tuple else None


def _unknown(key: str, known: Mapping[str, FieldInfo], path: KeyPath) -> str:
    if (not path and key in _NOT_RUN) or (*path, key) in _NOT_RUN_KEYS:
        return (
            "is defined by HCP, but this version of Macaron does not run it yet; "
            "remove it, since accepting it would promise what is not done"
        )
    what = "key" if path else "section"
    close = get_close_matches(key, known, n=1, cutoff=0.6)
    if close:
        return f"unknown {what}; did you mean {close[0]!r}?"
    home = next((place for place, name in _places(Contract, ()) if name == key), None)
    if home is not None:
        return f"unknown {what}{_where(path)}; it belongs into [{dotted(home)}]"
    return f"unknown {what}; allowed here: {', '.join(known)}"


def _places(kind: type[Struct], path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Every key of the schema, with the table it belongs to."""
    for info in fields(kind):
        nested = _section(info.type) or _entry(info.type)
        if nested is not None:
            yield from _places(nested, (*path, info.encode_name))
        elif path:
            yield path, info.encode_name


def _where(path: KeyPath) -> str:
    return f" in [{dotted(path)}]" if path else ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
