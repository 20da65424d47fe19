"""Checks on decoded JSON that name the field, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import msgspec

from macaron.errors import BadRequest

SHOWN = 80
MAX_SHORT = 512

T = TypeVar("T")


def decode_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a request body.

    Raises:
        BadRequest: not JSON, not an object, nested too deeply, or text that is not Unicode.
    """
    try:
        value = msgspec.json.decode(body)
    except RecursionError:
        raise BadRequest("The body's JSON is nested too deeply.", code="invalid_json") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadRequest(f"The body is not valid JSON: {error}.", code="invalid_json") from None
    if not isinstance(value, dict):
        raise BadRequest(f"The body must be a JSON object, not {kind_of(value)}.", code="invalid_json")
    return value


def kind_of(value: Any) -> str:
    """The JSON name of a value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def shown(value: Any) -> str:
    """A value as it appears in a message, cut where it is long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def refuse(path: str, value: Any, allowed: str, code: str = "invalid_value") -> NoReturn:
    """Raise the error for one field."""
    raise BadRequest(f"`{path}` is {shown(value)}; {allowed}.", param=path, code=code)


def string(value: Any, path: str) -> str:
    """A string, else an error."""
    if not isinstance(value, str):
        raise BadRequest(f"`{path}` must be a string, not {kind_of(value)}.", param=path, code="invalid_type")
    return value


def short(value: Any, path: str) -> str:
    """A string that is kept as a name, else an error. A long one is refused, since names that are cut may be equal."""
    if len(string(value, path)) > MAX_SHORT:
        raise BadRequest(f"`{path}` is longer than {MAX_SHORT} characters.", param=path, code="string_too_long")
    return string(value, path)


def array(value: Any, path: str) -> list[Any]:
    """An array, else an error."""
    if not isinstance(value, list):
        raise BadRequest(f"`{path}` must be an array, not {kind_of(value)}.", param=path, code="invalid_type")
    return value


def mapping(value: Any, path: str) -> dict[str, Any]:
    """An object, else an error."""
    if not isinstance(value, dict):
        raise BadRequest(f"`{path}` must be an object, not {kind_of(value)}.", param=path, code="invalid_type")
    return value


def boolean(value: Any, path: str) -> bool:
    """A boolean, else an error."""
    if not isinstance(value, bool):
        raise BadRequest(f"`{path}` must be a boolean, not {kind_of(value)}.", param=path, code="invalid_type")
    return value


def integer(value: Any, path: str, low: int, high: int) -> int:
    """A whole number within bounds, else an error."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadRequest(f"`{path}` must be a whole number, not {kind_of(value)}.", param=path, code="invalid_type")
    if not low <= value <= high:
        refuse(path, value, f"it must be from {low} to {high}")
    return value


def number(value: Any, path: str, low: float, high: float) -> float:
    """A number within bounds, else an error."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadRequest(f"`{path}` must be a number, not {kind_of(value)}.", param=path, code="invalid_type")
    if not low <= value <= high:
        refuse(path, value, f"it must be from {low:g} to {high:g}")
    return value


def one_of(value: Any, path: str, allowed: Iterable[str]) -> str:
    """One of some strings, else an error that lists them."""
    choices = tuple(allowed)
    if value not in choices or not isinstance(value, str):
        refuse(path, value, "it must be one of " + ", ".join(f"`{choice}`" for choice in choices))
    return value


def required(fields: dict[str, Any], name: str) -> Any:
    """Take a field out of `fields`; an error where it is missing or null."""
    value = fields.pop(name, None)
    if value is None:
        raise BadRequest(f"`{name}` is required.", param=name, code="missing_required_parameter")
    return value


def take(fields: dict[str, Any], name: str, check: Callable[[Any, str], T], default: T) -> T:
    """Take a field out of `fields`, checked; `default` where it is missing or null."""
    value = fields.pop(name, None)
    return default if value is None else check(value, name)


def refuse_rest(fields: Mapping[str, Any], inert: Mapping[str, tuple[Any, ...]], refused: Mapping[str, str]) -> None:
    """Refuse by name whatever is left of a request, unless its value asks for nothing beyond what happens anyway.

    Args:
        inert: by field, the values that ask for nothing.
        refused: by field, why it is not there and what to do.
    """
    for name, value in fields.items():
        if value is None or any(value == idle and type(value) is type(idle) for idle in inert.get(name, ())):
            continue
        if name in refused:
            refuse(name, value, refused[name], "unsupported_parameter")
        if name in inert:
            allowed = " or ".join(str(idle) for idle in inert[name])
            refuse(name, value, f"only {allowed} can be honoured here", "unsupported_value")
        raise BadRequest(
            f"`{name}` is not a field this service knows or passes on.", param=name, code="unknown_parameter"
        )


def refuse_unknown(fields: dict[str, Any], path: str, known: Sequence[str]) -> None:
    """Refuse a field that is not among those known, unless it is null."""
    for field, value in fields.items():
        if field not in known and value is not None:
            refuse(f"{path}.{field}", value, "this field is not known here", "unknown_parameter")
