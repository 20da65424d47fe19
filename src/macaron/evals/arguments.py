"""Whether a call's arguments are among those that are right, in the sense of the Berkeley Function-Calling Leaderboard.

An answer lists, for each parameter, the values that are acceptable. An empty string among them means that the parameter
may be left out. Values inside an object are lists of acceptable ones again; those inside a list are plain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_IGNORED = str.maketrans({**dict.fromkeys(" ,./-_*^", ""), "'": '"'})


def arguments_fit(
    arguments: Mapping[str, Any], acceptable: Mapping[str, Sequence[Any]], parameters: Mapping[str, Any]
) -> bool:
    """Whether every argument is acceptable and none is missing or unknown.

    Args:
        acceptable: parameter → values.
        parameters: JSON Schema of the function's parameters.
    """
    properties = parameters.get("properties", {})
    if any(name not in arguments for name in parameters.get("required", ())):
        return False
    if not arguments.keys() <= properties.keys():
        return False
    return _object_fits(arguments, acceptable, properties)


def _object_fits(value: Mapping[str, Any], acceptable: Mapping[str, Any], properties: Mapping[str, Any]) -> bool:
    if not value.keys() <= acceptable.keys():
        return False
    for name, choices in acceptable.items():
        listed = choices if isinstance(choices, list) else [choices]
        if name not in value:
            if "" not in listed:
                return False
        elif not any(_fits(value[name], choice, properties.get(name, {})) for choice in listed):
            return False
    return True


def _fits(value: Any, wanted: Any, schema: Mapping[str, Any]) -> bool:
    match wanted:
        case str():
            return isinstance(value, str) and _plain(value) == _plain(wanted)
        case bool() | None:
            return value is wanted
        case int() | float():
            return _number_fits(value, wanted, schema)
        case list():
            items = schema.get("items", {})
            return (
                isinstance(value, list)
                and len(value) == len(wanted)
                and all(_fits(mine, theirs, items) for mine, theirs in zip(value, wanted, strict=True))
            )
        case dict():
            return isinstance(value, dict) and _object_fits(value, wanted, schema.get("properties", {}))
        case _:
            return False


def _number_fits(value: Any, wanted: float, schema: Mapping[str, Any]) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, float) and isinstance(wanted, int) and schema.get("type") == "integer":
        return False
    return value == wanted


def _plain(text: str) -> str:
    return text.translate(_IGNORED).lower()
